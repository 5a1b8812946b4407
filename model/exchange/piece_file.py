"""SentencePiece's files: what its own library neither tells of them nor makes.

Owns the few values that are read and written here (sentencepiece_model.proto): the pieces, of which
kind they are, and how a text is normalised before it is cut. Only bytes that SentencePiece itself
has written are read. What the pieces make of a text is `model.text.subwords.pieces`.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

_PIECE, _TRAINER, _NORMALISER = 1, 2, 3
"""Fields of a file."""
_TEXT, _SCORE, _PIECE_KIND = 1, 2, 3
"""Fields of a piece."""
_MODEL_TYPE, _BYTE_FALLBACK = 3, 35
"""Fields of what it says of its training."""
_CHARSMAP, _ADD_DUMMY_PREFIX, _REMOVE_SPACES = 2, 3, 4
"""Fields of what it says of its normalisation."""
_KINDS = {1: "unigrams", 2: "byte pairs", 3: "words", 4: "characters"}
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
"""Types on the wire of Protocol Buffers."""


class PieceKind(IntEnum):
    """What a piece is to a text."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    BYTE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePiece:
    """A piece as a file has it.

    Attributes:
        text: It.
        score: A unigram's log-probability; of byte pairs, the highest is merged first.
        kind: What it is to a text.
    """

    text: str
    score: float
    kind: PieceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceHeader:
    """Facts of a file.

    Attributes:
        kind: Of its pieces.
        charsmap: Replacements of characters, compiled; empty for none.
        has_byte_fallback: Characters without a piece become bytes.
        has_usual_spaces: A text gets a space before it, and of several between words one stays.
    """

    kind: str
    charsmap: bytes
    has_byte_fallback: bool
    has_usual_spaces: bool

    def problems(self, kind: str, *, has_byte_fallback: bool) -> list[str]:
        """Where it is otherwise than a tokenizer of the library `tokenizers` takes it to be."""
        found = []
        if self.kind != kind:
            found.append(f"the SentencePiece file has {self.kind} (only {kind})")
        if self.has_byte_fallback != has_byte_fallback:
            found.append("the SentencePiece file falls back to bytes (only one that does not)")
        if not self.has_usual_spaces:
            found.append("the SentencePiece file keeps spaces (only one between words)")
        return found


def read_header(data: bytes) -> PieceHeader:
    """The values, with the defaults of those that a file leaves out.

    Args:
        data: `model.text.subwords.pieces.PieceModel.data`.
    """
    parts = dict(_fields(data))
    trainer = dict(_fields(_bytes(parts.get(_TRAINER, b""))))
    normaliser = dict(_fields(_bytes(parts.get(_NORMALISER, b""))))
    kind = trainer.get(_MODEL_TYPE, 1)
    return PieceHeader(
        kind=_KINDS.get(kind, "pieces of an unknown kind") if isinstance(kind, int) else "",
        charsmap=_bytes(normaliser.get(_CHARSMAP, b"")),
        has_byte_fallback=bool(trainer.get(_BYTE_FALLBACK, 0)),
        has_usual_spaces=bool(
            normaliser.get(_ADD_DUMMY_PREFIX, 1) and normaliser.get(_REMOVE_SPACES, 1)
        ),
    )


def piece_file(
    pieces: Iterable[FilePiece],
    kind: Literal["unigrams", "byte pairs"],
    *,
    charsmap: bytes,
    has_prefix: bool,
) -> bytes:
    """A file, with SentencePiece's defaults where nothing is said.

    Args:
        pieces: In order. Where some stand for bytes, characters without a piece become those.
        kind: Of the pieces.
        charsmap: Replacements of characters, compiled; empty for none.
        has_prefix: A text gets a space before it.
    """
    listed = list(pieces)
    has_bytes = any(piece.kind is PieceKind.BYTE for piece in listed)
    numbers = {name: number for number, name in _KINDS.items()}
    trainer = _varint_field(_MODEL_TYPE, numbers[kind])
    trainer += _varint_field(_BYTE_FALLBACK, int(has_bytes))
    normaliser = _bytes_field(_CHARSMAP, charsmap)
    normaliser += _varint_field(_ADD_DUMMY_PREFIX, int(has_prefix))
    return b"".join(
        [
            *(_bytes_field(_PIECE, _message(piece)) for piece in listed),
            _bytes_field(_TRAINER, trainer),
            _bytes_field(_NORMALISER, normaliser),
        ]
    )


def _message(piece: FilePiece) -> bytes:
    score = _key(_SCORE, _FOUR_BYTES) + struct.pack("<f", piece.score)
    return _bytes_field(_TEXT, piece.text.encode()) + score + _varint_field(_PIECE_KIND, piece.kind)


def _bytes_field(number: int, content: bytes) -> bytes:
    return _key(number, _BYTES) + _as_varint(len(content)) + content


def _varint_field(number: int, value: int) -> bytes:
    return _key(number, _VARINT) + _as_varint(value)


def _key(number: int, wire_type: int) -> bytes:
    return _as_varint(number << 3 | wire_type)


def _as_varint(value: int) -> bytes:
    """A number of seven bits a byte, the lowest first."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _bytes(value: int | bytes) -> bytes:
    assert isinstance(value, bytes)
    return value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of the fields of a message."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        value: int | bytes
        if kind == _VARINT:
            value, place = _varint(data, place)
        else:
            size = 8 if kind == _EIGHT_BYTES else 4
            if kind == _BYTES:
                size, place = _varint(data, place)
            value, place = data[place : place + size], place + size
        yield number, value


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number as `_as_varint` writes it, and the place behind it."""
    value, shift = 0, 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
