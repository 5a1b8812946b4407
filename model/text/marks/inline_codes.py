"""Inline codes: single characters that stand, inside a sentence, for what is no text.

Owns which characters those are: the private-use characters of Unicode's last plane, a quarter for
each class. A document's tags, and what it says is not translated, go through the text path as such
characters, which are marks to it (`model.text.marks.finding`) and come back where they belong. What
a code stands for is known only where it was made (`model.documents.notation.template`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

CodeClass = Literal["opening", "closing", "lone", "word"]
"""A tag that belongs to the words behind it; one that belongs to those before it; what stands for
itself; what is a word of its sentence."""

CODES_PER_CLASS = 0x3FFE
"""How many different codes of a class there are."""
CODES_APART = 0x2000
"""The first number of a lone code for what is seen, so that words beside it are two."""

LOOSE_CODES = "[\U00100000-\U0010bfff]"
"""Pattern of codes that are no word of their sentence."""
WORD_CODES = "[\U0010c000-\U0010fffd]"
"""Pattern of codes that are."""
OPENING_CODES = "[\U00100000-\U00103fff]"
"""Pattern of codes that belong to what follows."""
ANY_CODE = re.compile("[\U00100000-\U0010fffd]")
"""All of them."""

_FIRST = 0x100000
_CLASS_SIZE = 0x4000
_CLASSES: tuple[CodeClass, ...] = get_args(CodeClass)


def code(code_class: CodeClass, index: int) -> str:
    """The code of a class with a number below `CODES_PER_CLASS`."""
    if not 0 <= index < CODES_PER_CLASS:
        raise ValueError(f"there are {CODES_PER_CLASS} codes of a class, and none is {index}")
    return chr(_FIRST + _CLASS_SIZE * _CLASSES.index(code_class) + index)


def class_of(character: str) -> CodeClass:
    """The class of a code."""
    return _CLASSES[(ord(character) - _FIRST) // _CLASS_SIZE]


def is_loose(character: str) -> bool:
    """Whether a character is a code that is no word of its sentence."""
    return "\U00100000" <= character <= "\U0010bfff"


def is_opening(character: str) -> bool:
    """Whether a character is a code that belongs to what follows."""
    return "\U00100000" <= character <= "\U00103fff"


def is_closing(character: str) -> bool:
    """Whether a character is a code that belongs to what stands before it."""
    return "\U00104000" <= character <= "\U00107fff"


def is_apart(character: str) -> bool:
    """Whether a character is a code for what is seen between two words, as a picture is."""
    return "\U0010a000" <= character <= "\U0010bfff"


def without_codes(text: str) -> str:
    """A text without its codes."""
    return ANY_CODE.sub("", text)


def partners(codes: Sequence[str]) -> dict[int, int]:
    """Places of opening codes and of the closing ones that end them, both ways.

    Args:
        codes: Inline codes, in order; anything else among them is passed over.
    """
    return paired(class_of(one) if ANY_CODE.fullmatch(one) else None for one in codes)


def paired(classes: Iterable[str | None]) -> dict[int, int]:
    """The same by the classes of what there is, of which only "opening" and "closing" count."""
    opened: list[int] = []
    found: dict[int, int] = {}
    for place, one in enumerate(classes):
        if one == "opening":
            opened.append(place)
        elif one == "closing" and opened:
            begin = opened.pop()
            found[begin], found[place] = place, begin
    return found


def outer_edges(
    pairs: Mapping[int, int], num_before: int, num_after: int, num: int
) -> tuple[int, int]:
    """How many marks at both ends of a text may stand outside of it.

    A mark may, unless it begins or ends an element that is partly inside.

    Args:
        pairs: Of `partners`.
        num_before: How many marks there are before the first word.
        num_after: How many behind the last one.
        num: How many altogether.

    Returns:
        How many of the first, and how many of the last ones.
    """
    first, last = num_before, num - num_after
    for _ in range(2):
        first = next((n for n in range(first) if first <= pairs.get(n, -1) < last), first)
        last = 1 + next(
            (n for n in range(num - 1, last - 1, -1) if first <= pairs.get(n, num) < last),
            last - 1,
        )
    return first, num - last
