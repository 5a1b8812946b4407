"""Vocabularies of other engines: every id with a name, special tokens under the usual ones.

Owns those names, and the refusal of text that has them. It knows no format.
"""

from collections.abc import Mapping

from model.config import SpecialTokens


def special_pieces(tokens: SpecialTokens) -> dict[int, str]:
    """The names of special ids; where one id is several tokens it has one name.

    Padding is OpenNMT's where sources do not end with EOS, as its do not: imports tell by that.
    """
    pad = "<pad>" if tokens.has_source_eos else "<blank>"
    names = {tokens.start_id: "<s>", tokens.unk_id: "<unk>"}
    return names | {tokens.pad_id: pad, tokens.eos_id: "</s>"}


def name_problems(side: str, pieces: Mapping[int, str], tokens: SpecialTokens) -> list[str]:
    """Pieces of text that have the name of a special token, as sentence fragments.

    Args:
        side: "source" or "target".
        pieces: Of that side, by id.
        tokens: Of the checkpoint.
    """
    specials = {piece: index for index, piece in special_pieces(tokens).items()}
    return [
        f"the {side} vocabulary has {piece!r} as id {index} (only as {specials[piece]})"
        for index, piece in pieces.items()
        if piece in specials and index != specials[piece]
    ]
