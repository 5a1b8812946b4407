"""Languages as contracts spell them: names, aliases, and the route that a request means.

Owns the two small tables that LibreTranslate's clients rely on. Inside, a language is a
canonical BCP-47 tag and nothing else.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType

from model.errors import InputError
from model.text.language import canonical_tag, lookup_tags
from service.errors import RequestError, invalid, scalar, unknown_model, unsupported_language
from service.models.pivot import find_route, reachable
from service.models.routing import Directions, Route, RoutingTable

AUTO = "auto"
MAX_LISTED = 250
"""Languages or models that a refusal lists; of more, the first."""

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
class ChosenRoute:
    """Route that a request's two codes mean.

    Attributes:
        route: From where to where.
        is_detected: The source was "auto".
    """

    route: Route
    is_detected: bool


def find_tags(code: str, aliases: Mapping[str, str], known: Collection[str]) -> list[str]:
    """The loaded languages that a code may mean, the nearest first.

    Args:
        code: Read without regard to case; a region that is not loaded is left out.
        aliases: Codes that are not BCP-47 or mean more than they say, in lower case.
        known: The loaded languages.

    Raises:
        InputError: It is no code.
    """
    tag = aliases.get(code.lower()) or canonical_tag(code)
    return [nearer for nearer in lookup_tags(tag) if nearer in known]


def choose_route(
    table: RoutingTable,
    *,
    source: str,
    target: str,
    aliases: Mapping[str, str],
    model: str | None = None,
) -> ChosenRoute:
    """The route between two codes, each of which is read as `find_tags` does.

    Of what they may mean the nearest languages are taken that there is a route between, and one
    hop before two.

    Args:
        table: What is served.
        source: A code, or "auto" for the only loaded language that goes straight to the target.
        target: A code.
        aliases: Codes that are not BCP-47 or mean more than they say, in lower case.
        model: Name of the only checkpoint that may translate; None leaves it to the table.

    Raises:
        RequestError: A 400: no code, a language or a model that is not loaded, or languages that
            there is no route between.
    """
    directions = table.all if model is None else _directions_of(table, model)
    is_detected = source.lower() == AUTO
    sources = [] if is_detected else _tags(source, aliases, directions.languages)
    targets = _tags(target, aliases, directions.languages)
    if is_detected:
        sources = [_only_source(directions, targets)]
    found = list(product(sources, targets))
    for hop in (directions.hop(*languages) for languages in found):
        if hop is not None:
            return ChosenRoute(route=Route(hops=(hop,)), is_detected=is_detected)
    if model is not None:
        raise _not_translated(table, model, found[0])
    for route in (find_route(table, *languages) for languages in found):
        if route is not None and not is_detected:
            return ChosenRoute(route=route, is_detected=False)
    raise _unreachable(table, *found[0])


def _directions_of(table: RoutingTable, model: str) -> Directions:
    directions = table.of(model)
    if directions is None:
        shown = scalar(model)
        subject = f"model {shown}" if isinstance(shown, str) else "this model"
        raise unknown_model(
            f"{subject} is not loaded", value=shown, limit=_listed(table.names) or None
        )
    return directions


def _not_translated(table: RoutingTable, model: str, languages: tuple[str, str]) -> RequestError:
    source, target = languages
    others = [hop.checkpoint for hop in table.all.hops(source, target)]
    return unknown_model(
        f"model {model} does not translate from {language_name(source)} ({source})"
        f" to {language_name(target)} ({target})",
        value=scalar(model),
        limit=_listed(others) or None,
    )


def _unreachable(table: RoutingTable, source: str, target: str) -> RequestError:
    return unsupported_language(
        f"{language_name(target)} ({target}) is not available as a target language from"
        f" {language_name(source)} ({source})",
        value=target,
        limit=_listed(reachable(table, source)) or None,
    )


def _only_source(directions: Directions, targets: Sequence[str]) -> str:
    """The one language from which the target can be reached.

    Where there is none, the only one there is: the refusal that follows names it.
    """
    found = (directions.sources(target) for target in targets)
    sources = next(filter(None, found), directions.all_sources)
    if len(sources) > 1:
        raise invalid(
            f"source is auto, but {len(sources)} source languages are loaded; name one of them",
            value=AUTO,
            limit=_listed(sources),
        )
    return sources[0]


def _tags(code: str, aliases: Mapping[str, str], known: Collection[str]) -> list[str]:
    try:
        tags = find_tags(code, aliases, known)
    except InputError as error:
        raise _unsupported("this language code", len(code), known) from error
    if not tags:
        raise _unsupported(code, code, known)
    return tags


def _unsupported(shown: str, value: str | int, known: Iterable[str]) -> RequestError:
    return unsupported_language(f"{shown} is not supported", value=value, limit=_listed(known))


def _listed(names: Iterable[str]) -> str:
    """Names for a message, the first of many."""
    every = list(names)
    more = [f"… ({len(every)})"] if len(every) > MAX_LISTED else []
    return ", ".join([*every[:MAX_LISTED], *more])
