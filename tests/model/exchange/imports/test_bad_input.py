"""Every kind of bad input to a conversion, with the real files: one error, and nothing is there.

What a format can be damaged in is told by its own tests; here every one of them is refused through
the importers that `dragoman convert` has.
"""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from torch.nn.functional import pad

from model.errors import ForeignModelError
from model.exchange.imports.convert import convert
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportOptions
from support.foreign_folders import (
    MADLAD_SYMBOLS,
    change_json,
    trained_spm,
    write_fsmt,
    write_mbart,
    write_t5,
)
from support.huggingface_folders import MARIAN_TAGS, m2m100_folder, marian_folder
from support.huggingface_folders import trained_spm as chinese_spm
from support.marian_oracle import FIXTURES

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

from support.ctranslate2_models import RandomSpec, random_directory  # needs CTranslate2
from support.opennmt_checkpoints import random_parts, saved  # likewise

Write = Callable[[Path], Path]


def marian(folder: Path) -> Path:
    return marian_folder(folder / "m", tags=MARIAN_TAGS, languages=("eng", "mul"))


def m2m100(folder: Path) -> Path:
    return m2m100_folder(folder / "m")


def small100(folder: Path) -> Path:
    return m2m100_folder(folder / "m", kind="small100")


def nllb(folder: Path) -> Path:
    return m2m100_folder(folder / "m", kind="nllb")


def mbart(folder: Path) -> Path:
    write_mbart(folder / "m")
    return folder / "m"


def madlad(folder: Path) -> Path:
    spm = trained_spm(symbols=MADLAD_SYMBOLS, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    ids = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
    write_t5(folder / "m", spm=spm, num_decoder_layers=2, **ids)
    return folder / "m"


def fsmt(folder: Path) -> Path:
    write_fsmt(folder / "m", is_joint=False)
    return folder / "m"


def ctranslate2(folder: Path) -> Path:
    return random_directory(folder / "m", RandomSpec())


def opennmt(folder: Path) -> Path:
    return saved(folder / "m", random_parts())


def marians_own(folder: Path) -> Path:
    return _copied(FIXTURES / "student", folder / "m")


def opus_release(folder: Path) -> Path:
    return _copied(FIXTURES / "opus", folder / "m")


def _copied(source: Path, target: Path) -> Path:
    target.mkdir()
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def num_rows(source: Path) -> int:
    """Of the larger one of its tables."""
    return max(len(value) for value in load_file(source / "model.safetensors").values())


def with_rows(source: Path, wanted: int) -> None:
    """Give the tables of a network as many rows, and its config.json says so."""
    weights = load_file(source / "model.safetensors")
    for name, value in weights.items():
        if any(part in name for part in ("embed_tokens", "shared", "lm_head", "output_proj")):
            weights[name] = pad(value, (0, 0, 0, wanted - len(value))).contiguous()
        elif name == "final_logits_bias":
            weights[name] = pad(value, (0, wanted - value.shape[1])).contiguous()
    save_file(weights, source / "model.safetensors")
    config = json.loads((source / "config.json").read_text())
    sizes = {"vocab_size", "decoder_vocab_size", "src_vocab_size", "tgt_vocab_size"} & {*config}
    change_json(source / "config.json", **dict.fromkeys(sizes, wanted))


def problems_of(source: Path, folder: Path, *pairs: tuple[str, str]) -> str:
    """All problems of a conversion, of which nothing is left."""
    before = sorted(folder.rglob("*"))
    options = ImportOptions(pairs=pairs or (("en", "de"),))
    with pytest.raises(ForeignModelError) as caught:
        convert(source, folder / "out", importers=IMPORTERS, options=options)
    assert sorted(folder.rglob("*")) == before
    return "; ".join(caught.value.problems)


@pytest.mark.parametrize("family", ["pegasus", "mt5-encoder", "bert", 7 * "long name "])
def test_an_unknown_family_is_named_with_those_that_are_known(tmp_path: Path, family: str) -> None:
    source = marian(tmp_path)
    change_json(source / "config.json", model_type=family)
    told = problems_of(source, tmp_path)
    assert f"model_type is '{family[:50]}" in told
    assert "marian, m2m_100, mbart, t5, mt5, fsmt can" in told
    assert len(told) < 200


@pytest.mark.parametrize("write", [marian, m2m100, small100, nllb, mbart, madlad, fsmt])
def test_a_network_with_fewer_rows_than_its_vocabulary_is_refused(
    tmp_path: Path, write: Write
) -> None:
    """The tokenizer of another model: its last ids have no row."""
    source = write(tmp_path)
    few = num_rows(source) // 2
    with_rows(source, few)
    assert str(few) in problems_of(source, tmp_path)


@pytest.mark.parametrize("write", [marian, m2m100, small100, nllb, mbart, madlad, fsmt])
def test_a_network_with_many_more_rows_than_its_vocabulary_is_refused(
    tmp_path: Path, write: Write
) -> None:
    """The tokenizer of a smaller model, whose ids all have a row."""
    source = write(tmp_path)
    many = num_rows(source) + 300
    with_rows(source, many)
    assert f"tokens; the network has {many} rows" in problems_of(source, tmp_path)


@pytest.mark.parametrize("write", [marian, m2m100, small100, nllb, mbart, madlad, fsmt])
def test_a_network_may_have_a_few_rows_that_no_token_has(tmp_path: Path, write: Write) -> None:
    """As tables that were filled up to a multiple of 128."""
    source = write(tmp_path)
    some = -(-num_rows(source) // 128) * 128
    with_rows(source, some)
    options = ImportOptions(pairs=(("en", "de"),))
    manifest = convert(source, tmp_path / "out", importers=IMPORTERS, options=options)
    assert manifest.network.vocab_size == some
    assert some - 1 in manifest.tokens.suppressed_ids


def test_marians_rows_that_no_token_has_are_few_too(tmp_path: Path) -> None:
    source = marians_own(tmp_path)
    (source / "vocab.ende.spm").write_bytes(chinese_spm(140, is_chinese=True))
    told = problems_of(source, tmp_path)
    assert "vocab.ende.spm has 140 tokens; the network has 425 rows" in told


@pytest.mark.parametrize("write", [marian, m2m100, nllb, mbart, madlad, fsmt])
def test_a_config_that_says_another_size_than_the_weights_is_refused(
    tmp_path: Path, write: Write
) -> None:
    source = write(tmp_path)
    name = "src_vocab_size" if write is fsmt else "vocab_size"
    size = json.loads((source / "config.json").read_text())[name]
    change_json(source / "config.json", **{name: size + 1})
    told = problems_of(source, tmp_path)
    assert str(size + 1) in told
    assert str(size) in told


@pytest.mark.parametrize("write", [ctranslate2, opennmt, marians_own, opus_release])
def test_pieces_of_another_vocabulary_are_refused(tmp_path: Path, write: Write) -> None:
    """Of formats with their pieces in a file beside: that of another model."""
    source = write(tmp_path)
    folder = source if source.is_dir() else source.parent
    other = chinese_spm(140, is_chinese=True)
    files = [path for path in folder.rglob("*") if path.suffix in {".spm", ".model"}]
    assert files
    for path in files:
        path.write_bytes(other)
    told = problems_of(source, tmp_path)
    assert "belongs to another model" in told or "tokens; the network has" in told


@pytest.mark.parametrize("write", [marian, m2m100, small100, nllb, mbart, madlad, fsmt])
def test_a_language_that_a_network_does_not_have_is_named(tmp_path: Path, write: Write) -> None:
    told = problems_of(write(tmp_path), tmp_path, ("en", "tlh"))
    assert "tlh" in told


@pytest.mark.parametrize(
    "name", ["../outside", "folder/../../outside", "/tmp/outside-of-dragoman", "..\\outside"]
)
def test_a_zip_with_paths_outside_writes_nothing_anywhere(tmp_path: Path, name: str) -> None:
    """A real package, and one file more."""
    source = ctranslate2(tmp_path)
    package = tmp_path / "in" / "a.argosmodel"
    package.parent.mkdir()
    with zipfile.ZipFile(package, "w") as archive:
        for path in sorted(source.rglob("*")):
            archive.write(path, f"package/model/{path.name}")
        archive.writestr(name, b"outside")
    told = problems_of(package, tmp_path)
    assert "leads out of the archive's folder" in told or "is no plain name" in told
    assert not Path("/tmp/outside-of-dragoman").exists()


def test_a_zip_that_was_cut_is_one_error_wherever_it_ends(tmp_path: Path) -> None:
    source = ctranslate2(tmp_path)
    package = tmp_path / "a.argosmodel"
    with zipfile.ZipFile(package, "w") as archive:
        for path in sorted(source.rglob("*")):
            archive.write(path, f"package/model/{path.name}")
    whole = package.read_bytes()
    for size in (5, 100, len(whole) // 2, len(whole) - 1):
        package.write_bytes(whole[:size])
        assert "truncated" in problems_of(package, tmp_path)
