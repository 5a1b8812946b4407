"""Languages as contracts spell them: names, aliases, and the pair that a request means.

Owns the two small tables that LibreTranslate's clients rely on. Inside, a language is a
canonical BCP-47 tag and nothing else.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from model.errors import InputError
from model.text.language import LanguagePair, canonical_tag, lookup_tags
from service.errors import RequestError, invalid, unsupported_language

AUTO = "auto"

LIBRETRANSLATE_ALIASES: Mapping[str, str] = MappingProxyType(
    {"zh": "zh-Hans", "zt": "zh-Hant", "pb": "pt-BR"}
)
NO_ALIASES: Mapping[str, str] = MappingProxyType({})

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "ar": "Arabic",
        "cs": "Czech",
        "de": "German",
        "en": "English",
        "es": "Spanish",
        "fr": "French",
        "hi": "Hindi",
        "it": "Italian",
        "ja": "Japanese",
        "ko": "Korean",
        "nl": "Dutch",
        "pl": "Polish",
        "pt": "Portuguese",
        "pt-BR": "Portuguese (Brazil)",
        "ru": "Russian",
        "tr": "Turkish",
        "uk": "Ukrainian",
        "vi": "Vietnamese",
        "zh-Hans": "Chinese",
        "zh-Hant": "Chinese (traditional)",
    }
)


def language_name(tag: str) -> str:
    """English name of a language; the tag itself when the table does not have it."""
    return _NAMES.get(tag, tag)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPair:
    """Language pair that a request's two codes mean.

    Attributes:
        pair: The direction.
        is_detected: The source was "auto".
    """

    pair: LanguagePair
    is_detected: bool


def find_tag(code: str, aliases: Mapping[str, str], known: Iterable[str]) -> str | None:
    """The loaded language that a code means, or None.

    Args:
        code: Read without regard to case; a region that is not loaded is left out.
        aliases: Codes that are not BCP-47 or mean more than they say, in lower case.
        known: The loaded languages.

    Raises:
        InputError: It is no code.
    """
    tag = aliases.get(code.lower()) or canonical_tag(code)
    loaded = frozenset(known)
    return next((shorter for shorter in lookup_tags(tag) if shorter in loaded), None)


def choose_pair(
    pairs: Sequence[LanguagePair], *, source: str, target: str, aliases: Mapping[str, str]
) -> ChosenPair:
    """The loaded pair between two codes, each of which is read as `find_tag` does.

    Args:
        pairs: The loaded pairs.
        source: A code, or "auto" for the only loaded language that goes to the target.
        target: A code.
        aliases: Codes that are not BCP-47 or mean more than they say, in lower case.

    Raises:
        RequestError: A 400: no code, a language that is not loaded, or a pair that is not.
    """
    known = [*(pair.source for pair in pairs), *(pair.target for pair in pairs)]
    is_detected = source.lower() == AUTO
    source_tag = None if is_detected else _tag(source, aliases, known)
    target_tag = _tag(target, aliases, known)
    if source_tag is None:
        source_tag = _only_source(pairs, target_tag)
    for pair in pairs:
        if (pair.source, pair.target) == (source_tag, target_tag):
            return ChosenPair(pair=pair, is_detected=is_detected)
    reachable = ", ".join(pair.target for pair in pairs if pair.source == source_tag)
    raise unsupported_language(
        f"{language_name(target_tag)} ({target_tag}) is not available as a target language from"
        f" {language_name(source_tag)} ({source_tag})",
        value=target_tag,
        limit=reachable or None,
    )


def _only_source(pairs: Sequence[LanguagePair], target_tag: str) -> str:
    """The one language from which the target can be reached.

    Where there is none, the only one there is: the refusal that follows names it.
    """
    sources = dict.fromkeys(pair.source for pair in pairs if pair.target == target_tag)
    sources = sources or dict.fromkeys(pair.source for pair in pairs)
    if len(sources) > 1:
        raise invalid(
            f"source is auto, but {len(sources)} source languages are loaded; name one of them",
            value=AUTO,
            limit=", ".join(sources),
        )
    return next(iter(sources))


def _tag(code: str, aliases: Mapping[str, str], known: list[str]) -> str:
    try:
        tag = find_tag(code, aliases, known)
    except InputError as error:
        raise _unsupported("this language code", len(code), known) from error
    if tag is None:
        raise _unsupported(code, code, known)
    return tag


def _unsupported(shown: str, value: str | int, known: list[str]) -> RequestError:
    languages = ", ".join(dict.fromkeys(known))
    return unsupported_language(f"{shown} is not supported", value=value, limit=languages)
