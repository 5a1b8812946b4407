"""Wording of the contracts: how each says from what to what, and which texts.

Owns that of requests for translation and of documents, as functions that find a route in a table:
the contracts' own, so that a router and a server never read one request in two ways. Which group
has a route is `service.router.choice`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from model.text.pipeline import without_surrogates
from service.api.deepl.request import parse_route
from service.api.languages import (
    AUTO,
    LIBRETRANSLATE_ALIASES,
    NO_ALIASES,
    ChosenRoute,
    choose_route,
)
from service.api.libretranslate.request import required_string
from service.errors import invalid
from service.models.routes.routing import RoutingTable

Values = Mapping[str, object]
Find = Callable[[RoutingTable], ChosenRoute]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """How one contract asks.

    Attributes:
        text: Name of its texts.
        find: The route that values mean in a table; a `RequestError` where they mean none.
        takes_forms: Values may be in a form or the query string.
        takes_plain_files: A document may be the body, and its values in the query string.
        glossaries: Names of the values that name glossaries which a server keeps.
    """

    text: str
    find: Callable[[Values, RoutingTable], ChosenRoute]
    takes_forms: bool = False
    takes_plain_files: bool = False
    glossaries: Sequence[str] = ()

    def listed(self, values: Values) -> Sequence[object]:
        """What a request has for texts."""
        given = values.get(self.text)
        return given if isinstance(given, list) else [given]

    def texts(self, values: Values) -> tuple[str, ...]:
        """The texts of a request; none where they are not what the contract wants."""
        listed = self.listed(values)
        return tuple(without_surrogates(one) for one in listed if isinstance(one, str))


def _libretranslate(values: Values, table: RoutingTable) -> ChosenRoute:
    return choose_route(
        table,
        source=required_string(values, "source"),
        target=required_string(values, "target"),
        aliases=LIBRETRANSLATE_ALIASES,
    )


def _v1(values: Values, table: RoutingTable) -> ChosenRoute:
    source, target = values.get("source") or AUTO, values.get("target")
    model = values.get("model") or None
    if not isinstance(target, str) or not target:
        raise invalid("target is missing, or no string", limit="string")
    if not isinstance(source, str) or not isinstance(model, str | None):
        raise invalid("source and model must be strings", limit="string")
    return choose_route(table, source=source, target=target, aliases=NO_ALIASES, model=model)


LIBRETRANSLATE = Wording(text="q", find=_libretranslate, takes_forms=True)
V1 = Wording(text="texts", find=_v1, takes_plain_files=True)
DEEPL = Wording(
    text="text", find=parse_route, takes_forms=True, glossaries=("glossary_id", "glossary_ids")
)

OF_TEXTS: Mapping[str, Wording] = MappingProxyType(
    {
        "/translate": LIBRETRANSLATE,
        "/suggest": LIBRETRANSLATE,
        "/v1/translate": V1,
        "/v1/translate/stream": V1,
        "/v2/translate": DEEPL,
    }
)
OF_DOCUMENTS: Mapping[str, Wording] = MappingProxyType(
    {"/translate_file": LIBRETRANSLATE, "/v1/documents": V1, "/v2/document": DEEPL}
)
ANSWERED_WHEN_DONE = frozenset({"/translate_file"})
"""Of these the paths whose answer waits until the file is translated."""
