"""Which sentence pairs are not worth learning from, and how many were left out for what.

Owns the filters and their names. Lengths and ratios in tokens are asked for after tokenising,
everything else before; does not own reading or tokenising, or how languages are told apart
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

from model.errors import ConfigError
from model.train.data.languages import LanguageProfiles

_MAX_MARGIN = 5.0  # nats a letter: some log 128, as if every letter had been drawn by lot


class Verdict(IntEnum):
    """What becomes of a pair: it is kept, or the reason why it is left out. One byte each."""

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

    @property
    def words(self) -> str:
        """For people, such as "source script"; reports are stored with them."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterConfig:
    """What is left out of the training text; as it stands, nothing.

    Attributes:
        drop_blank: Leave pairs with a blank side out; otherwise a blank line is an error.
        drop_identical: Leave pairs out whose sides say the same, but for case, digits and signs.
        drop_duplicates: Keep a pair's first occurrence in its direction only, in the order of
            the corpora.
        max_characters: Limit of either side; 0 for none.
        max_ratio: Limit of the longer side's tokens over the shorter one's, EOS counted on both;
            0 for none.
        min_script_share: Share of a side's letters that must be of its language's script; 0
            leaves scripts alone. Technical Chinese has many Latin letters: 0.2 is a lot there.
        language_margin: Nats a letter by which a side may be likelier in another of the run's
            languages (`model.train.data.languages`; Dunning 1994); 0 leaves languages alone, 0.2 is
            usual. Sides of few letters need more, or are left alone.
    """

    drop_blank: bool = False
    drop_identical: bool = False
    drop_duplicates: bool = False
    max_characters: int = 0
    max_ratio: float = 0.0
    min_script_share: float = 0.0
    language_margin: float = 0.0

    def __post_init__(self) -> None:
        """Reject limits that cannot be."""
        if self.max_characters < 0:
            raise ConfigError(
                f"data.filters.max_characters is {self.max_characters}; it must be at least 0"
            )
        if self.max_ratio != 0.0 and not self.max_ratio > 1.0:
            raise ConfigError(
                f"data.filters.max_ratio is {self.max_ratio}; it must be above 1, or 0"
            )
        if not 0.0 <= self.min_script_share <= 1.0:
            raise ConfigError(
                f"data.filters.min_script_share is {self.min_script_share}; it must be from 0 to 1"
            )
        if not 0.0 <= self.language_margin <= _MAX_MARGIN:
            raise ConfigError(
                f"data.filters.language_margin is {self.language_margin}; it must be from 0 to"
                f" {_MAX_MARGIN:g}"
            )


class LineFilter:
    """Judges pairs of one direction before they are tokenised.

    Args:
        config: What is asked for.
        source: BCP-47 tag of the source.
        target: That of the target.
        languages: What the run's languages look like, if the config asks for it.

    Raises:
        ConfigError: Scripts are asked for and that of a language is not known.
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

    def judge_all(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.uint8]:
        """(P,) the `Verdict` on each pair."""
        verdicts = np.array([self.judge(*pair) for pair in pairs], dtype=np.uint8)
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

    def judge(self, source: str, target: str) -> Verdict:
        """What is known of a pair without the run's languages."""
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


def pair_hash(source: str, target: str) -> int:
    """64 bits of a pair, to find its duplicates by (two pairs of 10⁸ collide by chance: 0.03 %)."""
    digest = hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def mark_duplicates(verdicts: NDArray[np.uint8], hashes: NDArray[np.uint64]) -> None:
    """Judge every kept pair but the first of its hash to be a duplicate, in place.

    Args:
        verdicts: (P,) of all corpora of a direction, in their order.
        hashes: (P,) of the same pairs.
    """
    kept = np.flatnonzero(verdicts == Verdict.KEPT)
    _, first = np.unique(hashes[kept], return_index=True)
    is_first = np.zeros(len(kept), dtype=bool)
    is_first[first] = True
    verdicts[kept[~is_first]] = Verdict.DUPLICATE


def judge_tokens(
    num_source: int, num_target: int, *, max_length: int, config: FilterConfig
) -> Verdict:
    """What becomes of a pair by its numbers of tokens.

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
    """What became of one corpus.

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
    """Count verdicts."""
    counts = dict(zip(Verdict, np.bincount(verdicts, minlength=len(Verdict)).tolist(), strict=True))
    return CorpusReport(
        direction=direction,
        name=name,
        num_pairs=len(verdicts),
        num_kept=counts.pop(Verdict.KEPT),
        dropped={reason.words: count for reason, count in counts.items() if count},
    )


def script_share(text: str, names: frozenset[str]) -> float:
    """Share of a text's letters whose script is one of `names`; 1 for a text without letters."""
    letters = [character for character in text if character.isalpha()]
    if not letters:
        return 1.0
    return sum(_script(letter) in names for letter in letters) / len(letters)


def script_names(tag: str) -> frozenset[str]:
    """Unicode's words for the scripts a language is written in.

    Args:
        tag: BCP-47; a script subtag decides, else the language does.

    Raises:
        ConfigError: Neither is known here.
    """
    parts = tag.split("-")
    for part in parts[1:]:
        if part.title() in _SCRIPTS_BY_SUBTAG:
            return _SCRIPTS_BY_SUBTAG[part.title()]
    for names, languages in _LANGUAGES_BY_SCRIPT.items():
        if parts[0].lower() in languages.split():
            return frozenset(names.split())
    raise ConfigError(
        f"data.filters.min_script_share: the script of {tag!r} is not known; set it to 0, or give"
        f" the language a tag with a script ({', '.join(sorted(_SCRIPTS_BY_SUBTAG))})"
    )


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text)).casefold() or text.strip()


@lru_cache(maxsize=65536)
def _script(letter: str) -> str:
    # A letter's name begins with its script: "LATIN SMALL LETTER A", "CJK UNIFIED IDEOGRAPH-4E00".
    return unicodedata.name(letter, "").partition(" ")[0].partition("-")[0]


_SCRIPTS_BY_SUBTAG = {
    "Arab": frozenset({"ARABIC"}),
    "Cyrl": frozenset({"CYRILLIC"}),
    "Deva": frozenset({"DEVANAGARI"}),
    "Hans": frozenset({"CJK"}),
    "Hant": frozenset({"CJK"}),
    "Latn": frozenset({"LATIN"}),
}

_LANGUAGES_BY_SCRIPT = {
    "LATIN": (
        "af az bs ca cs cy da de en eo es et eu fi fil fr ga gl hr hu id is it jv la lb lt lv mg"
        " ms mt nb nl nn no oc pl pt ro sk sl so sq sv sw tl tr uz vi yo zu"
    ),
    "CJK": "zh yue wuu lzh",
    "CJK HIRAGANA KATAKANA": "ja",
    "HANGUL CJK": "ko",
    "CYRILLIC": "be bg kk ky mk mn ru tg tt uk",
    "ARABIC": "ar fa ps sd ug ur",
    "HEBREW": "he yi",
    "GREEK": "el",
    "DEVANAGARI": "hi mr ne sa",
    "BENGALI": "as bn",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "KANNADA": "kn",
    "MALAYALAM": "ml",
    "SINHALA": "si",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAI": "th",
    "LAO": "lo",
    "KHMER": "km",
    "MYANMAR": "my",
    "TIBETAN": "bo dz",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
    "ETHIOPIC": "am ti",
}
