"""Metrics of the engines, collected when they are scraped.

Owns the engines' families: gauges, counters and the step histogram of all together, what each said
when it was warm, and which checkpoints they have. Labels are bounded (the loaded checkpoints, the
device, the arithmetic and its reasons). What processes take of the machine is read from /proc at
the scrape, engine by engine: a sum over engines would fall when one leaves, and a counter must not.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from service.engine.messages import ROWS_BUCKETS, EngineCounters, Ready
from service.telemetry.replica_metrics import ReplicaFacts, replica_families
from service.version import distribution_version

_EngineFamily = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily | InfoMetricFamily


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """Facts of one engine.

    Attributes:
        is_up: Whether it answers, or one of its replicas does.
        start_seconds: Time it took to be warm, from the start of its process; None before.
        num_threads: Its CPU threads, of all replicas together; None before.
        replicas: Its processes; none before the first.
    """

    is_up: bool = False
    start_seconds: float | None = None
    num_threads: int | None = None
    replicas: tuple[ReplicaFacts, ...] = ()


START = ""
"""The engine of the start among others: its series have no label."""


class EngineCollector(Collector):
    """Collector of the engines' counters, read when it is scraped.

    Args:
        counters: The latest counters, of all engines together; zeros before the first.
        num_pending: Segments accepted and not yet answered.
        max_pending: How many there may be, in all engines together.
        fullest_share: The greatest share of its own that one of them has; each refuses by itself.
        ready: What the latest engine said when it was warm, with all checkpoints; None before.
        engines: Those that serve: that of the start, whether it is there or not, and others by a
            checkpoint that each was loaded for.
        is_loaded: Names of the checkpoints' directories, and whether each was loaded.
    """

    def __init__(
        self,
        *,
        counters: Callable[[], EngineCounters],
        num_pending: Callable[[], int],
        max_pending: Callable[[], int],
        fullest_share: Callable[[], float],
        ready: Callable[[], Ready | None],
        engines: Callable[[], Mapping[str, EngineFacts]],
        is_loaded: Callable[[], Mapping[str, bool]] = dict,
    ) -> None:
        self._counters = counters
        self._num_pending = num_pending
        self._max_pending = max_pending
        self._fullest_share = fullest_share
        self._ready = ready
        self._engines = engines
        self._is_loaded = is_loaded

    def describe(self) -> list[_EngineFamily]:
        """Nothing: names are checked when they are collected."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metric families, one for each number."""
        counters, engines = self._counters(), self._engines()
        yield from self._info()
        yield _checkpoints_loaded(self._is_loaded())
        yield from _facts(engines)
        yield _gauge(
            "pending_segments", "Segments accepted and not yet answered.", self._num_pending()
        )
        yield _gauge("max_pending_segments", "Segments that may be pending.", self._max_pending())
        yield _gauge(
            "fullest_queue_ratio",
            "Share taken of the fullest queue.",
            self._fullest_share(),
        )
        yield from _gauges(counters)
        yield _waiting(counters)
        yield from _counters(counters)
        yield _rows_per_step(counters)
        yield from replica_families(engines[START].replicas)
        yield from _processes(engines)

    def _info(self) -> Iterator[_EngineFamily]:
        ready = self._ready()
        if ready is not None:
            info = InfoMetricFamily(
                "dragoman", "Checkpoints and device in use.", labels=("checkpoint",)
            )
            for checkpoint in ready.checkpoints:
                facts = {
                    "device": ready.device,
                    "version": distribution_version(),
                    "compute_type": checkpoint.compute_type,
                    "compute_reason": checkpoint.compute_reason,
                    "instruction_set": checkpoint.instruction_set,
                }
                info.add_metric((checkpoint.name,), facts)
            yield info
            yield _slow_compute_type(ready)


def _gauge(name: str, documentation: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"dragoman_{name}", documentation, value=value)


def _facts(engines: Mapping[str, EngineFacts]) -> Iterator[Metric]:
    families = (
        (
            "engine_up",
            "1 while the engine answers.",
            {name: float(one.is_up) for name, one in engines.items()},
        ),
        (
            "engine_threads",
            "CPU threads of the engine.",
            {name: one.num_threads for name, one in engines.items()},
        ),
        (
            "engine_start_seconds",
            "Time the engine took to be warm, from the start of its process.",
            {name: one.start_seconds for name, one in engines.items()},
        ),
    )
    for name, documentation, values in families:
        family = Metric(f"dragoman_{name}", documentation, "gauge")
        for engine, value in values.items():
            if value is not None:
                family.add_sample(family.name, _labels(engine), value)
        if family.samples:
            yield family


def _processes(engines: Mapping[str, EngineFacts]) -> Iterator[Metric]:
    """Processor time and memory of each running engine's process."""
    families: dict[str, Metric] = {}
    for engine, facts in engines.items():
        for place, replica in enumerate(facts.replicas):
            labels = _labels(engine)
            if len(facts.replicas) > 1:
                labels["replica"] = str(place)
            for one in _process(replica.process_id).collect():
                family = families.setdefault(
                    one.name, Metric(one.name, one.documentation, one.type)
                )
                for sample in one.samples:
                    family.add_sample(sample.name, labels, sample.value)
    yield from families.values()


def _process(process_id: int | None) -> ProcessCollector:
    # A process that is gone has no directory in /proc, and neither has "None".
    return ProcessCollector("dragoman_engine", pid=lambda: f"{process_id}", registry=None)


def _labels(engine: str) -> dict[str, str]:
    return {} if engine == START else {"checkpoint": engine}


def _checkpoints_loaded(is_loaded: Mapping[str, bool]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "dragoman_checkpoint_loaded",
        "1 if the checkpoint in this directory is served as it was last found there.",
        labels=("directory",),
    )
    for directory, is_there in is_loaded.items():
        family.add_metric((directory,), float(is_there))
    return family


def _slow_compute_type(ready: Ready) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "dragoman_slow_compute_type",
        "1 if a slower arithmetic stands in for the one that the kernels have.",
        labels=("checkpoint", "compute_type", "compute_reason"),
    )
    for one in ready.checkpoints:
        labels = (one.name, one.compute_type, one.compute_reason)
        family.add_metric(labels, float(one.is_slow))
    return family


def _gauges(counters: EngineCounters) -> Iterator[GaugeMetricFamily]:
    yield _gauge("queued_segments", "Segments waiting to be admitted.", counters.num_waiting)
    yield _gauge("running_segments", "Segments being decoded.", counters.num_running)
    yield _gauge("running_rows", "Beam rows being decoded.", counters.num_rows)
    yield _gauge("max_rows", "Beam rows that can run at once.", counters.max_rows)
    yield _gauge("slots_in_use", "Slots that hold a segment.", counters.num_slots)
    yield _gauge("max_slots", "Slots there are.", counters.max_slots)


def _waiting(counters: EngineCounters) -> GaugeMetricFamily:
    # An engine that is gone has none waiting, whatever its last counters said of bulk.
    num_bulk = min(counters.num_waiting_bulk, counters.num_waiting)
    family = GaugeMetricFamily(
        "dragoman_waiting_segments",
        "Segments waiting to be admitted, by priority.",
        labels=("priority",),
    )
    family.add_metric(("interactive",), counters.num_waiting - num_bulk)
    family.add_metric(("bulk",), num_bulk)
    return family


def _counters(counters: EngineCounters) -> Iterator[CounterMetricFamily]:
    families = (
        ("admitted_segments", "Segments that were encoded.", counters.num_admitted),
        ("encoder_batches", "Batches of segments encoded.", counters.num_admissions),
        ("encoder_seconds", "Time spent encoding.", counters.admit_seconds),
        ("step_seconds", "Time spent in decoding steps.", counters.step_seconds),
        ("source_tokens", "Source tokens encoded.", counters.num_source_tokens),
        (
            "padded_source_tokens",
            "Source tokens encoded, with what was padded: minus source_tokens it is the waste.",
            counters.num_padded_source_tokens,
        ),
    )
    for name, documentation, value in families:
        yield CounterMetricFamily(f"dragoman_{name}", documentation, value=value)


def _rows_per_step(counters: EngineCounters) -> HistogramMetricFamily:
    bounds = (*(str(float(bound)) for bound in ROWS_BUCKETS), "+Inf")
    cumulative = accumulate(counters.rows_per_step)
    return HistogramMetricFamily(
        "dragoman_step_rows",
        "Beam rows of a decoding step.",
        buckets=list(zip(bounds, cumulative, strict=True)),
        sum_value=counters.num_row_steps,
    )
