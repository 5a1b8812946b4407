"""Header of a SentencePiece file: what its own library does not tell of it.

Owns the reading of a few values (sentencepiece_model.proto): which kind of pieces it has, and how
it normalises text before it is cut. Only bytes that SentencePiece itself has written are read.
"""

from collections.abc import Iterator
from dataclasses import dataclass

_TRAINER, _NORMALISER = 2, 3
"""Fields of a file."""
_MODEL_TYPE, _BYTE_FALLBACK = 3, 35
"""Fields of what it says of its training."""
_CHARSMAP, _ADD_DUMMY_PREFIX, _REMOVE_SPACES = 2, 3, 4
"""Fields of what it says of its normalisation."""
_KINDS = {1: "unigrams", 2: "byte pairs", 3: "words", 4: "characters"}
_VARINT, _EIGHT_BYTES, _BYTES = 0, 1, 2
"""Types on the wire of Protocol Buffers; the fourth, which is left, is of four bytes."""


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
    """A number of seven bits a byte, the lowest first, and the place behind it."""
    value, shift = 0, 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
