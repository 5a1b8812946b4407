"""Prompts of networks of T5's kind, which ask for a direction by a tag or in words.

Owns the words of T5's own training, and whether SentencePiece sees a space before a tag. The tags
are `model.exchange.imports.language_tokens`'. Imports no torch.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from model.errors import shown
from model.exchange.imports.language_tokens import FAMILIES, chosen_directions
from model.exchange.imports.languages import nearest_pairs
from model.exchange.imports.problems import NAME_DIRECTIONS
from model.text.languages.tags import Language, LanguagePair
from model.text.subwords.pieces import PieceModel

_T5_NAMES: Mapping[str, str] = {"en": "English", "de": "German", "fr": "French", "ro": "Romanian"}
"""Languages of T5's own translation tasks (Raffel et al. 2020, appendix D)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompted:
    """Directions and prompts of a network of T5's kind.

    Attributes:
        pairs: Directions, with what asks for them.
        languages: Where each is translated into each other.
        problems: What is in the way.
        notes: What should be known of them.
    """

    pairs: tuple[LanguagePair, ...] = ()
    languages: tuple[Language, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def prompted_directions(
    pieces: PieceModel | None,
    wanted: Sequence[tuple[str, str]],
    *,
    added: Set[str] | None = None,
) -> Prompted:
    """The directions of a network, with what asks for them.

    Args:
        pieces: Of its SentencePiece file; None, where it cannot be read, gives none.
        wanted: Source and target tags; empty for all that the pieces name.
        added: Pieces that the tokenizer cuts out of a text before SentencePiece sees it; None where
            that is not said, and all tags are.
    """
    if pieces is None:
        return Prompted()
    names = [pieces.own_piece(index) for index in range(len(pieces))]
    madlad = FAMILIES["madlad"]
    found = [_asked_for(pieces, language, added) for language in madlad.languages(names)]
    if not found:
        return _in_words(pieces, wanted)
    languages, pairs, problems = chosen_directions(found, wanted)
    return Prompted(
        pairs=pairs,
        languages=languages,
        problems=tuple(problems),
        notes=untagged_note(madlad.untagged(names)),
    )


def untagged_note(tokens: Sequence[str]) -> tuple[str, ...]:
    """A sentence on tokens that no direction uses; nothing if there are none."""
    if not tokens:
        return ()
    return (
        f"Tokens without a language tag of their own, which no direction uses: {' '.join(tokens)}.",
    )


def _asked_for(pieces: PieceModel, language: Language, added: Set[str] | None) -> Language:
    """After the space that SentencePiece puts before a tag that it sees."""
    (tag,) = language.wanted_prefix
    if added is None or tag in added:
        return language
    return replace(language, wanted_prompt=tuple(pieces.pieces(tag)[:-1]))


def _in_words(pieces: PieceModel, wanted: Sequence[tuple[str, str]]) -> Prompted:
    """The directions of T5 itself, which is told "translate English to German: "."""
    if not wanted:
        problem = f"has no language tags among its pieces; {NAME_DIRECTIONS}"
        return Prompted(problems=(problem,))
    wanted = nearest_pairs(wanted, _T5_NAMES, _T5_NAMES)
    problems = [
        f"T5 has no word for the language {shown(tag)}; it knows {', '.join(_T5_NAMES)}"
        for tag in dict.fromkeys(tag for pair in wanted for tag in pair)
        if tag not in _T5_NAMES
    ]
    if problems:
        return Prompted(problems=tuple(problems))
    prompts = {
        (source, target): f"translate {_T5_NAMES[source]} to {_T5_NAMES[target]}:"
        for source, target in wanted
    }
    pairs = tuple(
        LanguagePair(source=source, target=target, source_prompt=tuple(pieces.pieces(prompt)))
        for (source, target), prompt in prompts.items()
    )
    return Prompted(pairs=pairs)
