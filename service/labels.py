"""Labels of metrics, logs and spans: a language pair and its checkpoint.

Owns the two labels and their bound: a metric's series are those of what is loaded, of a few pairs
that were loaded before, and of two words. Pure; the instruments are `service.telemetry.metrics`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from model.text.language import LanguagePair

MAX_GONE = 32
"""Pairs that are loaded no more, of which series are kept: long enough to be scraped once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Pair and checkpoint that translate.

    Attributes:
        pair: "en>zh-Hans": from where to where.
        checkpoint: The name of the checkpoint that it belongs to.
    """

    pair: str
    checkpoint: str


NONE = Served(pair="none", checkpoint="none")
"""Of a request for which no pair was chosen: a probe, or one that was refused before."""

OTHER = Served(pair="other", checkpoint="other")
"""Of a pair whose series are gone: it was loaded long ago, and something of it still ran."""


def served_by(pair: LanguagePair, checkpoint: str) -> Served:
    """The labels of a pair and its checkpoint."""
    return Served(pair=f"{pair.source}>{pair.target}", checkpoint=checkpoint)


class ServedLabels:
    """Pairs that have series of their own."""

    def __init__(self) -> None:
        self._loaded: frozenset[Served] = frozenset()
        self._gone: dict[Served, None] = {}  # the one that went first, first

    def load(self, loaded: Iterable[Served]) -> list[Served]:
        """Replace the pairs that are loaded.

        Returns:
            Those that have no series any more.
        """
        was_loaded, self._loaded = self._loaded, frozenset(loaded)
        known = (*self._gone, *sorted(was_loaded, key=lambda one: (one.checkpoint, one.pair)))
        gone = [one for one in known if one not in self._loaded]
        dropped = gone[: max(0, len(gone) - MAX_GONE)]
        self._gone = dict.fromkeys(gone[len(dropped) :])
        return dropped

    def bounded(self, served: Served | None) -> Served:
        """The labels of what was served, or of nothing."""
        if served is None:
            return NONE
        return served if served in self._loaded or served in self._gone else OTHER
