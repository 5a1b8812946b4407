"""How networks of T5's kind are asked for a direction: by a tag, or in words.

Owns the recognition of MADLAD's language tags among the pieces, the words of T5's own training, and
the directions that follow. Imports no torch.
"""

import re
from collections.abc import Mapping, Sequence, Set
from itertools import product

from model.checkpoint.consistency import MAX_PAIRS
from model.errors import shown
from model.exchange.imports.languages import first_of_each, language_tag
from model.text.language import LanguagePair
from model.text.pieces import PieceModel

_TAG = re.compile("<2([A-Za-z_-]{2,12})>")
_T5_NAMES: Mapping[str, str] = {"en": "English", "de": "German", "fr": "French", "ro": "Romanian"}
"""Languages of T5's own translation tasks (Raffel et al. 2020, appendix D)."""
_TAGS_OF_CODES: Mapping[str, str] = {"in": "id", "iw": "he", "jw": "jv"}
"""Codes that ISO 639 has withdrawn."""


def prompted_pairs(
    pieces: PieceModel | None,
    wanted: Sequence[tuple[str, str]],
    *,
    added: Set[str] | None = None,
) -> tuple[tuple[LanguagePair, ...], tuple[str, ...], tuple[str, ...]]:
    """The directions of a network, with what asks for them.

    Args:
        pieces: Of its SentencePiece file; None, where it cannot be read, gives none.
        wanted: Source and target tags; empty for all that the pieces name. Where those are more
            than a checkpoint can list, all from and to English are taken.
        added: Pieces that the tokenizer cuts out of a text before SentencePiece sees it; None where
            that is not said, and all tags are.

    Returns:
        The directions, what is in their way, and what should be known of them.
    """
    if pieces is None:
        return (), (), ()
    tags = tagged_languages(pieces)
    if not tags:
        return _in_words(pieces, wanted)
    notes: tuple[str, ...] = ()
    problems = [
        f"{shown(tag)} has no tag among the {len(tags)} languages of the pieces"
        for tag in dict.fromkeys(tag for pair in wanted for tag in pair)
        if tag not in tags
    ]
    if not wanted:
        wanted = [(source, target) for source, target in product(tags, tags) if source != target]
        if len(wanted) > MAX_PAIRS:
            note = (
                f"{len(wanted)} directions between {len(tags)} languages are more than a checkpoint"
                " lists: these are from and to English, and others can be named for a conversion."
            )
            notes = (note,)
            wanted = [pair for pair in wanted if "en" in pair]
    pairs = tuple(
        _tagged(pieces, source, target, tags[target], added)
        for source, target in wanted
        if target in tags
    )
    return pairs, tuple(problems), notes


def tagged_languages(pieces: PieceModel) -> dict[str, str]:
    """BCP-47 tag → piece, of all pieces that are `<2xx>` with a language in it."""
    names = (pieces.own_piece(index) for index in range(len(pieces)))
    found = [(name, match[1]) for name in names if (match := _TAG.fullmatch(name))]
    return first_of_each(
        (name, _TAGS_OF_CODES.get(code) or language_tag(code)) for name, code in found
    )


def _tagged(
    pieces: PieceModel, source: str, target: str, tag: str, added: Set[str] | None
) -> LanguagePair:
    """A direction by a tag, after the space that SentencePiece puts before a tag that it sees."""
    is_cut_out = added is None or tag in added
    prompt = () if is_cut_out else tuple(pieces.pieces(tag)[:-1])
    return LanguagePair(source=source, target=target, source_prompt=prompt, source_prefix=(tag,))


def _in_words(
    pieces: PieceModel, wanted: Sequence[tuple[str, str]]
) -> tuple[tuple[LanguagePair, ...], tuple[str, ...], tuple[str, ...]]:
    """The directions of T5 itself, which is told "translate English to German: "."""
    if not wanted:
        problem = "has no language tags among its pieces; it must be said what it translates"
        return (), (problem,), ()
    problems = [
        f"T5 has no word for the language {shown(tag)}; it knows {', '.join(_T5_NAMES)}"
        for tag in dict.fromkeys(tag for pair in wanted for tag in pair)
        if tag not in _T5_NAMES
    ]
    if problems:
        return (), tuple(problems), ()
    prompts = {
        (source, target): f"translate {_T5_NAMES[source]} to {_T5_NAMES[target]}:"
        for source, target in wanted
    }
    pairs = tuple(
        LanguagePair(source=source, target=target, source_prompt=tuple(pieces.pieces(prompt)))
        for (source, target), prompt in prompts.items()
    )
    return pairs, (), ()
