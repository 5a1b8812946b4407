"""A SentencePiece file of unigrams as tokenizer.json, which the library `tokenizers` reads.

Owns that description, and the few values of a SentencePiece file that its own library does not
tell: how it normalises, and which kind it is (sentencepiece_model.proto).
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from model.text.pieces import PieceModel

_TRAINER, _NORMALISER = 2, 3
"""Fields of a file."""
_MODEL_TYPE, _BYTE_FALLBACK = 3, 35
"""Fields of what it says of its training."""
_CHARSMAP, _ADD_DUMMY_PREFIX, _REMOVE_SPACES = 2, 3, 4
"""Fields of what it says of its normalisation."""
_UNIGRAM = 1
_VARINT, _EIGHT_BYTES, _BYTES = 0, 1, 2
"""Types on the wire of Protocol Buffers; the fourth, which is left, is of four bytes."""

_SPACE = "\u2581"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """What is asked of a file.

    Attributes:
        charsmap: Replacements of characters, compiled; empty for none.
        has_byte_fallback: Characters without a piece become bytes.
        problems: What tokenizer.json cannot say.
    """

    charsmap: bytes
    has_byte_fallback: bool
    problems: tuple[str, ...]


def unigram_tokenizer(
    model: PieceModel, *, specials: Sequence[str], end: str, tags: Sequence[str]
) -> tuple[dict[str, object], list[str]]:
    """tokenizer.json, and what it cannot say, as sentence fragments.

    Args:
        model: The file; its own numbering is that of the tokenizer.
        specials: Pieces that are left out of text.
        end: The one of them that ends every text.
        tags: Pieces that are cut out of a text before the rest becomes pieces.
    """
    header = _read_header(model.data)
    cut_out = dict.fromkeys([*specials, *tags])
    ids = {piece: model.own_id(piece) for piece in cut_out}
    space = {"type": "Metaspace", "replacement": _SPACE, "prepend_scheme": "always", "split": True}
    words = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, space]}
    described: dict[str, object] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(ids[piece], piece) for piece in cut_out],
        "normalizer": _normaliser(header.charsmap),
        "pre_tokenizer": words,
        "post_processor": _ending(end, ids[end]),
        "decoder": _decoder(space, has_byte_fallback=header.has_byte_fallback),
        "model": {
            "type": "Unigram",
            "unk_id": model.unk_id,
            "vocab": [
                [model.own_piece(index), model.own_score(index)] for index in range(len(model))
            ],
            "byte_fallback": header.has_byte_fallback,
        },
    }
    return described, list(header.problems)


def _added(index: int | None, content: str) -> dict[str, object]:
    flags = ("single_word", "lstrip", "rstrip", "normalized")
    return {"id": index, "content": content, **dict.fromkeys(flags, False), "special": True}


def _normaliser(charsmap: bytes) -> dict[str, object] | None:
    if not charsmap:
        return None
    return {
        "type": "Precompiled",
        "precompiled_charsmap": base64.b64encode(charsmap).decode("ascii"),
    }


def _ending(end: str, index: int | None) -> dict[str, object]:
    """What puts EOS behind a text."""
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    last = {"SpecialToken": {"id": end, "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [first, last],
        "pair": [first, last, second, last],
        "special_tokens": {end: {"id": end, "ids": [index], "tokens": [end]}},
    }


def _decoder(space: dict[str, object], *, has_byte_fallback: bool) -> dict[str, object]:
    if not has_byte_fallback:
        return space
    return {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, space]}


def _read_header(data: bytes) -> _Header:
    """The values, with the defaults that a file leaves out."""
    parts = dict(_fields(data))
    trainer = dict(_fields(_bytes(parts.get(_TRAINER, b""))))
    normaliser = dict(_fields(_bytes(parts.get(_NORMALISER, b""))))
    problems = []
    if trainer.get(_MODEL_TYPE, _UNIGRAM) != _UNIGRAM:
        problems.append("the SentencePiece file is of another kind (only unigrams)")
    if not normaliser.get(_ADD_DUMMY_PREFIX, 1) or not normaliser.get(_REMOVE_SPACES, 1):
        problems.append("the SentencePiece file keeps spaces as they are (only one between words)")
    return _Header(
        charsmap=_bytes(normaliser.get(_CHARSMAP, b"")),
        has_byte_fallback=bool(trainer.get(_BYTE_FALLBACK, 0)),
        problems=tuple(problems),
    )


def _bytes(value: int | bytes) -> bytes:
    assert isinstance(value, bytes)
    return value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of the fields of a message that SentencePiece itself has written."""
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
