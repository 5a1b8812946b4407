"""Vocabularies of Marian's networks."""

from pathlib import Path

import pytest

from model.errors import ForeignModelError
from model.exchange.imports.marian.vocabulary import parse_yaml_table, read_vocabulary
from support.marian_oracle import FIXTURES

AWKWARD = r"""</s>: 0
<unk>: 1
no: 2
~: 3
"?": 4
null: 5
'it''s': 6
"\"": 7
"\u00E9\x41\U0001F600": 8
": ": 9
'#': 10
a:b: 11
? verylongkey
: 12
▁yes: 13
"\\n": 14
12: 15
"""


def test_keys_that_yaml_takes_for_other_values_are_text() -> None:
    table, problems = parse_yaml_table(AWKWARD)
    assert problems == []
    tokens = ["</s>", "<unk>", "no", "~", "?", "null", "it's", '"', "éA😀", ": ", "#", "a:b"]
    tokens += ["verylongkey", "▁yes", "\\n", "12"]
    assert table == {token: index for index, token in enumerate(tokens)}


def test_the_vocabulary_that_marian_wrote_has_all_its_tokens() -> None:
    vocabulary = read_vocabulary(FIXTURES / "opus" / "opus.spm32k-spm32k.vocab.yml")
    table = vocabulary.table
    assert sorted(table.values()) == list(range(len(table)))
    assert {">>deu<<", ">>fra<<", "?", "!", "▁"} < set(table)
    assert (vocabulary.eos_id, vocabulary.unk_id, vocabulary.spm) == (0, 1, None)


def test_sentencepiece_numbers_its_own_pieces() -> None:
    path = FIXTURES / "student" / "vocab.ende.spm"
    vocabulary = read_vocabulary(path)
    assert vocabulary.spm == path.read_bytes()
    assert (vocabulary.eos_id, vocabulary.unk_id) == (0, 1)
    assert len(vocabulary.banned_ids()) == 33


@pytest.mark.parametrize(
    ("name", "text", "table"),
    [
        ("v.json", '{"</s>": 0, "<unk>": 1, "no": 2}', {"</s>": 0, "<unk>": 1, "no": 2}),
        ("v.vocab", "</s>\n<unk>\na\n", {"</s>": 0, "<unk>": 1, "a": 2}),
    ],
)
def test_other_forms(tmp_path: Path, name: str, text: str, table: dict[str, int]) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_vocabulary(tmp_path / name).table == table


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("v.yml", b"</s>: 0\n<unk>: 1\nno id\n", "line 3 is no `token: id`"),
        ("v.yml", b"</s>: 0\n<unk>: 0\n", "a token or an id again"),
        ("v.yml", b"</s>: 0\n</s>: 1\n", "a token or an id again"),
        ("v.yml", b'</s>: 0\n"a: 1\n', "line 2"),
        ("v.yml", b'</s>: 0\n"\\q": 1\n', "line 2"),
        ("v.yml", b"<unk>: 1\n", "has no token </s>"),
        ("v.yml", b"\xff: 1\n", "is not UTF-8 at byte 0"),
        ("v.json", b'{"</s>": true}', "not a JSON object from tokens"),
        ("v.json", b'{"</s>": 0, "<unk>": 0}', "one id to two tokens"),
        ("v.vocab", b"</s>\n<unk>\n<unk>\n", "1 tokens twice"),
        ("v.fsv", b"", "factored"),
    ],
)
def test_what_is_no_vocabulary_is_refused(
    tmp_path: Path, name: str, data: bytes, problem: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ForeignModelError, match=problem):
        read_vocabulary(tmp_path / name)


def test_only_the_first_of_many_lines_are_told(tmp_path: Path) -> None:
    (tmp_path / "v.yml").write_text("bad\n" * 1000, encoding="utf-8")
    with pytest.raises(ForeignModelError, match="995 more lines like these"):
        read_vocabulary(tmp_path / "v.yml")
