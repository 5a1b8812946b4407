"""Settings of the filters of training text, and the scripts of each language.

Does not own the filters themselves, which are `model.train.data.filtering`.
"""

from dataclasses import dataclass

from model.errors import ConfigError

_MAX_MARGIN = 5.0  # nats a letter: some log 128, as if every letter had been drawn by lot


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterConfig:
    """Limits beyond which a training pair is left out; the defaults leave out none.

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
