"""Labels of metrics, logs and spans: a language pair and its checkpoint.

Owns the two labels and their bound: a metric's series are those of what is loaded (where that is
much, of the pairs that were asked for first), of a few pairs that were loaded before, and of a few
words. Pure; the instruments are `service.telemetry.metrics`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from model.text.languages.tags import LanguagePair

MAX_UNLOADED = 32
"""Pairs that are loaded no more, of which series are kept: long enough to be scraped once more."""


MAX_FIRST = 64
"""Pairs that have series from the start, where there are no more than these."""

MAX_PAIRS = 256
"""Pairs that have series of their own; all others of a checkpoint are one."""

PIVOT = "pivot"
"""Instead of a checkpoint's name, where two of them translate one after the other."""


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """Pair and checkpoint that translate; a structure, as every request looks it up a few times.

    Attributes:
        pair: "en>zh-Hans": from where to where.
        checkpoint: The name of the checkpoint that it belongs to.
    """

    pair: str
    checkpoint: str


NONE = Served(pair="none", checkpoint="none")
"""Of a request for which no pair was chosen: a probe, or one that was refused before."""

SEVERAL = Served(pair="several", checkpoint="several")
"""Of a request whose texts were detected to be in several languages."""

OTHER = Served(pair="other", checkpoint="other")
"""Of a pair whose series are removed: it was loaded long ago, and something of it still ran."""


def served_by(pair: LanguagePair, checkpoint: str) -> Served:
    """The labels of a pair and its checkpoint."""
    return Served(pair=f"{pair.source}>{pair.target}", checkpoint=checkpoint)


def first_served(offers: Mapping[str, Sequence[LanguagePair]]) -> list[Served]:
    """The pairs that have series from the start: all, or none where they are more than a few.

    Args:
        offers: The pairs of every checkpoint.
    """
    if sum(map(len, offers.values())) > MAX_FIRST:
        return []
    return [served_by(pair, name) for name, pairs in offers.items() for pair in pairs]


class ServedLabels:
    """Pairs that have series of their own."""

    def __init__(self) -> None:
        self._loaded: set[Served] = set()
        self._on_demand: frozenset[str] = frozenset()
        self._unloaded: dict[Served, None] = {}  # the one that went first, first

    def load(self, loaded: Iterable[Served], *, on_demand: Collection[str] = ()) -> list[Served]:
        """Replace the pairs that are loaded.

        Args:
            loaded: Those that have series from now on.
            on_demand: Checkpoints whose pairs have series from their first request on, as long as
                there are fewer than `MAX_PAIRS`.

        Returns:
            Those that have no series any more.
        """
        was_loaded, self._on_demand = self._loaded, frozenset(on_demand)
        kept = (one for one in was_loaded if one.checkpoint in self._on_demand)
        self._loaded = {*loaded, *kept}
        known = (*self._unloaded, *sorted(was_loaded, key=lambda one: (one.checkpoint, one.pair)))
        unloaded = [one for one in known if one not in self._loaded]
        dropped = unloaded[: max(0, len(unloaded) - MAX_UNLOADED)]
        self._unloaded = dict.fromkeys(unloaded[len(dropped) :])
        return dropped

    def bounded(self, served: Served | None) -> Served:
        """The labels of what was served, or of nothing."""
        if served is None:
            return NONE
        if served in self._loaded or served in self._unloaded or served == SEVERAL:
            return served
        if served.checkpoint not in self._on_demand:
            return OTHER
        if len(self._loaded) >= MAX_PAIRS:
            served = Served(pair=OTHER.pair, checkpoint=served.checkpoint)
        self._loaded.add(served)
        return served
