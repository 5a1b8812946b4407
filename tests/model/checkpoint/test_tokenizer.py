"""What is read of a tokenizer's files; what it does with text is tests/model/text's."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.checkpoint.weights import TokenizerParts, load_checkpoint, save_checkpoint
from model.config import SpecialTokens
from model.errors import CheckpointError, ConfigError
from model.text.languages.tags import LanguagePair
from model.text.subwords.moses import MosesBpe
from model.text.subwords.pieces import PieceModel
from support.learned_merges import fairseq_vocabulary
from support.tiny_checkpoint import (
    EN_ZH,
    TINY_LICENCES,
    TINY_LIMITS,
    TINY_TOKENS,
    tiny_network,
    tiny_spm,
    tiny_transformer,
    write_tiny_checkpoint,
)

EN_DE = LanguagePair(source="en", target="de")
MOSES = MosesBpe(source_language="en", target_language="de", marks="word-end")
MERGES = b"l o\nlo w</w>\n"


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


def _moses_parts(*, has_table: bool = True) -> TokenizerParts:
    table = fairseq_vocabulary(["low"], [("l", "o"), ("lo", "w</w>")])
    return TokenizerParts(
        source_pieces=MERGES, source_table=table if has_table else None, moses=MOSES
    )


def _write_moses_checkpoint(directory: Path, parts: TokenizerParts) -> None:
    network = replace(tiny_network(len(parts.tables()[0])), pad_id=1)
    save_checkpoint(
        directory,
        transformer=tiny_transformer(network),
        name="moses",
        description="Random weights for tests",
        licence="Apache-2.0",
        tokens=SpecialTokens(pad_id=1, eos_id=2, unk_id=3, start_id=2, suppressed_ids=(0, 1, 3)),
        pairs=(EN_DE,),
        limits=TINY_LIMITS,
        licences=TINY_LICENCES,
        tokenizer=parts,
        card="# moses\n",
    )


def test_a_checkpoint_may_have_merges_in_place_of_sentencepiece(tmp_path: Path) -> None:
    parts = _moses_parts()
    _write_moses_checkpoint(tmp_path / "moses", parts)
    loaded = load_checkpoint(tmp_path / "moses")
    assert loaded.manifest.moses == MOSES
    table = parts.tables()[0]
    ids = loaded.tokenizer.encode("low x", EN_DE)
    assert ids == [table["low</w>"], 3, 2]
    assert loaded.tokenizer.decode(ids) == "low"
    assert json.loads((tmp_path / "moses/config.json").read_bytes())["schema_version"] == 2


def test_merges_without_a_vocabulary_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a vocabulary must stand beside them"):
        _write_moses_checkpoint(tmp_path / "moses", _moses_parts(has_table=False))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("source.merges", b"", "has no merges"),
        ("source.merges", b"a\n" * 9, "has 'a' on line 1; a merge is two symbols"),
        ("source.merges", b"\x80", "is not UTF-8"),
        ("vocabulary.json", b'{"a": "b"}', "is not a JSON object from pieces to integers"),
    ],
)
def test_a_file_of_merges_that_is_damaged_is_named(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    directory = tmp_path / "moses"
    _write_moses_checkpoint(directory, _moses_parts())
    manifest = read_manifest(directory)
    (directory / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=problem) as caught:
        load_tokenizer(directory, manifest)
    assert caught.value.path == directory / name
