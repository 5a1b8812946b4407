"""Argos packages of random networks: converted, and translated as CTranslate2 does."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from model.checkpoint.weights import Checkpoint, load_checkpoint
from model.config import SearchConfig
from model.errors import ForeignModelError
from model.exchange.imports.convert import convert
from model.exchange.imports.ctranslate2.argos import ArgosImporter
from model.exchange.imports.ctranslate2.file import VariableFile
from model.exchange.imports.ctranslate2.importer import CTranslate2Importer
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportOptions
from model.offline.translator import Translator
from support.tiny_checkpoint import generated_pairs

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

from support.ctranslate2_files import model_bytes  # stands with them
from support.ctranslate2_models import (  # needs CTranslate2
    SPECIALS,
    RandomSpec,
    random_directory,
    translations_of,
)
from support.learned_merges import learned_merges, merges_file  # stands with them

METADATA = {
    "package_version": "1.9",
    "argos_version": "1.9.0",
    "from_code": "en",
    "from_name": "English",
    "to_code": "zt",
    "to_name": "Chinese (traditional)",
}
README = "# English to Chinese\n\n## License\n\nCC0, as argos-train is\n"
NO_OPTIONS = ImportOptions()


def package(
    folder: Path,
    wanted: RandomSpec | None = None,
    *,
    quantization: str | None = None,
    **metadata: object,
) -> Path:
    """An unpacked package of a random network."""
    root = folder / "translate-en_zt-1_9"
    random_directory(root / "model", wanted, quantization=quantization)
    (root / "model" / "sentencepiece.model").rename(root / "sentencepiece.model")
    (root / "metadata.json").write_text(json.dumps(METADATA | metadata))
    (root / "README.md").write_text(README)
    (root / "stanza").mkdir()
    (root / "stanza" / "resources.json").write_text("{}")
    return root


def packed(root: Path) -> Path:
    archive = root.with_suffix(".argosmodel")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(root.rglob("*")):
            file.write(path, path.relative_to(root.parent))
    return archive


def translations(checkpoint: Checkpoint, sentences: list[str]) -> list[str | None]:
    """None where the network came to no end."""
    pair = checkpoint.manifest.pairs[0]
    search = SearchConfig(beam_size=4, stopping="first", length_penalty=1.0)
    found = Translator(checkpoint).translate(sentences, pair, search)
    return [None if each.is_truncated else each.text for each in found]


def test_a_package_translates_as_ctranslate2_does_on_its_files(tmp_path: Path) -> None:
    root = package(tmp_path, quantization="int8")
    manifest = convert(packed(root), tmp_path / "converted", importers=IMPORTERS, compute="int8")
    assert manifest.name == "argos-en-zh-Hant"
    checkpoint = load_checkpoint(tmp_path / "converted")
    written = [english for english, _ in generated_pairs(100, seed=31)]
    sentences = [one for one in written if not any(map(str.isdigit, one))]  # lost ones are mended
    ours, theirs = translations(checkpoint, sentences), translations_of(root, sentences)
    ended = [
        (one, two)
        for one, two in zip(ours, theirs, strict=True)
        if one is not None and two.isprintable()  # control characters that are made up are mended
    ]
    assert len(ended) > 40
    assert len(set(ended)) > 20
    assert [one for one, _ in ended] == [two for _, two in ended]


def test_a_package_says_its_languages_and_licence(tmp_path: Path) -> None:
    imported = ArgosImporter().read(package(tmp_path), NO_OPTIONS)
    (pair,) = imported.pairs
    assert (pair.source, pair.target, pair.target_prefix) == ("en", "zh-Hant", ())
    assert imported.licence == "CC0, as argos-train is"
    assert not imported.tokens.has_source_eos
    assert any("underscore" in note for note in imported.notes)


@pytest.mark.parametrize(
    ("readme", "metadata", "licence"),
    [
        ("License: MIT\n", {}, "MIT"),
        ("Licence\n=======\n\nMIT or CC0\n", {}, "MIT or CC0"),
        ("# Licence\n\n***\n", {}, None),
        ("Nothing of it.\n", {}, None),
        ("License: MIT\n", {"license": "CC-BY-4.0"}, "CC-BY-4.0"),
    ],
)
def test_the_licence_is_what_metadata_or_readme_call_it(
    tmp_path: Path, readme: str, metadata: dict[str, object], licence: str | None
) -> None:
    root = package(tmp_path, **metadata)
    (root / "README.md").write_text(readme)
    assert ArgosImporter().read(root, NO_OPTIONS).licence == licence


@pytest.mark.parametrize(
    ("code", "tag"),
    [("zh", "zh-Hans"), ("zt", "zh-Hant"), ("pb", "pt-BR"), ("es", "es"), ("pt_BR", "pt-BR")],
)
def test_codes_become_language_tags(tmp_path: Path, code: str, tag: str) -> None:
    root = package(tmp_path, to_code=code)
    assert ArgosImporter().read(root, NO_OPTIONS).pairs[0].target == tag
    named = ImportOptions(pairs=(("de", "fr"),))
    pair = ArgosImporter().read(root, named).pairs[0]
    assert (pair.source, pair.target) == ("de", "fr")


def test_a_target_prefix_begins_every_translation(tmp_path: Path) -> None:
    imported = ArgosImporter().read(package(tmp_path, target_prefix="▁cat"), NO_OPTIONS)
    assert imported.pairs[0].target_prefix == ("▁cat",)


def test_an_older_package_has_merges_of_words(tmp_path: Path) -> None:
    words = [word for english, _ in generated_pairs(100) for word in english.split()]
    merges = learned_merges(words, 60)
    characters = sorted({character for word in words for character in word})
    symbols = dict.fromkeys([*characters, *("".join(pair) for pair in merges)])
    endings = [symbol.removesuffix("</w>") for symbol in symbols]
    pieces = [*SPECIALS, *dict.fromkeys([*endings, *(f"{symbol}@@" for symbol in endings)])]
    root = package(tmp_path, RandomSpec(source=pieces))
    (root / "sentencepiece.model").unlink()
    (root / "bpe.model").write_bytes(merges_file(merges, header="#version: 0.2\n"))
    rules = ArgosImporter().read(root, NO_OPTIONS).tokenizer.moses
    assert rules is not None
    assert (rules.source_language, rules.target_language) == ("en", "zh")
    assert {rules.replaces_punctuation, rules.splits_dashes} == {False}
    convert(root, tmp_path / "converted", importers=IMPORTERS)
    checkpoint = load_checkpoint(tmp_path / "converted")
    ids = checkpoint.tokenizer.encode("My friend sees the river.", checkpoint.manifest.pairs[0])
    names = [pieces[index] for index in ids]
    assert " ".join(names).replace("@@ ", "") == "My friend sees the river ."
    assert any(name.endswith("@@") for name in names)


def broken(change: Callable[[Path], object], folder: Path) -> str:
    root = package(folder)
    change(root)
    with pytest.raises(ForeignModelError) as caught:
        ArgosImporter().read(root, NO_OPTIONS)
    return str(caught.value)


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    def change(root: Path) -> None:
        (root / "sentencepiece.model").unlink()
        metadata = METADATA | {"type": "sbd", "from_code": "no language", "target_prefix": 3}
        (root / "metadata.json").write_text(json.dumps(metadata))
        (root / "model" / "shared_vocabulary.json").write_text("{}")

    message = broken(change, tmp_path)
    for problem in (
        "type is 'sbd'",
        "from_code is 'no language'",
        "target_prefix is 3",
        "shared_vocabulary.json: is not a JSON list of strings",
        "lacks a SentencePiece file",
    ):
        assert problem in message


@pytest.mark.parametrize("data", [b"", b"[]", b'{"from_code": "en", "from_code": "de"}', b"\xff"])
def test_damaged_metadata_is_named(tmp_path: Path, data: bytes) -> None:
    message = broken(lambda root: (root / "metadata.json").write_bytes(data), tmp_path)
    assert "metadata.json" in message


@pytest.mark.parametrize("name", ["metadata.json", "model/config.json", "sentencepiece.model"])
def test_variables_are_told_whatever_else_is_damaged(tmp_path: Path, name: str) -> None:
    gone = "decoder/layer_1/attention/linear_1/weight"

    def change(root: Path) -> None:
        file = VariableFile(root / "model" / "model.bin")
        variables = {each: file.values(each) for each in file.variables if each != gone}
        (root / "model" / "model.bin").write_bytes(model_bytes(variables | {"odd": torch.ones(2)}))
        (root / name).write_text("[", encoding="utf-8")

    message = broken(change, tmp_path)
    for problem in (Path(name).name, f"it lacks {gone}", "'odd' is not supported"):
        assert problem in message


def test_a_prefix_that_no_piece_is_refused(tmp_path: Path) -> None:
    root = package(tmp_path, target_prefix="__de__")
    with pytest.raises(ForeignModelError, match="target vocabulary lacks '__de__'"):
        ArgosImporter().read(root, NO_OPTIONS)


def test_a_package_is_told_from_a_directory(tmp_path: Path) -> None:
    root = package(tmp_path)
    assert ArgosImporter().recognises(root)
    assert not CTranslate2Importer().recognises(root)
    assert not ArgosImporter().recognises(root / "model")
    assert CTranslate2Importer().recognises(root / "model")
    for nothing in (tmp_path, tmp_path / "missing", root / "metadata.json"):
        assert not ArgosImporter().recognises(nothing)
        assert not CTranslate2Importer().recognises(nothing)
