"""Languages as contracts spell them: names, aliases, and the route that a request means.

Owns the two small tables that LibreTranslate's clients rely on. Inside, a language is a
canonical BCP-47 tag and nothing else.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from types import MappingProxyType

from model.errors import InputError
from model.text.languages.tags import ARGOS_CODES, lenient_tag, lookup_tags
from service.errors import RequestError, invalid, scalar, unknown_model, unsupported_language
from service.models.routes.pivot import find_route, reachable, sources
from service.models.routes.routing import Directions, Route, RoutingTable

AUTO = "auto"
MAX_LISTED = 250
"""Languages or models that a refusal lists; of more, the first."""

LIBRETRANSLATE_ALIASES = ARGOS_CODES
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
    """Route that a request's two codes mean; of "auto" the routes, of which each text takes one.

    Attributes:
        route: From where to where; of "auto" the one of a text that says nothing of its language.
        by_source: Of "auto" the route from each language that a text may be in, the target among
            them; None where the source is named.
    """

    route: Route
    by_source: Mapping[str, Route] | None = None

    @property
    def is_detected(self) -> bool:
        """The source was "auto"."""
        return self.by_source is not None


def find_tags(code: str, aliases: Mapping[str, str], known: Collection[str]) -> list[str]:
    """The loaded languages that a code may mean, the nearest first.

    Args:
        code: Read without regard to case; a region that is not loaded is left out, and `_` is `-`.
        aliases: Codes that are not BCP-47 or mean more than they say, in lower case. What one says
            by itself comes after what it stands for: a checkpoint may be called by it.
        known: The loaded languages.

    Raises:
        InputError: It is no code.
    """
    meant = dict.fromkeys([aliases.get(code.lower()) or lenient_tag(code), lenient_tag(code)])
    nearest = dict.fromkeys(nearer for tag in meant for nearer in lookup_tags(tag))
    return [tag for tag in nearest if tag in known]


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
    hop before two. Where both mean one language, texts stay as they are.

    Args:
        table: What is served.
        source: A code, or "auto": any language that there is a route from, text by text.
        target: A code.
        aliases: Codes that are not BCP-47 or mean more than they say, in lower case.
        model: Name of the only checkpoint that may translate; None leaves it to the table.

    Raises:
        RequestError: A 400: no code, a language or a model that is not loaded, or languages that
            there is no route between.
    """
    key = (source, target, model, *aliases.items())
    look_up = partial(
        _chosen_route, table, source=source, target=target, aliases=aliases, model=model
    )
    # Of "auto" there is a route from every language, which is much to keep for a spelling of it.
    return look_up() if source.lower() == AUTO else table.remembered(key, look_up)


def _chosen_route(
    table: RoutingTable,
    *,
    source: str,
    target: str,
    aliases: Mapping[str, str],
    model: str | None,
) -> ChosenRoute:
    directions = table.all if model is None else _directions_of(table, model)
    is_named = source.lower() != AUTO
    # Of all that is loaded: a language that the model alone has not is no mistake in a code.
    named = _tags(source, aliases, table.all.languages) if is_named else []
    targets = _tags(target, aliases, table.all.languages)
    if not is_named:
        return _any_source(table, directions, targets, model=model)
    found = list(product(named, targets))
    for hop in (directions.hop(*languages) for languages in found):
        if hop is not None:
            return ChosenRoute(route=Route(hops=(hop,)))
    for one, other in found:
        if one == other and one in directions.languages:
            return ChosenRoute(route=Route(hops=(), stays_in=one))
    if model is not None:
        raise _not_translated(table, model, found[0])
    for route in (find_route(table, *languages) for languages in found):
        if route is not None:
            return ChosenRoute(route=route)
    raise _unreachable(table, *found[0])


def _any_source(
    table: RoutingTable, directions: Directions, targets: Sequence[str], *, model: str | None
) -> ChosenRoute:
    """The routes to the nearest target that there are any to."""
    for target in targets:
        by_source = _routes_to(table, target, None if model is None else directions)
        if by_source:
            first = next(iter(by_source.values()))
            stays = Route(hops=(), stays_in=target)
            return ChosenRoute(route=first, by_source={**by_source, target: stays})
    if model is not None:
        raise _not_translated(table, model, (None, targets[0]))
    raise _unreachable(table, directions.all_sources[0], targets[0])


def _routes_to(table: RoutingTable, target: str, straight: Directions | None) -> dict[str, Route]:
    """The routes from every other language; only those of one hop where its directions are given.

    The pivot is first: of a text that says nothing of its language, it is the likeliest.
    """
    if straight is None:
        routes = ((one, find_route(table, one, target)) for one in sources(table, target))
        return {source: route for source, route in routes if route is not None}
    hops = ((one, straight.hop(one, target)) for one in straight.sources(target) if one != target)
    return {source: Route(hops=(hop,)) for source, hop in hops if hop is not None}


def _directions_of(table: RoutingTable, model: str) -> Directions:
    directions = table.of(model)
    if directions is None:
        shown = scalar(model)
        subject = f"model {shown}" if isinstance(shown, str) else "this model"
        raise unknown_model(
            f"{subject} is not loaded", value=shown, limit=listed(table.names) or None
        )
    return directions


def _not_translated(
    table: RoutingTable, model: str, languages: tuple[str | None, str]
) -> RequestError:
    """A 400 that lists the models that do translate these languages; None is any source."""
    source, target = languages
    named = table.all.sources(target) if source is None else [source]
    others = dict.fromkeys(hop.checkpoint for one in named for hop in table.all.hops(one, target))
    shown = "" if source is None else f" from {language_name(source)} ({source})"
    return unknown_model(
        f"model {model} does not translate{shown} to {language_name(target)} ({target})",
        value=scalar(model),
        limit=listed(others) or None,
    )


def _unreachable(table: RoutingTable, source: str, target: str) -> RequestError:
    return unsupported_language(
        f"{language_name(target)} ({target}) is not available as a target language from"
        f" {language_name(source)} ({source})",
        value=target,
        limit=listed(reachable(table, source)) or None,
    )


def languages_by_likelihood(table: RoutingTable) -> tuple[str, ...]:
    """All loaded languages, the pivot first: a text that says nothing is taken for it."""
    first = [tag for tag in table.all.languages if tag == table.pivot]
    return tuple(dict.fromkeys([*first, *table.all.languages]))


def several_sources(tags: Sequence[str]) -> RequestError:
    """A 400: the source is "auto", and without detection it could be any of several languages."""
    return invalid(
        f"source is auto, but {len(tags)} source languages are loaded and detection is off;"
        " name one of them",
        value=AUTO,
        limit=listed(tags),
    )


def _tags(code: str, aliases: Mapping[str, str], known: Collection[str]) -> list[str]:
    try:
        tags = find_tags(code, aliases, known)
    except InputError as error:
        raise _unsupported("this language code", len(code), known) from error
    if not tags:
        raise _unsupported(code, code, known)
    return tags


def _unsupported(shown: str, value: str | int, known: Iterable[str]) -> RequestError:
    return unsupported_language(f"{shown} is not supported", value=value, limit=listed(known))


def listed(names: Iterable[str]) -> str:
    """Names for a message, the first of many."""
    every = list(names)
    more = [f"… ({len(every)})"] if len(every) > MAX_LISTED else []
    return ", ".join([*every[:MAX_LISTED], *more])
