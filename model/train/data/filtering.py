"""Filters of sentence pairs, and counts of the pairs left out by reason.

Owns the filters and their names. Lengths and ratios in tokens are checked after tokenising,
everything else before. Does not own reading, tokenising or language identification
(`model.train.data.languages`).
"""

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from model.train.config.filters import FilterConfig, script_names
from model.train.data.languages import LanguageProfiles


class Verdict(IntEnum):
    """Result of filtering one pair: kept, or the reason why it is left out. One byte each."""

    KEPT = 0
    BLANK = 1
    CHARACTERS = 2
    IDENTICAL = 3
    SOURCE_SCRIPT = 4
    TARGET_SCRIPT = 5
    SOURCE_LANGUAGE = 6
    TARGET_LANGUAGE = 7
    DUPLICATE = 8
    LENGTH = 9
    RATIO = 10
    NO_VARIANT = 11

    @property
    def words(self) -> str:
        """The reason in words, such as "source script"; stored reports contain them."""
        return self.name.lower().replace("_", " ")


FILTERS = 2
"""Which rules a `LineFilter` has; part of what a text is made of, so another number for others."""


class LineFilter:
    """Filter of one direction's pairs before tokenising.

    Args:
        config: Limits of the filters.
        source: BCP-47 tag of the source.
        target: That of the target.
        languages: Profiles of the run's languages, if the config has a `language_margin`.

    Raises:
        ConfigError: Scripts are filtered and that of a language is not known.
    """

    def __init__(
        self,
        config: FilterConfig,
        *,
        source: str,
        target: str,
        languages: LanguageProfiles | None = None,
    ) -> None:
        self._config = config
        self._tags = (source, target)
        self._languages = languages
        self._scripts = (
            tuple(script_names(tag) for tag in (source, target)) if config.min_script_share else ()
        )

    def verdicts(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.uint8]:
        """(P,) the `Verdict` on each pair."""
        verdicts = np.array([self.verdict(*pair) for pair in pairs], dtype=np.uint8)
        if self._languages is not None:
            for side, reason in enumerate((Verdict.SOURCE_LANGUAGE, Verdict.TARGET_LANGUAGE)):
                kept = np.flatnonzero(verdicts == Verdict.KEPT)
                is_foreign = self._languages.are_foreign(
                    [pairs[number][side] for number in kept.tolist()],
                    self._tags[side],
                    self._config.language_margin,
                )
                verdicts[kept[is_foreign]] = reason
        return verdicts

    def verdict(self, source: str, target: str) -> Verdict:
        """Verdict on a pair, languages left out."""
        config = self._config
        if not source.strip() or not target.strip():
            return Verdict.BLANK
        if 0 < config.max_characters < max(len(source), len(target)):
            return Verdict.CHARACTERS
        if config.drop_identical and _letters(source) == _letters(target):
            return Verdict.IDENTICAL
        sides = ((source, Verdict.SOURCE_SCRIPT), (target, Verdict.TARGET_SCRIPT))
        for names, (side, reason) in zip(self._scripts, sides, strict=False):
            if script_share(side, names) < config.min_script_share:
                return reason
        return Verdict.KEPT


def sentence_key(line: str) -> str:
    """A sentence without what makes no other sentence of it: its letters and digits, folded."""
    return "".join(filter(str.isalnum, line.casefold()))


def pair_hash(source: str, target: str) -> int:
    """64 bits of a pair, to find its duplicates by (two pairs of 10⁸ collide by chance: 0.03 %)."""
    digest = hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def mark_duplicates(verdicts: NDArray[np.uint8], hashes: NDArray[np.uint64]) -> None:
    """Mark every kept pair but the first of its hash as a duplicate, in place.

    Args:
        verdicts: (P,) of all corpora of a direction, in their order.
        hashes: (P,) of the same pairs.
    """
    kept = np.flatnonzero(verdicts == Verdict.KEPT)
    _, first = np.unique(hashes[kept], return_index=True)
    is_first = np.zeros(len(kept), dtype=bool)
    is_first[first] = True
    verdicts[kept[~is_first]] = Verdict.DUPLICATE


def verdict_on_lengths(
    num_source: int, num_target: int, *, max_length: int, config: FilterConfig
) -> Verdict:
    """Verdict on a pair by its numbers of tokens.

    Args:
        num_source: Tokens with EOS, and with the tag if there is one.
        num_target: Tokens with EOS.
        max_length: Limit of both.
        config: Its `max_ratio` is used.
    """
    shorter, longer = sorted((num_source, num_target))
    if longer > max_length:
        return Verdict.LENGTH
    if config.max_ratio and longer > config.max_ratio * shorter:
        return Verdict.RATIO
    return Verdict.KEPT


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusReport:
    """Counts of one corpus: pairs kept, and pairs left out by reason.

    Attributes:
        direction: Such as "en-zh".
        name: Of the corpus.
        num_pairs: Pairs in the files.
        num_kept: Pairs that are trained on.
        dropped: Pairs left out by reason.
    """

    direction: str
    name: str
    num_pairs: int
    num_kept: int
    dropped: Mapping[str, int]

    def __str__(self) -> str:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in self.dropped.items())
        left_out = f"; left out: {reasons}" if reasons else ""
        return (
            f"{self.direction} {self.name}: {self.num_kept:,} of {self.num_pairs:,} pairs{left_out}"
        )


def report_corpus(direction: str, name: str, verdicts: NDArray[np.uint8]) -> CorpusReport:
    """The report of one corpus from its verdicts."""
    counts = dict(zip(Verdict, np.bincount(verdicts, minlength=len(Verdict)).tolist(), strict=True))
    return CorpusReport(
        direction=direction,
        name=name,
        num_pairs=len(verdicts),
        num_kept=counts.pop(Verdict.KEPT),
        dropped={reason.words: count for reason, count in counts.items() if count},
    )


def script_share(text: str, names: frozenset[str]) -> float:
    """Share of a text's letters whose script is one of `names`; 1 for a text without letters.

    Half-width and full-width letters count as those that they stand for; what only abbreviates
    letters (a unit, a numeral) is none.
    """
    scripts = [script for character in text for script in _scripts(character)]
    if not scripts:
        return 1.0
    return sum(script in names for script in scripts) / len(scripts)


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text)).casefold() or text.strip()


@lru_cache(maxsize=65536)
def _scripts(character: str) -> tuple[str, ...]:
    """Scripts of the letters that a letter stands for; none of what is no letter."""
    if not character.isalpha():
        return ()
    return tuple(map(_script, filter(str.isalpha, unicodedata.normalize("NFKC", character))))


def _script(letter: str) -> str:
    # A letter's name begins with its script: "LATIN SMALL LETTER A", "CJK UNIFIED IDEOGRAPH-4E00".
    script = unicodedata.name(letter, "").partition(" ")[0].partition("-")[0]
    return "CJK" if script == "IDEOGRAPHIC" else script  # U+3005 and its like
