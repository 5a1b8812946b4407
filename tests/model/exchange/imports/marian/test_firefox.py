"""Folders of Firefox Translations: names, metadata, compressed files, what is refused."""

import gzip
import json
import shutil
from pathlib import Path

import pytest
import torch

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.shortlist import read_shortlist
from model.checkpoint.weights import load_checkpoint
from model.errors import ForeignModelError
from model.exchange.imports.convert import convert
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportOptions
from model.exchange.imports.marian.firefox import FIREFOX
from support.marian_oracle import FIXTURES, expected, word_scores
from support.shortlists import lex_bytes

LISTS = [[], [5, 7], [9], *[[]] * 20]
"""Target pieces of the first source pieces."""
METADATA = {
    "architecture": "tiny",
    "flores": {"bleu": 39.6, "comet": 0.871},
    "modelConfig": {"ssru": True},
    "version": "2.1",
}


def release(folder: Path, *, gzipped: bool = False) -> Path:
    """What the registry gives for a pair."""
    folder.mkdir()
    files = {
        "model.ende.intgemm.alphas.bin": (FIXTURES / "int8" / "model.intgemm8.bin").read_bytes(),
        "vocab.ende.spm": (FIXTURES / "int8" / "vocab.ende.spm").read_bytes(),
        "lex.50.50.ende.s2t.bin": lex_bytes(LISTS),
    }
    for name, data in files.items():
        path = folder / (f"{name}.gz" if gzipped else name)
        path.write_bytes(gzip.compress(data) if gzipped else data)
    (folder / "metadata.json").write_text(json.dumps(METADATA), encoding="utf-8")
    return folder


@pytest.mark.parametrize("gzipped", [False, True])
@torch.inference_mode()
def test_a_release_becomes_a_checkpoint(tmp_path: Path, *, gzipped: bool) -> None:
    source = release(tmp_path / "ende", gzipped=gzipped)
    manifest = convert(source, tmp_path / "out", importers=IMPORTERS)
    assert manifest.name == "firefox-ende"
    assert manifest.licence == "MPL-2.0"
    assert [(pair.source, pair.target) for pair in manifest.pairs] == [("en", "de")]
    card = (tmp_path / "out" / manifest.files.card).read_text(encoding="utf-8")
    assert "bleu 39.6, comet 0.871" in card
    assert "lex.50.50.ende.s2t.bin" in card
    shortlist = read_shortlist(tmp_path / "out", read_manifest(tmp_path / "out"))
    assert [len(shortlist.always), shortlist.ids.tolist()] == [2, [5, 7, 9]]
    assert shortlist.with_source
    checkpoint = load_checkpoint(tmp_path / "out")
    text, hypotheses = expected("int8", "intgemm8")[0]
    source_ids = checkpoint.tokenizer.encode(text, manifest.pairs[0])
    table = checkpoint.tokenizer.target_pieces()
    ids = {piece: index for index, piece in table.items()}
    target = [ids[piece] for piece in hypotheses[0].pieces]
    found = word_scores(checkpoint.transformer, manifest.tokens.start_id, source_ids, target)
    assert found == pytest.approx(hypotheses[0].word_scores[: len(target)], abs=0.3)


def test_scores_beyond_all_numbers_are_left_out(tmp_path: Path) -> None:
    source = release(tmp_path / "ende")
    scores = {"bleu": 10**400, "chrf": -(10**400), "comet": 0.5, "other": True}
    (source / "metadata.json").write_text(json.dumps({"flores": scores}), encoding="utf-8")
    (note, *_) = FIREFOX.read(source, ImportOptions()).notes
    assert note == "Published scores on FLORES: comet 0.5."


def test_two_vocabularies_are_one_a_side(tmp_path: Path) -> None:
    folder = tmp_path / "enfr"
    shutil.copytree(FIXTURES / "prenorm", folder)
    (folder / "model.npz").rename(folder / "model.enfr.intgemm.npz")
    model = FIREFOX.read(folder, ImportOptions())
    assert len(set(map(len, model.tokenizer.tables()))) == 2


def test_a_pair_that_a_person_names_is_taken(tmp_path: Path) -> None:
    source = release(tmp_path / "ende")
    model = FIREFOX.read(source, ImportOptions(pairs=(("en-GB", "de-AT"),)))
    assert (model.pairs[0].source, model.pairs[0].target) == ("en-GB", "de-AT")


def test_other_folders_are_not_firefoxs(tmp_path: Path) -> None:
    assert FIREFOX.recognises(release(tmp_path / "ende"))
    assert not FIREFOX.recognises(FIXTURES / "student")
    assert not FIREFOX.recognises(FIXTURES / "int8")
    assert not FIREFOX.recognises(tmp_path / "gone")


def test_two_models_no_vocabulary_and_damaged_metadata_are_refused(tmp_path: Path) -> None:
    folder = release(tmp_path / "ende")
    (folder / "metadata.json").write_text("{", encoding="utf-8")
    with pytest.raises(ForeignModelError, match=r"metadata\.json.*not readable JSON"):
        FIREFOX.read(folder, ImportOptions())
    (folder / "lex.50.50.ende.s2t.bin").write_bytes(b"x")
    with pytest.raises(ForeignModelError, match=r"metadata\.json.*; lex\.50\.50"):
        FIREFOX.read(folder, ImportOptions())
    (folder / "metadata.json").unlink()
    shutil.copy(folder / "vocab.ende.spm", folder / "srcvocab.ende.spm")
    with pytest.raises(ForeignModelError, match=r"needs vocab\.\*"):
        FIREFOX.read(folder, ImportOptions())
    shutil.copy(folder / "model.ende.intgemm.alphas.bin", folder / "model.deen.intgemm.alphas.bin")
    with pytest.raises(ForeignModelError, match="needs one model"):
        FIREFOX.read(folder, ImportOptions())


def test_a_shortlist_that_is_damaged_or_not_the_only_one_is_refused(tmp_path: Path) -> None:
    folder = release(tmp_path / "ende")
    lex = folder / "lex.50.50.ende.s2t.bin"
    lex.write_bytes(lex.read_bytes()[:-1])
    with pytest.raises(ForeignModelError, match=r"lex\.50\.50\.ende\.s2t\.bin has \d+ bytes"):
        FIREFOX.read(folder, ImportOptions())
    shutil.copy(lex, folder / "lex.100.100.ende.s2t.bin")
    with pytest.raises(ForeignModelError, match="has 2 shortlists"):
        FIREFOX.read(folder, ImportOptions())
    for path in (lex, folder / "lex.100.100.ende.s2t.bin"):
        path.unlink()
    assert FIREFOX.read(folder, ImportOptions()).shortlist is None
