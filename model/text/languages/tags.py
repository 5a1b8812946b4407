"""Language tags: BCP-47 (RFC 5646) well-formedness and canonical case.

Owns the spelling of a tag, which others may stand for it, and the codes of Argos and LibreTranslate
that are none. Names of languages live in the API adapters, and which languages are translated is a
checkpoint's own list.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from model.errors import InputError

MAX_TAG_LENGTH = 64

_MAX_KEPT = 1024
"""Codes whose reading is kept: requests have few, and each of them several times."""

# RFC 5646, section 2.1: langtag, without the grandfathered tags. Every alternative starts
# after a hyphen and has a bounded length, so matching is linear.
_TAG = re.compile(
    r"(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})"  # language, extended language
    r"(?:-[a-z]{4})?"  # script
    r"(?:-(?:[a-z]{2}|[0-9]{3}))?"  # region
    r"(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"  # variants
    r"(?:-[0-9a-wyz](?:-[a-z0-9]{2,8})+)*"  # extensions
    r"(?:-x(?:-[a-z0-9]{1,8})+)?",  # private use
    re.IGNORECASE | re.ASCII,
)
_SCRIPTS: Mapping[str, str] = MappingProxyType(
    {
        "zh-CN": "zh-Hans",
        "zh-SG": "zh-Hans",
        "zh-HK": "zh-Hant",
        "zh-MO": "zh-Hant",
        "zh-TW": "zh-Hant",
    }
)
"""Tags that say which of two scripts is written there (CLDR, likely subtags)."""

_USUAL_SCRIPTS: Mapping[str, str] = MappingProxyType(
    {
        language: script
        for script, languages in (
            ("Arab", "ckb fa ks ota pnb ps sd ug ur"),
            ("Cyrl", "ab ba dng kk ky mn orv sah sr tg tt"),
            ("Grek", "grc"),
            ("Guru", "pa"),
            ("Hans", "zh"),
            ("Hant", "lzh yue"),
            ("Hebr", "lad"),
            ("Latn", "ace akl ang az bjn bs crh gcf ha ia ie io jbo ku la lfn lld max min ms nov"),
            ("Latn", "osp prg rom sh sq tk tlh tmw uz vo"),
            ("Tibt", "dz"),
        )
        for language in languages.split()
    }
)
"""Usual script of languages that are written, or named by programs, in more than one."""

ARGOS_CODES: Mapping[str, str] = MappingProxyType({"zh": "zh-Hans", "zt": "zh-Hant", "pb": "pt-BR"})
"""Codes of Argos, and so of LibreTranslate, that are no tags, or leave open what is meant."""

_SYNONYMS: Mapping[str, str] = MappingProxyType(
    {"fil": "tl", "in": "id", "iw": "he", "nb": "no", "no": "nb", "tl": "fil"}
)
"""Other codes of a language: revisions of ISO 639-1, and a macrolanguage for its largest part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguagePair:
    """Direction of translation, with the pieces that ask a multilingual network for it.

    Attributes:
        source: BCP-47 tag in canonical case (`en`, `zh-Hans`).
        target: The same for the target.
        source_prefix: Pieces before the source (`>>cmn_Hans<<`, `__en__`), which no text has.
        target_prefix: Pieces after the start token, forced (`__zh__`).
        source_prompt: Pieces before the prefix that ask in words, as T5 is asked; text has them
            too.
    """

    source: str
    target: str
    source_prefix: tuple[str, ...] = ()
    target_prefix: tuple[str, ...] = ()
    source_prompt: tuple[str, ...] = ()

    @property
    def source_start(self) -> tuple[str, ...]:
        """All pieces before those of the text."""
        return self.source_prompt + self.source_prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language of a network that translates each of its languages into each other.

    Attributes:
        tag: BCP-47 tag in canonical case.
        source_prefix: Pieces before the source when the source is of this language.
        wanted_prefix: Pieces before the source, after those, when the target is (SMaLL-100).
        wanted_prompt: Pieces before all of these, that text has too, when the target is.
        target_prefix: Pieces after the start token, forced, when the target is.
    """

    tag: str
    source_prefix: tuple[str, ...] = ()
    wanted_prefix: tuple[str, ...] = ()
    target_prefix: tuple[str, ...] = ()
    wanted_prompt: tuple[str, ...] = ()


def all_pairs(languages: Iterable[Language]) -> tuple[LanguagePair, ...]:
    """Every language into every other one, in their order."""
    languages = tuple(languages)
    return tuple(
        LanguagePair(
            source=source.tag,
            target=target.tag,
            source_prefix=source.source_prefix + target.wanted_prefix,
            target_prefix=target.target_prefix,
            source_prompt=target.wanted_prompt,
        )
        for source in languages
        for target in languages
        if source is not target
    )


def canonical_tag(tag: str) -> str:
    """The tag in canonical case: `EN` → `en`, `zh-hans` → `zh-Hans`, `pt_BR` is refused.

    The rule is that of RFC 5646, section 2.1.1: a region is upper case, a script has a
    capital, everything else, and whatever follows a singleton, is lower case.

    Raises:
        InputError: The tag is not well-formed.
    """
    if len(tag) > MAX_TAG_LENGTH:
        raise InputError(
            f"the language tag has {len(tag)} characters; at most {MAX_TAG_LENGTH} are allowed",
            value=len(tag),
            limit=MAX_TAG_LENGTH,
        )
    if _TAG.fullmatch(tag) is None:
        raise InputError(
            f"{tag!r} is not a well-formed language tag such as 'en', 'zh-Hans' or 'pt-BR'",
            value=tag,
            limit="a BCP-47 language tag",
        )
    first, *rest = tag.lower().split("-")
    parts, is_after_singleton = [first], False
    for part in rest:
        is_after_singleton = is_after_singleton or len(part) == 1
        parts.append(part if is_after_singleton else _cased(part))
    return "-".join(parts)


def primary_language(tag: str) -> str:
    """The language alone, in lower case: `zh-Hans` → `zh`."""
    return tag.partition("-")[0].lower()


@lru_cache(maxsize=_MAX_KEPT)
def lookup_tags(tag: str) -> tuple[str, ...]:
    """The canonical tags that may stand for one, the nearest first: `de-AT` → `de-AT`, `de`.

    The rule is that of RFC 4647, section 3.4, but a script or an extended language is left out
    only where it goes without saying, else it would be another language to its readers: `zh-TW` →
    `zh-TW`, `zh-Hant`; `sr-Cyrl` → `sr-Cyrl`, `sr`; `sr` → `sr`, `sr-Cyrl`. Another code of the
    same language comes last: `no` → `no`, `nb`.
    """
    if tag in _SCRIPTS:
        nearer: tuple[str, ...] = (tag, _SCRIPTS[tag])
    else:
        parts = tag.split("-")
        is_second_kept = parts[1:] and parts[1].isalpha() and len(parts[1]) in {3, 4}
        shortest = 2 if is_second_kept else 1
        nearer = tuple("-".join(parts[:size]) for size in range(len(parts), shortest - 1, -1))
    last = nearer[-1]
    others = (_with_usual_script(last), without_usual_script(last), _SYNONYMS.get(last))
    return tuple(dict.fromkeys([*nearer, *filter(None, others)]))


def without_usual_script(tag: str) -> str:
    """The tag without a script that goes without saying: `az-Latn` → `az`, `zh-Hans` → `zh`."""
    language, _, script = tag.partition("-")
    return language if script and _USUAL_SCRIPTS.get(language) == script else tag


def _with_usual_script(tag: str) -> str | None:
    script = _USUAL_SCRIPTS.get(tag)
    return None if script is None else f"{tag}-{script}"


@lru_cache(maxsize=_MAX_KEPT)
def lenient_tag(code: str) -> str:
    """The canonical tag of a code as people and other programs write it: `zh_Hans` → `zh-Hans`.

    Raises:
        InputError: It is none.
    """
    try:
        return canonical_tag(code.replace("_", "-"))
    except InputError:
        return canonical_tag(code)  # which says what is wrong with it as it was written


def _cased(part: str) -> str:
    if len(part) == 2:
        return part.upper()
    if len(part) == 4:
        return part.capitalize()  # a script: a variant of four begins with a digit, and stays
    return part
