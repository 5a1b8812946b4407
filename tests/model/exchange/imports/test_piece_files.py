from pathlib import Path

import pytest

from model.errors import ForeignModelError
from model.exchange.export.huggingface.unigram import unigram_tokenizer
from model.exchange.imports.piece_files import find_piece_files, read_merges
from model.text.subwords.moses import MosesBpe
from model.text.subwords.pieces import PieceModel
from support.huggingface_folders import write_json
from support.tiny_checkpoint import tiny_spm

RULES = MosesBpe(source_language="en", target_language="de", marks="continuation")


def test_a_file_for_each_side_comes_before_one_for_both(tmp_path: Path) -> None:
    small = tiny_spm(500)
    (tmp_path / "sentencepiece.model").write_bytes(tiny_spm())
    assert find_piece_files(tmp_path).source == tiny_spm()
    assert find_piece_files(tmp_path).target is None
    (tmp_path / "source.spm").write_bytes(small)
    assert find_piece_files(tmp_path).source == tiny_spm()
    (tmp_path / "target.spm").write_bytes(tiny_spm())
    found = find_piece_files(tmp_path)
    assert (found.source, found.target) == (small, tiny_spm())


@pytest.mark.parametrize("name", ["spm.model", "sentencepiece.bpe.model", "bpe.model"])
def test_other_names_are_known(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(tiny_spm())
    assert find_piece_files(tmp_path).source == tiny_spm()


def test_without_them_one_is_made_of_the_tokenizer_of_another_library(tmp_path: Path) -> None:
    model = PieceModel(tiny_spm())
    described, _ = unigram_tokenizer(model, specials=("<unk>", "</s>"), end="</s>", tags=())
    write_json(tmp_path / "tokenizer.json", described)
    found = find_piece_files(tmp_path)
    assert found.target is None
    assert PieceModel(found.source).table() == model.table()
    write_json(tmp_path / "tokenizer.json", described | {"normalizer": {"type": "NFD"}})
    with pytest.raises(ForeignModelError, match=r"none can be made of .* has 'NFD'\); copy it"):
        find_piece_files(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ForeignModelError, match=r"none can be made of .*not readable JSON"):
        find_piece_files(tmp_path)


def test_pieces_are_compared_with_both_vocabularies(tmp_path: Path) -> None:
    (tmp_path / "spm.model").write_bytes(tiny_spm())
    found = find_piece_files(tmp_path)
    known, others = list(PieceModel(tiny_spm()).table()), ["word one", "word two"]
    assert found.problems(known, [*known, *others]) == []
    (problem,) = found.problems(known, [known[5], *others])
    assert problem == (
        "the target's SentencePiece file has 1 of the 3 pieces of its vocabulary;"
        " it belongs to another model"
    )


@pytest.mark.parametrize("data", [b"", b"#version: 0.2\nt h\n", b"\xff" * 100])
def test_a_damaged_file_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "bpe.model").write_bytes(data)
    with pytest.raises(ForeignModelError, match=r"bpe\.model: is "):
        find_piece_files(tmp_path)


def test_merges_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "bpe.model"
    path.write_bytes(b"#version: 0.2\nt h\nth e</w>\n")
    found = read_merges(path, RULES)
    assert (found.source, found.moses) == (path.read_bytes(), RULES)
    assert found.problems(["a"], ["b"]) == []
    path.write_bytes(b"one two three four\n")
    with pytest.raises(ForeignModelError, match=r"bpe\.model"):
        read_merges(path, RULES)
    with pytest.raises(ForeignModelError, match=r"other: is missing"):
        read_merges(tmp_path / "other", RULES)
