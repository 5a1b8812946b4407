"""What is read of a tokenizer's files; what it does with text is tests/model/text's."""

import json
from pathlib import Path

import pytest

from model.checkpoint.config_file import read_manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.errors import CheckpointError
from model.text.pieces import PieceModel
from support.tiny_checkpoint import EN_ZH, TINY_TOKENS, tiny_spm, write_tiny_checkpoint


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("source.spm", b"", "without pieces"),
        ("source.spm", b"not a model", "is not a SentencePiece model"),
        ("vocabulary.json", b"[1, 2]", "is not a JSON object from pieces to integers"),
        ("vocabulary.json", b'{"a": 0, "b": true}', "is not a JSON object"),
        ("vocabulary.json", b'{"a": 0, "a": 1}', "key 'a' stands twice"),
        ("vocabulary.json", b'{"a": 0', "not readable JSON"),
        ("vocabulary.json", b'{"a": 0}', "lacks 597 ids"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_named(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    directory = write_tiny_checkpoint(tmp_path / "tiny")
    manifest = read_manifest(directory)
    (directory / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=problem) as caught:
        load_tokenizer(directory, manifest)
    assert caught.value.path == directory / name


def test_a_loaded_checkpoint_keeps_no_table_that_its_pieces_hold_already(tmp_path: Path) -> None:
    directory = write_tiny_checkpoint(tmp_path / "tiny")
    assert "OwnSide" in repr(load_tokenizer(directory, read_manifest(directory)))


def test_a_table_of_its_own_is_read_from_the_file(tmp_path: Path) -> None:
    directory = write_tiny_checkpoint(tmp_path / "tiny")
    table = PieceModel(tiny_spm()).table()
    table["▁cat"], table["▁sees"] = table["▁sees"], table["▁cat"]
    (directory / "vocabulary.json").write_text(json.dumps(table), encoding="utf-8")
    tokenizer = load_tokenizer(directory, read_manifest(directory, verify=False))
    assert "TableSide" in repr(tokenizer)
    assert tokenizer.encode("cat", EN_ZH) == [table["▁cat"], TINY_TOKENS.eos_id]
