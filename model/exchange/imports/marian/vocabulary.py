"""Marian's vocabularies: a SentencePiece file, `token: id` in YAML or JSON, or a token a line.

Owns how each is read. YAML is read by hand: to a YAML parser the tokens `no`, `~` and `null` are a
false and two nothings, and Marian reads them as text. An id is always that of this file; where
SentencePiece files stand beside a YAML vocabulary, their own numbering means nothing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from model.checkpoint.description.strict_json import parse_json
from model.checkpoint.files.verification import MAX_TOKENIZER_BYTES
from model.errors import ConfigError, ForeignModelError, shown
from model.exchange.imports.marian.files import read_small, refused
from model.text.subwords.pieces import OwnTable, PieceModel

EOS = "</s>"
UNK = "<unk>"
CONTROL_BYTES = tuple(f"<0x{byte:02X}>" for byte in range(0x20))
_YAML_NAMES = (".yml", ".yaml", ".json")
_FACTORED_NAME = ".fsv"
_MAX_SHOWN = 5
_ID = re.compile(r"[ \t]+([0-9]{1,18})[ \t\r]*", re.ASCII)
_LONG_KEY = "? "
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPED = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r",
    "e": "\x1b", "_": "\xa0", "N": "\x85", "L": "\u2028", "P": "\u2029",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "\t": "\t",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MarianVocabulary:
    """One side's vocabulary.

    Attributes:
        path: Its file.
        table: Token → id.
        spm: The bytes of the file, if it is one of SentencePiece; they number the tokens.
    """

    path: Path
    table: Mapping[str, int]
    spm: bytes | None

    @property
    def eos_id(self) -> int:
        """The id that ends sources and targets."""
        return self.table[EOS]

    @property
    def unk_id(self) -> int:
        """The id of what has none."""
        return self.table[UNK]

    def banned_ids(self) -> tuple[int, ...]:
        """Ids that Marian never writes: that of unknown text, and those of control bytes."""
        names = (UNK, *(CONTROL_BYTES if self.spm is not None else ()))
        return tuple(self.table[name] for name in names if name in self.table)


def read_vocabulary(path: Path) -> MarianVocabulary:
    """The vocabulary of a file, by its content.

    Raises:
        ForeignModelError: It is none, or of a kind that is not read; with all problems.
    """
    if path.suffix == _FACTORED_NAME:
        raise refused(path, "is a factored vocabulary, which is not supported")
    data = read_small(path, MAX_TOKENIZER_BYTES)
    spm: bytes | None = None
    table: Mapping[str, int]
    if path.suffix in _YAML_NAMES:
        table = _parsed(path, data)
    else:
        try:
            table, spm = OwnTable(PieceModel(data)), data
        except ConfigError:
            table = _listed(path, data)
    missing = [token for token in (EOS, UNK) if token not in table]
    if missing:
        raise ForeignModelError(path, [f"has no token {token}" for token in missing])
    return MarianVocabulary(path=path, table=table, spm=spm)


def _parsed(path: Path, data: bytes) -> dict[str, int]:
    if data.lstrip()[:1] == b"{":
        return _json_table(path, data)
    table, problems = parse_yaml_table(_text(path, data))
    if problems:
        raise ForeignModelError(path, _first(problems))
    return table


def _json_table(path: Path, data: bytes) -> dict[str, int]:
    try:
        value = parse_json(data)
    except ConfigError as error:
        raise refused(path, str(error)) from error
    if not isinstance(value, dict) or any(type(index) is not int for index in value.values()):
        raise refused(path, "is not a JSON object from tokens to integers")
    return _with_unique_ids(path, value)


def _with_unique_ids(path: Path, table: dict[str, int]) -> dict[str, int]:
    if len(set(table.values())) < len(table):
        raise refused(path, "gives one id to two tokens")
    return table


def _listed(path: Path, data: bytes) -> dict[str, int]:
    """Tokens of a file that has one a line, numbered from 0."""
    lines = _text(path, data).removesuffix("\n").split("\n")
    table = {line: index for index, line in enumerate(lines)}
    if len(table) < len(lines):
        raise refused(path, f"lists {len(lines) - len(table)} tokens twice")
    return table


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refused(path, f"is not UTF-8 at byte {error.start}") from error


def _first(problems: list[str]) -> list[str]:
    rest = len(problems) - _MAX_SHOWN
    return [*problems[:_MAX_SHOWN], f"{rest} more lines like these"] if rest > 0 else problems


def parse_yaml_table(text: str) -> tuple[dict[str, int], list[str]]:
    """A block mapping from tokens to ids, and what is wrong with it, a line each.

    Tokens are plain, or in single or double quotes; one that is too long for a line of its own
    stands after `? `, and its id on the next line.
    """
    table: dict[str, int] = {}
    ids: set[int] = set()
    problems: list[str] = []
    for number, line in _entries(text):
        key, _, after = line.rpartition(":")
        match, token = _ID.fullmatch(after), _unquoted(key.rstrip(" \t"))
        if match is None or token is None:
            problems.append(f"line {number} is no `token: id`: {shown(line)}")
            continue
        index = int(match[1])
        if token in table or index in ids:
            problems.append(f"line {number} has a token or an id again: {shown(line)}")
        table[token] = index
        ids.add(index)
    return table, problems


def _entries(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines with an entry each; a long key and the line of its id are one."""
    lines = text.split("\n")
    is_joined = False
    for number, line in enumerate(lines, 1):
        following = lines[number] if number < len(lines) else ""
        if is_joined:
            is_joined = False
        elif line.startswith(_LONG_KEY) and following.startswith(":"):
            is_joined = True
            yield number, line.removeprefix(_LONG_KEY) + following
        elif line.strip() not in {"", "---", "..."}:
            yield number, line


def _unquoted(key: str) -> str | None:
    """The token of a key as YAML writes it; None if its quotes do not end."""
    if not key.startswith(("'", '"')):
        return key
    quote, inner = key[0], key[1:-1]
    if len(key) < 2 or key[-1] != quote:
        return None
    if quote == "'":
        return inner.replace("''", "'")
    try:
        return _ESCAPE.sub(_character, inner)
    except (KeyError, ValueError, OverflowError):
        return None


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    return chr(int(code, 16)) if code else _ESCAPED[match[4]]
