"""Metrics of the engine, collected when they are scraped.

Owns the engine's families: its gauges, counters and step histogram, what it said when it
was warm, and which checkpoints it has. Labels are bounded (the loaded checkpoints, the device, the
arithmetic and its reasons); what its process takes of the machine is read from /proc at the scrape.
"""

from collections.abc import Callable, Iterator, Mapping
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
from service.version import distribution_version

_EngineFamily = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily | InfoMetricFamily


class EngineCollector(Collector):
    """Collector of the engine's counters, read when it is scraped.

    Args:
        counters: The latest counters; zeros before the first.
        num_pending: Segments accepted and not yet answered.
        max_pending: How many there may be.
        is_up: 1 while the engine answers.
        ready: What the engine said when it was warm; None before.
        process_id: The engine's process; None when it is gone.
        start_seconds: Time it took to be warm, from the start of its process; None before.
        is_loaded: Names of the checkpoints' directories, and whether each was loaded.
    """

    def __init__(
        self,
        *,
        counters: Callable[[], EngineCounters],
        num_pending: Callable[[], int],
        max_pending: int,
        is_up: Callable[[], bool],
        ready: Callable[[], Ready | None],
        process_id: Callable[[], int | None],
        start_seconds: Callable[[], float | None] = lambda: None,
        is_loaded: Callable[[], Mapping[str, bool]] = dict,
    ) -> None:
        self._counters = counters
        self._num_pending = num_pending
        self._max_pending = max_pending
        self._is_up = is_up
        self._ready = ready
        self._start_seconds = start_seconds
        self._is_loaded = is_loaded
        # A process that is gone has no directory in /proc, and neither has "None".
        self._process = ProcessCollector(
            "dragoman_engine", pid=lambda: f"{process_id()}", registry=None
        )

    def describe(self) -> list[_EngineFamily]:
        """Nothing: names are checked when they are collected."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metric families, one for each number."""
        counters = self._counters()
        yield from self._info()
        yield _checkpoints_loaded(self._is_loaded())
        yield _gauge("engine_up", "1 while the engine answers.", float(self._is_up()))
        yield _gauge(
            "pending_segments", "Segments accepted and not yet answered.", self._num_pending()
        )
        yield _gauge("max_pending_segments", "Segments that may be pending.", self._max_pending)
        yield from _gauges(counters)
        yield _waiting(counters)
        yield from _counters(counters)
        yield _rows_per_step(counters)
        yield from self._process.collect()

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
                }
                info.add_metric((checkpoint.name,), facts)
            yield info
            yield _slow_compute_type(ready)
            yield _gauge("engine_threads", "CPU threads of the engine.", ready.num_threads)
        start_seconds = self._start_seconds()
        if start_seconds is not None:
            yield _gauge(
                "engine_start_seconds",
                "Time the engine took to be warm, from the start of its process.",
                start_seconds,
            )


def _gauge(name: str, documentation: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"dragoman_{name}", documentation, value=value)


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
