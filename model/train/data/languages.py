"""Language identification by profiles that are learned from the run's own text.

Owns the profiles (trigrams of letters), the lines they are learned from, and how much likelier
another language must be. Needs no data of its own: a language is what most lines of its sides are.
Does not own files, or whether a line is kept (`model.train.data.filtering`).
"""

import re
import unicodedata
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from model.text.languages.tags import primary_language
from model.train.stopping import ShouldStop, never, raise_if_stopped

MIN_LETTERS = 10
"""A line with fewer is not classified: names and commands look the same in many languages."""

FEW_LETTERS = 40
"""A line with fewer must say as much, in all, as one that has so many."""

_LINES_AT_ONCE = 10_000
_MAX_LINES = 50_000  # a language; a tenth of them gives nearly the same profile
_MAX_CHARACTERS = 1_000  # a line
_NUM_SYMBOLS = 128  # a boundary, the 126 commonest letters, and all others
_OTHER = _NUM_SYMBOLS - 1
_NUM_POINTS = 0x110000
_PRIOR = 10.0  # what the next lower order weighs, in letters seen
_STRAY = 0.01  # share of letters that may be any: one name from elsewhere does not decide
_NUM_REFITS = 3
# A run of ASCII with signs or digits inside: an address, a path, an option with its value, code.
# That it begins where ASCII does keeps the search linear; a run is shorter than a Chinese sentence.
_CODE = re.compile(r"(?<![!-~])[!-~]*[0-9A-Za-z][/\\_@=:.<>$#{}()\[\]|0-9][0-9A-Za-z][!-~]*")


class LanguageSample:
    """Sample of different lines of each language, chosen by their CRC-32.

    The choice depends on which lines there are, not on their order or how often they occur.

    Args:
        max_lines: Limit a language.
    """

    def __init__(self, max_lines: int = _MAX_LINES) -> None:
        self._max_lines = max_lines
        self._lines: dict[str, dict[str, int]] = {}
        self._masks: dict[str, int] = {}

    @property
    def lines(self) -> Mapping[str, tuple[str, ...]]:
        """The chosen lines by language."""
        return {language: tuple(found) for language, found in self._lines.items()}

    def add(self, tag: str, line: str) -> None:
        """Add a line of a tag's language, if it is chosen; its first 1,000 characters count."""
        language = primary_language(tag)
        line = line[:_MAX_CHARACTERS]
        found = self._lines.setdefault(language, {})
        mask = self._masks.setdefault(language, 0)
        hashed = zlib.crc32(line.encode("utf-8"))
        if hashed & mask:
            return
        found[line] = hashed
        while len(found) > self._max_lines:
            mask = 2 * mask + 1
            found = {kept: value for kept, value in found.items() if not value & mask}
            self._lines[language], self._masks[language] = found, mask


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageProfiles:
    """Letter trigram models of a run's languages.

    Attributes:
        languages: L of them.
        symbols: (code points,) what stands for each; 0 for what is no letter, or one that no
            line of the sample has.
        log_probabilities: (128³, L) nats of a symbol after the two before it, in its word; 0 for
            what is not counted.
    """

    languages: tuple[str, ...]
    symbols: NDArray[np.uint8]
    log_probabilities: NDArray[np.float32]

    def are_foreign(self, lines: Sequence[str], tag: str, margin: float) -> NDArray[np.bool_]:
        """(N,) whether another language of the run is likelier by more than a margin.

        Args:
            lines: N of them, without line feeds; their first 1,000 characters count.
            tag: Of the language that they are to be in.
            margin: Nats a letter, of at least `FEW_LETTERS`. A line of fewer than `MIN_LETTERS`
                is never foreign.
        """
        if len(self.languages) < 2:
            return np.zeros(len(lines), dtype=bool)
        own = self.languages.index(primary_language(tag))
        found = [np.zeros(0, dtype=bool)]
        for chunk in _chunks(lines):
            likelihoods, num_letters = self._measure(chunk)
            gains = np.delete(likelihoods, own, axis=1).max(axis=1) - likelihoods[:, own]
            is_likelier = gains > margin * np.maximum(num_letters, FEW_LETTERS)
            found.append(is_likelier & (num_letters >= MIN_LETTERS))
        return np.concatenate(found)

    def _measure(self, lines: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """(N, L) nats of each line in each language, (N,) how many letters it has."""
        triples, is_letter, starts = _triples(lines, self.symbols)
        likelihoods = np.add.reduceat(self.log_probabilities[triples], starts, axis=0)
        return likelihoods, np.add.reduceat(is_letter, starts, dtype=np.int64)


def learn_languages(
    sample: Mapping[str, Sequence[str]], margin: float, should_stop: ShouldStop = never
) -> LanguageProfiles:
    """Profiles of the languages, each learned from those of its lines that are not foreign.

    Which ones are is not known before: profiles of all lines say it, and the profiles of the rest
    say it better. So swapped, copied and foreign lines do no harm while they are few: up to 30 %.

    A language is a Markov chain of the second order over the letters of a word (Dunning 1994,
    "Statistical Identification of Language"), its counts smoothed by those of the next lower order
    (MacKay and Peto 1995). Digits and signs are boundaries, as in Cavnar and Trenkle (1994).

    Args:
        sample: Lines by language, as `LanguageSample` has them.
        margin: As in `LanguageProfiles.are_foreign`.
        should_stop: Checked before every profile.

    Raises:
        StoppedError: `should_stop` returned true.
    """
    symbols = _common_letters(sample)
    profiles = _fit(sample, symbols)
    for _ in range(_NUM_REFITS):
        own = {}
        for language, lines in sample.items():
            raise_if_stopped(should_stop)
            is_own = ~profiles.are_foreign(lines, language, margin)
            own[language] = tuple(compress(lines, is_own))
        profiles = _fit(own, symbols)
    return profiles


def _fit(texts: Mapping[str, Sequence[str]], symbols: NDArray[np.uint8]) -> LanguageProfiles:
    columns = [_log_probabilities(_count(lines, symbols)) for lines in texts.values()]
    return LanguageProfiles(
        languages=tuple(texts),
        symbols=symbols,
        log_probabilities=np.stack(columns, axis=1),
    )


def _chunks(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(lines), _LINES_AT_ONCE):
        yield lines[begin : begin + _LINES_AT_ONCE]


def _count(lines: Sequence[str], symbols: NDArray[np.uint8]) -> NDArray[np.int64]:
    """(128³,) how often each triple occurs."""
    counts = np.zeros(_NUM_SYMBOLS**3, dtype=np.int64)
    for chunk in _chunks(lines):
        counts += np.bincount(_triples(chunk, symbols)[0], minlength=len(counts))
    return counts


def _log_probabilities(counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """(128³,) from counts of the same shape."""
    triples = counts.reshape((_NUM_SYMBOLS,) * 3).astype(np.float64)
    triples[0, 0, 0] = 0.0  # what lies between words
    one = (triples.sum(axis=(0, 1)) + 1.0) / (triples.sum() + _NUM_SYMBOLS)
    two = _smooth(triples.sum(axis=0), one)
    three = (1.0 - _STRAY) * _smooth(triples, two) + _STRAY / _NUM_SYMBOLS
    found = np.log(three).astype(np.float32)
    found[0, 0, 0] = 0.0
    return found.reshape(-1)


def _smooth(counts: NDArray[np.float64], lower: NDArray[np.float64]) -> NDArray[np.float64]:
    totals = counts.sum(axis=-1, keepdims=True)
    smoothed: NDArray[np.float64] = (counts + _PRIOR * lower) / (totals + _PRIOR)
    return smoothed


def _common_letters(sample: Mapping[str, Sequence[str]]) -> NDArray[np.uint8]:
    """(code points,) numbers of the letters, the commonest in the languages' mean with their own.

    Marks are letters: much of an Indic word is vowel signs.
    """
    shares = np.zeros(_NUM_POINTS)
    for lines in sample.values():
        counts = np.zeros(_NUM_POINTS, dtype=np.int64)
        for chunk in _chunks(lines):
            counts += np.bincount(_points(chunk), minlength=_NUM_POINTS)
        for point in np.flatnonzero(counts):
            if unicodedata.category(chr(point))[0] not in "LM":
                counts[point] = 0
        shares += counts / max(counts.sum(), 1)
    found = np.flatnonzero(shares)
    common = found[np.argsort(-shares[found], kind="stable")][: _OTHER - 1]
    symbols = np.zeros(_NUM_POINTS, dtype=np.uint8)
    symbols[found] = _OTHER
    symbols[common] = np.arange(1, len(common) + 1)
    return symbols


def _triples(
    lines: Sequence[str], symbols: NDArray[np.uint8]
) -> tuple[NDArray[np.int32], NDArray[np.bool_], NDArray[np.int64]]:
    """Each character of N lines, with the two before it in its word.

    Returns:
        (C,) numbers of the triples, (C,) whether it is a letter, (N,) where lines begin.
    """
    points = _points(lines)
    third = symbols[points].astype(np.int32)
    second = np.concatenate((third[:1] * 0, third[:-1]))
    first = np.concatenate((third[:1] * 0, second[:-1]))
    first[second == 0] = 0  # each word on its own
    ends = np.flatnonzero(points == ord("\n"))
    starts = np.concatenate((ends[:1] * 0, ends[:-1] + 1))
    return (first * _NUM_SYMBOLS + second) * _NUM_SYMBOLS + third, third != 0, starts


def _points(lines: Sequence[str]) -> NDArray[np.uint32]:
    """The code points of lines, each with a line feed, in small letters and without code."""
    text = "".join(f"{line[:_MAX_CHARACTERS]}\n" for line in lines)
    text = _CODE.sub(" ", text).lower()
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
