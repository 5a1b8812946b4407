"""Checks of a translated segment against its source: what was looked at, and what is wrong.

Owns the checks and their bounds, which only what is absurd is beyond. What is done about a failed
check is `model.text.drafts.tries`.
"""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from model.text.drafts.amounts import differs_in_numbers
from model.text.languages.tags import LanguagePair
from model.text.marks.casing import keeps_title_words
from model.text.marks.clocks import differs_in_halves
from model.text.marks.finding import find_marks
from model.text.marks.units import differs_in_units

CheckName = Literal["marks", "numbers", "characters", "length", "loop", "copy", "end", "terms"]
"""Marks of the source are in the translation, each as often, and no others; its numbers say the
same, with the same units and halves of the day; no character is U+FFFD; it is not absurdly long or
short; it does not repeat itself; it is not the source again; it came to its end within the cap; the
terms of a glossary have what stands for them."""
ALL_CHECKS: tuple[CheckName, ...] = get_args(CheckName)
PLAIN_CHECKS = ALL_CHECKS[:-1]
"""Those of a segment without terms."""

_MAX_PERIOD = 12  # tokens of a loop's body
_MIN_REPEATED = 6  # tokens that repeat what stands a period before them
_WIDE = 3  # characters of an alphabet that a Chinese character is about as much as
_MIN_COPIED_WORDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """Quality of a translated segment.

    Attributes:
        checked: What was looked at; of a segment that was copied the terms alone, if it has any.
        failed: What of that is wrong.
        num_tries: How many other ways of translating it were tried.
    """

    checked: tuple[CheckName, ...] = ()
    failed: tuple[CheckName, ...] = ()
    num_tries: int = 0

    def combined(self, others: Iterable["Quality"]) -> "Quality":
        """The quality of what was made of this and of the others."""
        all_of = [self, *others]
        return Quality(
            checked=_in_order(name for one in all_of for name in one.checked),
            failed=_in_order(name for one in all_of for name in one.failed),
            num_tries=sum(one.num_tries for one in all_of),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A source and its translation, as text and as tokens.

    Attributes:
        source: Text of the segment.
        target: Its translation.
        source_ids: What the network read.
        target_ids: What it wrote.
        marks: Texts of the marks in the source, of those that touch each other as one.
        is_lost: Marks were not found where they should be, or are not in their order.
        is_truncated: The end was forced.
        is_term_missed: What stands for a term is not in it.
        pair: Their languages.
        beginning: What the caller wrote of it, which may have marks of its own.
    """

    source: str
    target: str
    source_ids: Sequence[int]
    target_ids: Sequence[int]
    marks: Collection[str]
    is_lost: bool
    is_truncated: bool
    pair: LanguagePair
    is_term_missed: bool = False
    beginning: str = ""


def _in_order(names: Iterable[CheckName]) -> tuple[CheckName, ...]:
    found = set(names)
    return tuple(name for name in ALL_CHECKS if name in found)


def failed_checks(compared: Compared) -> tuple[CheckName, ...]:
    """The checks that a translation fails, in the order of `ALL_CHECKS`."""
    source, target = compared.source, compared.target
    failures: dict[CheckName, bool] = {
        "marks": compared.is_lost
        or differs_in_marks(source, target, compared.marks, compared.beginning),
        "numbers": differs_in_numbers(source, target)
        or differs_in_units(source, target)
        or differs_in_halves(source, target, compared.pair),
        "characters": target.count("\ufffd")
        > source.count("\ufffd") + compared.beginning.count("\ufffd"),
        "length": is_absurdly_long_or_short(source, target),
        "loop": has_loop(compared.target_ids) and not has_loop(compared.source_ids),
        "copy": is_copy(source, target) or keeps_title_words(source, target),
        "end": compared.is_truncated,
        "terms": compared.is_term_missed,
    }
    return tuple(name for name in ALL_CHECKS if failures[name])


def differs_in_marks(source: str, target: str, marks: Collection[str], beginning: str = "") -> bool:
    """Whether a mark of the source is not as often in the target, or the target has others.

    Those of its beginning, which the caller wrote, are no others.
    """
    if any(target.count(mark) < source.count(mark) for mark in set(marks)):
        return True
    written = _found_marks(target)
    if not written:
        return False
    read = _found_marks(source)
    # What was found as often is there as often, so nothing is searched again for it.
    return any(
        max(source.count(mark), beginning.count(mark)) < number
        for mark, number in written.items()
        if read[mark] < number
    )


def is_absurdly_long_or_short(source: str, target: str) -> bool:
    """Whether a translation cannot be as long as it is."""
    source_size, target_size = _size(source), _size(target)
    return target_size * 4 + 16 < source_size or target_size > source_size * 4 + 24


def has_loop(token_ids: Sequence[int]) -> bool:
    """Whether some tokens come four times or more in succession."""
    if len(token_ids) - len(set(token_ids)) < _MIN_REPEATED:
        return False  # so many at least have come before
    for period in range(1, min(_MAX_PERIOD, len(token_ids) // 4) + 1):
        needed, run = max(3 * period, _MIN_REPEATED), 0
        for token, before in zip(token_ids[period:], token_ids, strict=False):
            run = run + 1 if token == before else 0
            if run >= needed:
                return True
    return False


def is_copy(source: str, target: str) -> bool:
    """Whether a translation is its source again, which is more than a name."""
    if source.casefold().strip() != target.casefold().strip():
        return False
    num_words = sum(any(map(str.isalpha, word)) for word in source.split())
    return num_words >= _MIN_COPIED_WORDS or _num_wide(source) > _MIN_COPIED_WORDS


def _found_marks(text: str) -> Counter[str]:
    """Marks of a line; a number or letter that it begins with is of its words (First, → 一、)."""
    found = ((mark, text[mark.start : mark.end]) for mark in find_marks(text))
    return Counter(one for mark, one in found if mark.kind != "lead" or _has_no_word(one))


def _has_no_word(text: str) -> bool:
    return not any(map(str.isalnum, text))


def _size(text: str) -> int:
    return len(text) + (_WIDE - 1) * _num_wide(text)


def _num_wide(text: str) -> int:
    if text.isascii():
        return 0
    widths = Counter(map(unicodedata.east_asian_width, text))
    return widths["W"] + widths["F"]
