"""Variants of a pair: the same sentence as people also type it.

Text that is written with care teaches a network that a sentence begins with a capital and ends in a
stop; what is typed into a box often does neither. Owns what each variant changes. Does not own
which corpora are varied and how often (`model.train.config.data`).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from model.train.config.data import Variant

NO_FORM = ("", "")
"""In place of a pair that has no other form."""

FORMS = 2
"""Which forms `vary` makes; part of what a text is made of, so another number for other forms."""

_STOPS = ".!?。！？…"
_CLOSERS = "\"'”’»」』)）"


def vary(variant: Variant, source: str, target: str) -> tuple[str, str]:
    """A pair in another form, or `NO_FORM` where its source has none.

    Args:
        variant: "lower" and "title" change the source alone: the answer is to be written as ever.
            "upper" changes both sides, and "unpunctuated" takes the last mark of both, if both end
            in one.
        source: Line of the source.
        target: Its translation.
    """
    varied = _VARIANTS[variant](source, target)
    # What changed the target alone would give one source two answers.
    return NO_FORM if varied[0] == source else varied


def _unpunctuated(source: str, target: str) -> tuple[str, str]:
    stripped = tuple(side.rstrip().rstrip(_STOPS).rstrip() for side in (source, target))
    is_ended = all(
        short and short != side.rstrip() and short[-1] not in _CLOSERS
        for short, side in zip(stripped, (source, target), strict=True)
    )
    return (stripped[0], stripped[1]) if is_ended else (source, target)


def _title(source: str, target: str) -> tuple[str, str]:
    words = source.split(" ")
    return " ".join(word[:1].upper() + word[1:] for word in words), target


_VARIANTS: Mapping[Variant, Callable[[str, str], tuple[str, str]]] = MappingProxyType(
    {
        "lower": lambda source, target: (source.lower(), target),
        "title": _title,
        "upper": lambda source, target: (source.upper(), target.upper()),
        "unpunctuated": _unpunctuated,
    }
)
