"""`dragoman pull` with the importers that it has: from every registry to a sentence in a language.

The networks are small and random, or trained by Marian itself; the files and layouts are the real
ones, and the mirrors local. What was pulled must translate as what was converted from the same
files without any registry.
"""

import json
import zipfile
from pathlib import Path

import pytest

from model.checkpoint.weights import load_checkpoint
from model.config import SearchConfig
from model.exchange.imports.convert import convert
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportOptions
from model.offline.translator import Translator
from model.text.languages.tags import LanguagePair
from service.cli.main import main
from service.models.checkpoints.discovery import load_checkpoints
from support.huggingface_folders import m2m100_folder, marian_folder
from support.marian_oracle import FIXTURES
from support.registry_mirror import Mirror

SENTENCES = ["The cat sees the river.", "My friend paints a letter."]
SEARCH = SearchConfig(beam_size=2, max_length=32)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def zipped(folder: Path, *, inside: str = "") -> bytes:
    archive = folder.with_name(f"{folder.name}.zip")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(folder.rglob("*")):
            file.write(path, Path(inside) / path.relative_to(folder))
    return archive.read_bytes()


def translated(checkpoint_folder: Path, source: str, target: str) -> list[str]:
    checkpoint = load_checkpoint(checkpoint_folder)
    pair = chosen_pair(checkpoint.manifest.pairs, source, target)
    return [one.text for one in Translator(checkpoint).translate(SENTENCES, pair, SEARCH)]


def chosen_pair(pairs: tuple[LanguagePair, ...], source: str, target: str) -> LanguagePair:
    return next(pair for pair in pairs if (pair.source, pair.target) == (source, target))


def check_pulled(
    tmp_path: Path, name: str, original: Path, pair: tuple[str, str], *flags: str
) -> None:
    """It is where it is served from, and translates as the original, converted by itself."""
    assert main(["pull", name, "--yes", "--as", "pulled", *flags]) == 0
    served = tmp_path / "served"
    assert [one.directory for one in load_checkpoints(served).usable] == [served / "pulled"]
    options = ImportOptions(pairs=(pair,))
    convert(original, tmp_path / "direct", importers=IMPORTERS, compute="int8", options=options)
    found = translated(served / "pulled", *pair)
    assert found == translated(tmp_path / "direct", *pair)
    assert any(found)


def test_a_student_of_firefox_with_marians_int8(registries: Mirror, tmp_path: Path) -> None:
    files = {
        "model": (FIXTURES / "int8" / "model.intgemm8.bin").read_bytes(),
        "vocab": (FIXTURES / "int8" / "vocab.ende.spm").read_bytes(),
    }
    entry = {"architecture": "tiny", "releaseStatus": "Release"}
    registries.put_firefox_model("en-de", entry, **files)
    original = tmp_path / "original"
    original.mkdir()
    (original / "model.ende.intgemm.alphas.bin").write_bytes(files["model"])
    (original / "vocab.ende.spm").write_bytes(files["vocab"])
    check_pulled(tmp_path, "firefox:en-de", original, ("en", "de"))


def test_a_repository_of_opus_mt(registries: Mirror, tmp_path: Path) -> None:
    original = marian_folder(tmp_path / "original")
    registries.put_hub_repository(
        "Helsinki-NLP/opus-mt-en-zh", files_of(original), card={"license": "apache-2.0"}
    )
    name = "hf:Helsinki-NLP/opus-mt-en-zh"
    check_pulled(tmp_path, name, original, ("en", "zh-Hans"), "--pair", "en:zh-Hans")


@pytest.mark.parametrize("kind", ["nllb", "m2m100"])
def test_a_repository_of_many_languages(registries: Mirror, tmp_path: Path, kind: str) -> None:
    original = m2m100_folder(tmp_path / "original", kind=kind)
    licence = "cc-by-nc-4.0" if kind == "nllb" else "mit"
    registries.put_hub_repository("owner/many", files_of(original), card={"license": licence})
    accepted = ("--accept-licence", "CC-BY-NC-4.0") if kind == "nllb" else ()
    check_pulled(tmp_path, "owner/many", original, ("en", "de"), "--pair", "en:de", *accepted)


def test_a_repository_of_small100_that_names_m2m100s_tokenizer(
    registries: Mirror, tmp_path: Path
) -> None:
    original = m2m100_folder(tmp_path / "original", encoder_layers=3, decoder_layers=1)
    (original / "tokenization_small100.py").write_text("raise SystemExit('nobody runs it')\n")
    registries.put_hub_repository("me/mine", files_of(original), card={"license": "mit"})
    check_pulled(tmp_path, "me/mine", original, ("en", "de"))
    pair = chosen_pair(load_checkpoint(tmp_path / "direct").manifest.pairs, "en", "de")
    assert pair.source_prefix == ("__de__",)


@pytest.mark.usefixtures("registries")
def test_an_export_of_a_restricted_model_asks_for_its_licence_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original = marian_folder(tmp_path / "original")
    options = ImportOptions(pairs=(("en", "zh-Hans"),))
    source = tmp_path / "nc"
    convert(original, source, importers=IMPORTERS, licence="CC-BY-NC-4.0", options=options)
    assert main(["export", str(source), str(tmp_path / "nc-hf"), "--to", "huggingface"]) == 0
    assert main(["pull", str(tmp_path / "nc-hf"), "--as", "pulled"]) == 1
    shown = capsys.readouterr().err
    assert "licence, as the files say: CC-BY-NC-4.0" in shown
    assert list((tmp_path / "served").iterdir()) == []
    accepting = ["--accept-licence", "CC-BY-NC-4.0"]
    assert main(["pull", str(tmp_path / "nc-hf"), "--as", "pulled", *accepting]) == 0
    assert load_checkpoint(tmp_path / "served" / "pulled").manifest.licence == "CC-BY-NC-4.0"


def test_a_release_of_opus_mt(registries: Mirror, tmp_path: Path) -> None:
    original = FIXTURES / "opus"
    copy = tmp_path / "release"
    copy.mkdir()
    for name, data in files_of(original).items():
        (copy / name).write_bytes(data)
    registries.files["/en-fr/opus-2020-02-26.zip"] = zipped(copy)
    check_pulled(
        tmp_path, "opus:en-fr/opus-2020-02-26.zip", original, ("en", "fr"), "--pair", "en:fr"
    )


def test_a_package_of_argos(registries: Mirror, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
    from support.ctranslate2_models import random_directory  # needs CTranslate2

    original = tmp_path / "translate-en_zt-1_9"
    random_directory(original / "model")
    (original / "model" / "sentencepiece.model").rename(original / "sentencepiece.model")
    codes = {"package_version": "1.9", "from_code": "en", "to_code": "zt"}
    (original / "metadata.json").write_text(json.dumps(codes), encoding="utf-8")
    data = zipped(original, inside=original.name)
    registries.put_argos_package("en", "zt", data, version="1.9")
    check_pulled(tmp_path, "argos:en-zt", original, ("en", "zh-Hant"))
