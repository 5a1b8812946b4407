"""Metrics of documents: jobs by state, and what became of documents by kind.

Owns these instruments. Kinds are a closed list, so labels are bounded.
"""

from collections import Counter as Counted
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

DocumentResult = Literal["translated", "refused", "failed", "cancelled"]
"""There is a result; the document or what was asked is at fault; something else is; its caller did
not want it any more."""

_STATES = ("queued", "translating", "done", "failed")


class DocumentMetrics:
    """Instruments of documents, in the registry that is passed in."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._documents = Counter(
            "dragoman_documents",
            "Documents whose jobs have ended, by kind and result.",
            ("kind", "result"),
            registry=registry,
        )

    def kinds_known(self, kinds: Iterable[str]) -> None:
        """Have series of all kinds from the first scrape on."""
        for kind in kinds:
            for result in get_args(DocumentResult):
                self._documents.labels(kind, result)

    def ended(self, kind: str, result: DocumentResult) -> None:
        """A job has ended."""
        self._documents.labels(kind, result).inc()

    def watch_states(self, states: Callable[[], Iterable[str]]) -> None:
        """Also export how many jobs are in each state."""
        self._registry.register(_StateCollector(states))


class _StateCollector(Collector):
    """Jobs by state, counted at the scrape."""

    def __init__(self, states: Callable[[], Iterable[str]]) -> None:
        self._states = states

    def collect(self) -> Iterator[Metric]:
        """One family."""
        family = GaugeMetricFamily(
            "dragoman_document_jobs",
            "Documents that wait, are translated or are kept, by state.",
            labels=("state",),
        )
        counts = Counted(self._states())
        for state in _STATES:
            family.add_metric((state,), counts[state])
        yield family
