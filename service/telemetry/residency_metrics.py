"""Metrics of what is in memory: loads on demand, evictions, and what counts against the budget.

Owns these instruments, and the bound of their labels: a checkpoint has series of its own while few
have. What the numbers are is passed in; which checkpoints are loaded and evicted is
`service.models`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from service.labels import MAX_FIRST, OTHER
from service.telemetry.buckets import LOAD_SECONDS

LoadResult = Literal["success", "failure", "no_memory"]
"""A load that was wanted: it is served; it cannot be loaded; others that stay leave no room."""

UnloadReason = Literal["evicted", "reload", "lost"]
"""Why one that was loaded on demand left: for another one, by a reload, with its engine."""

MAX_CHECKPOINTS = 256
"""Checkpoints that have series of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Residency:
    """Checkpoints in memory now.

    Attributes:
        is_loaded: Every checkpoint that could be, and whether it is.
        by_state: How many checkpoints are in each state.
        num_engines: Engines by what they do.
        counted_bytes: What counts against the budget.
        budget_bytes: The budget; 0 where there is none.
    """

    is_loaded: Mapping[str, bool] = field(default_factory=dict)
    by_state: Mapping[str, int] = field(default_factory=dict)
    num_engines: Mapping[str, int] = field(default_factory=dict)
    counted_bytes: int = 0
    budget_bytes: int = 0


class ResidencyMetrics:
    """Instruments of loads on demand, in the registry that is passed in."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._named: set[str] = set()
        self._loads = Counter(
            "dragoman_checkpoint_loads",
            "Loads of checkpoints by their first requests, by result.",
            ("checkpoint", "result"),
            registry=registry,
        )
        self._unloads = Counter(
            "dragoman_checkpoint_unloads",
            "Checkpoints that were loaded on demand and left, by reason.",
            ("checkpoint", "reason"),
            registry=registry,
        )
        self._load_seconds = Histogram(
            "dragoman_checkpoint_load_seconds",
            "From the begin of a load on demand until its checkpoint is served.",
            buckets=LOAD_SECONDS,
            registry=registry,
        )

    def expect(self, checkpoints: Iterable[str]) -> None:
        """Have series of these checkpoints before anything happens, if they are few."""
        for name in islice(checkpoints, MAX_FIRST):
            label = self._label(name)
            for result in get_args(LoadResult):
                self._loads.labels(label, result)
            for reason in get_args(UnloadReason):
                self._unloads.labels(label, reason)

    def loaded(self, checkpoint: str, *, seconds: float) -> None:
        """A checkpoint was loaded on demand, and is served now."""
        self._loads.labels(self._label(checkpoint), "success").inc()
        self._load_seconds.observe(seconds)

    def not_loaded(self, checkpoint: str, result: LoadResult) -> None:
        """A load came to nothing."""
        self._loads.labels(self._label(checkpoint), result).inc()

    def unloaded(self, checkpoint: str, reason: UnloadReason) -> None:
        """A checkpoint that was loaded on demand is not served by that engine any more."""
        self._unloads.labels(self._label(checkpoint), reason).inc()

    def watch(self, residency: Callable[[], Residency]) -> None:
        """Also export what is in memory at a scrape."""
        self._registry.register(_ResidencyCollector(residency))

    def _label(self, checkpoint: str) -> str:
        if checkpoint not in self._named and len(self._named) >= MAX_CHECKPOINTS:
            return OTHER.checkpoint
        self._named.add(checkpoint)
        return checkpoint


class _ResidencyCollector(Collector):
    """Gauges, read when they are scraped."""

    def __init__(self, residency: Callable[[], Residency]) -> None:
        self._residency = residency

    def describe(self) -> list[Metric]:
        """Nothing: names are checked when they are collected."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The families."""
        now = self._residency()
        loaded_first = sorted(now.is_loaded.items(), key=lambda each: not each[1])
        yield _family(
            "checkpoint_resident",
            "1 if the checkpoint is in memory.",
            "checkpoint",
            dict(loaded_first[:MAX_CHECKPOINTS]),
        )
        yield _family("checkpoints", "Checkpoints there are, by state.", "state", now.by_state)
        yield _family("engines", "Engine processes, by what they do.", "state", now.num_engines)
        yield GaugeMetricFamily(
            "dragoman_memory_counted_bytes",
            "Bytes of weights and engines that count against the budget.",
            value=now.counted_bytes,
        )
        yield GaugeMetricFamily(
            "dragoman_memory_budget_bytes",
            "Bytes that weights and engines may take; 0 without a budget.",
            value=now.budget_bytes,
        )


def _family(
    name: str, documentation: str, label: str, values: Mapping[str, float]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"dragoman_{name}", documentation, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), float(value))
    return family
