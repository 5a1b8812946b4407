"""A SentencePiece file of unigrams as tokenizer.json, which the library `tokenizers` reads.

Owns that description. How the file normalises text is read by
`model.exchange.piece_file`.
"""

import base64
from collections.abc import Sequence

from model.exchange.piece_file import read_header
from model.text.subwords.pieces import PieceModel

_SPACE = "\u2581"


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
    header = read_header(model.data)
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
    return described, header.problems("unigrams", has_byte_fallback=header.has_byte_fallback)


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
