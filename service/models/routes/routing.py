"""Routes from one language to another: which checkpoint translates, of all that are served.

Owns the order among checkpoints that offer the same languages, and the look-up of one of them by
name. Pure: it knows what checkpoints offer and nothing of engines. Routes of two hops are
`service.models.routes.pivot`; which deployment has a checkpoint is
`service.models.deployments.registry`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from model.text.languages.tags import LanguagePair

T = TypeVar("T")


class Offer:
    """Directions that a checkpoint translates, by their languages.

    Made where a checkpoint is read, off the event loop: there may be tens of thousands.

    Args:
        name: Of the checkpoint; no other one has it.
        pairs: Its directions, each once.

    Attributes:
        name: Of the checkpoint.
        num_pairs: Directions.
        by_source: Its pairs by target, for each source.
        languages: All its languages, as they are named.
    """

    def __init__(self, *, name: str, pairs: Iterable[LanguagePair]) -> None:
        self.name = name
        self.num_pairs = 0
        self.by_source: dict[str, dict[str, LanguagePair]] = {}
        self.languages: dict[str, None] = {}
        for pair in pairs:
            self.num_pairs += 1
            self.languages[pair.source] = self.languages[pair.target] = None
            self.by_source.setdefault(pair.source, {})[pair.target] = pair

    def __repr__(self) -> str:
        return f"<Offer of {self.name}: {self.num_pairs} pairs>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """Translation by one checkpoint.

    Attributes:
        checkpoint: Its name.
        pair: One of its directions.
    """

    checkpoint: str
    pair: LanguagePair


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Way from one language to another, or from one to itself: such texts stay as they are.

    Attributes:
        hops: One, or two through a pivot: where the first ends the second begins. None where texts
            stay as they are.
        stays_in: The language of a route without hops; empty of all others.
    """

    hops: tuple[Hop, ...]
    stays_in: str = ""

    @property
    def source(self) -> str:
        """The language of the texts."""
        return self.hops[0].pair.source if self.hops else self.stays_in

    @property
    def target(self) -> str:
        """The language that they are translated to."""
        return self.hops[-1].pair.target if self.hops else self.stays_in

    @property
    def pivot(self) -> str | None:
        """The language between two hops; None where there is one hop."""
        return self.hops[0].pair.target if len(self.hops) > 1 else None

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """The names of the checkpoints, one a hop; none where texts stay as they are."""
        return tuple(hop.checkpoint for hop in self.hops)


class Directions:
    """All directions of some offers.

    Args:
        offers: In the order in which languages are listed.
        ranks: Of every offer, by name; of two for one direction, the lower rank is the better.
    """

    def __init__(self, offers: Sequence[Offer], ranks: Mapping[str, int]) -> None:
        self._languages = dict.fromkeys(tag for offer in offers for tag in offer.languages)
        self._by_source: dict[str, list[Offer]] = {}
        for offer in sorted(offers, key=lambda offer: ranks[offer.name]):
            for source in offer.by_source:
                self._by_source.setdefault(source, []).append(offer)

    def __repr__(self) -> str:
        return f"<Directions of {len(self._languages)} languages>"

    @property
    def languages(self) -> KeysView[str]:
        """All languages, sources and targets."""
        return self._languages.keys()

    @property
    def all_sources(self) -> tuple[str, ...]:
        """Languages that are translated from."""
        return tuple(self._by_source)

    def targets(self, source: str) -> tuple[str, ...]:
        """Languages that a language is translated to."""
        offers = self._by_source.get(source, ())
        return tuple(dict.fromkeys(tag for offer in offers for tag in offer.by_source[source]))

    def sources(self, target: str) -> tuple[str, ...]:
        """Languages that are translated to a language."""
        return tuple(
            source
            for source, offers in self._by_source.items()
            if any(target in offer.by_source[source] for offer in offers)
        )

    def hop(self, source: str, target: str) -> Hop | None:
        """The best translation of a direction; None if there is none."""
        return next(self._hops(source, target), None)

    def hops(self, source: str, target: str) -> tuple[Hop, ...]:
        """All translations of a direction, the best first."""
        return tuple(self._hops(source, target))

    def _hops(self, source: str, target: str) -> Iterator[Hop]:
        for offer in self._by_source.get(source, ()):
            pair = offer.by_source[source].get(target)
            if pair is not None:
                yield Hop(checkpoint=offer.name, pair=pair)


MAX_REMEMBERED = 1024
"""Of all that was looked up in a table, so much is kept."""


class RoutingTable:
    """Routes among the checkpoints that are served.

    Args:
        offers: Of all checkpoints; names are unique.
        preferred: Names that go before all others for what they offer, the first one first; a
            name that is not there is ignored.
        pivot: Language between two hops; None where there are no such routes.

    Attributes:
        all: The directions of all checkpoints.
        pivot: Language between two hops, or None.
    """

    def __init__(
        self, offers: Sequence[Offer], *, preferred: Sequence[str] = (), pivot: str | None = None
    ) -> None:
        self._offers = {offer.name: offer for offer in offers}
        self._ranks = ranks_of(offers, preferred)
        self.all = Directions(offers, self._ranks)
        self.pivot = pivot
        self._remembered: dict[Hashable, object] = {}

    def __repr__(self) -> str:
        return f"<RoutingTable of {len(self._offers)} checkpoints>"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the checkpoints, as they were offered."""
        return tuple(self._offers)

    def remembered(self, asked: Hashable, look_up: Callable[[], T]) -> T:
        """The remembered result of a look-up; looked up and kept the first time.

        Clients ask for the same languages again and again. What `look_up` raises is not kept.
        """
        known = self._remembered.get(asked)
        if known is None:
            known = look_up()
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            self._remembered[asked] = known
        return cast("T", known)

    def of(self, name: str) -> Directions | None:
        """The directions of one checkpoint; None if there is none of this name."""
        offer = self._offers.get(name)
        return None if offer is None else Directions([offer], self._ranks)


def ranks_of(offers: Iterable[Offer], preferred: Sequence[str]) -> dict[str, int]:
    """The rank of every offer by name: preferred ones, then those of fewest pairs, then by name.

    One that was made for few languages is taken before one that has them among many.
    """
    places = {name: place for place, name in reversed(list(enumerate(preferred)))}

    def order(offer: Offer) -> tuple[int, int, str]:
        return places.get(offer.name, len(preferred)), offer.num_pairs, offer.name

    return {offer.name: rank for rank, offer in enumerate(sorted(offers, key=order))}
