"""Directory of the groups: which of them answers, and what each translates.

Owns what `GET /v1/models` of a server means for routes, what the states of a group's servers mean
for the group, and the tables over one group and over all.
Pure; who asks the groups, and when, is `service.router.watch`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from operator import attrgetter
from typing import Any

from model.errors import InputError
from model.text.languages.tags import LanguagePair, canonical_tag
from service.models.routes.routing import Offer, RoutingTable

_SERVED = frozenset({"loaded", "asleep"})
_NO_TABLE = RoutingTable([])


NOT_ASKED = "it was not asked yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """State of one server of a group, as it answered last.

    Attributes:
        problem: Why it would translate nothing now; nothing where it would.
        is_unready: The problem is its own word: it answers, and refuses at once.
        is_mute: It was waited for in vain: asking it once more would take time too.
        offers: What it translates, where it does.
    """

    problem: str = NOT_ASKED
    is_unready: bool = False
    is_mute: bool = False
    offers: tuple[Offer, ...] = ()

    @property
    def standing(self) -> int:
        """0 where it would translate now, 1 where it says that it would not, 2 for any other."""
        return 0 if not self.problem else 1 if self.is_unready else 2

    @property
    def is_answering(self) -> bool:
        """It is up, or says itself why not."""
        return self.standing < 2

    @property
    def is_away(self) -> bool:
        """It was asked, and does not answer."""
        return not self.is_answering and self.problem != NOT_ASKED


def joint_state(servers: Sequence[ServerState], offers: tuple[Offer, ...]) -> ServerState:
    """The state of a group: that of the server which is best off.

    Args:
        servers: At least one.
        offers: What the group had: of servers that are up one that has it still.
    """
    return min(servers, key=lambda one: (one.standing, one.offers is not offers, not one.is_away))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """State of a group, as it answered last.

    Attributes:
        name: Of the group.
        problem: Why it would translate nothing now; nothing where it would.
        is_unready: The problem is its own word: it answers, and refuses at once.
        offers: What it translated when it last answered.
        table: The routes among these.
        has_answered: It has answered at least once.
    """

    name: str
    problem: str = ""
    is_unready: bool = False
    offers: tuple[Offer, ...] = ()
    table: RoutingTable = field(default=_NO_TABLE, repr=False)
    has_answered: bool = False

    @property
    def is_up(self) -> bool:
        """It has answered, and would translate now."""
        return self.has_answered and not self.problem

    @property
    def standing(self) -> int:
        """0 where it would translate now, 1 where it says that it would not, 2 where it is away."""
        return 0 if self.is_up else 1 if self.is_answering else 2

    @property
    def is_answering(self) -> bool:
        """It is up, or says itself why not; any other is away: it is waited for in vain."""
        return self.is_up or (self.has_answered and self.is_unready)


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """All groups, in the order in which they were given.

    Attributes:
        groups: What is known of each.
        table: The routes of all checkpoints of all groups: what a refusal lists, and which
            languages a text may be in.
    """

    groups: tuple[GroupState, ...]
    table: RoutingTable = field(repr=False)

    @property
    def up(self) -> tuple[GroupState, ...]:
        """Those that would translate now."""
        return tuple(group for group in self.groups if group.is_up)

    @property
    def answering(self) -> tuple[GroupState, ...]:
        """Those that answer, those that would translate now before the others."""
        found = (group for group in self.groups if group.is_answering)
        return tuple(sorted(found, key=attrgetter("standing")))

    @property
    def away(self) -> tuple[GroupState, ...]:
        """Those that do not answer."""
        return tuple(group for group in self.groups if not group.is_answering)

    @property
    def languages(self) -> tuple[str, ...]:
        """All languages, each once."""
        return tuple(self.table.all.languages)


def directory_of(groups: Sequence[GroupState], *, pivot: str | None) -> Directory:
    """The directory of groups; checkpoints of one name in several of them are told apart."""
    taken: set[str] = set()
    offers = []
    for group in groups:
        for offer in group.offers:
            name = offer.name if offer.name not in taken else f"{offer.name} ({group.name})"
            taken.add(name)
            offers.append(Offer(name=name, pairs=_pairs(offer)))
    return Directory(groups=tuple(groups), table=RoutingTable(offers, pivot=pivot))


def offers_of(body: bytes, known: Iterable[tuple[Offer, ...]] = ()) -> tuple[Offer, ...]:
    """What a server translates, by its answer to `GET /v1/models`.

    Args:
        body: The answer.
        known: What others translate: where one of these is the same, that itself is the result.

    Raises:
        ValueError: It is no such answer.
    """
    try:
        models = json.loads(body)["models"]
        served = [model for model in models if model["state"] in _SERVED]
        found = tuple(
            Offer(name=str(model["name"]), pairs=_pairs_of_model(model)) for model in served
        )
    except (KeyError, TypeError, InputError, RecursionError) as error:
        raise ValueError("not the list of models of such a server") from error
    pairs = _pairs_by_name(found)
    return next((one for one in known if _pairs_by_name(one) == pairs), found)


def _pairs_by_name(offers: Sequence[Offer]) -> dict[str, dict[str, dict[str, LanguagePair]]]:
    return {offer.name: offer.by_source for offer in offers}


def _pairs(offer: Offer) -> Iterator[LanguagePair]:
    for targets in offer.by_source.values():
        yield from targets.values()


def _pairs_of_model(model: Mapping[str, Any]) -> list[LanguagePair]:
    """Its directions; of one that lists languages alone all between two of them."""
    told = model["pairs"]
    if told is None:
        named: list[tuple[str, str]] = [
            (source, target)
            for source, target in product(model["sources"], model["targets"])
            if source != target
        ]
    else:
        named = [(pair["source"], pair["target"]) for pair in told]
    return [
        LanguagePair(source=canonical_tag(source), target=canonical_tag(target))
        for source, target in named
    ]
