"""Every instrument of the server, in one file: names, units, buckets and labels.

Owns what `/metrics` says. Base units; labels are bounded (routes by template, statuses, the
two priorities, the reasons of restarts, the loaded checkpoints, the device) and never carry text,
addresses or keys. The engine's numbers come from its snapshots at the moment of the scrape; what
its process takes of the machine is read from /proc then, as the front's own is.
"""

from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from service.engine.messages import ROWS_BUCKETS, Ready, SegmentTimings, Snapshot
from service.engine.scheduler import PRIORITIES, Priority

UNMATCHED_ROUTE = "unmatched"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_LAG_SECONDS = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.05, 0.1, 0.5, 2.0)

RestartReason = Literal["exit", "hang", "protocol"]
"""Why an engine was replaced: it left, it stopped answering, or it sent what is no message."""

Refusal = Literal[
    "too_many_connections", "displaced", "headers_too_large", "header_timeout", "invalid_http"
]
"""Why a connection ended without a request's answer; "displaced" had to make room."""

_EngineFamily = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily | InfoMetricFamily


def distribution_version() -> str:
    """The installed version of Dragoman, "unknown" from a bare source tree."""
    try:
        return version("dragoman")
    except PackageNotFoundError:
        return "unknown"


class Metrics:
    """The front's own instruments, in the registry it is given."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._requests = Counter(
            "dragoman_requests",
            "Requests answered, by route template and status.",
            ("route", "status"),
            registry=registry,
        )
        self._request_seconds = Histogram(
            "dragoman_request_seconds",
            "From the request line to the last byte of the answer.",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._requests_in_progress = Gauge(
            "dragoman_requests_in_progress", "Requests not yet answered.", registry=registry
        )
        self._translation_seconds = Histogram(
            "dragoman_translation_seconds",
            "From the request line to the last byte, of translations answered with 200.",
            ("priority",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._engine_restarts = Counter(
            "dragoman_engine_restarts",
            "Engine processes that were replaced, by reason.",
            ("reason",),
            registry=registry,
        )
        self._refused_connections = Counter(
            "dragoman_refused_connections",
            "Connections that ended without a request's answer, by reason.",
            ("reason",),
            registry=registry,
        )
        for refusal in get_args(Refusal):  # so that all of them are there from the first scrape
            self._refused_connections.labels(refusal)
        for priority in PRIORITIES:
            self._translation_seconds.labels(priority)
        for reason in get_args(RestartReason):
            self._engine_restarts.labels(reason)
        self._characters = Counter(
            "dragoman_source_characters", "Characters of accepted texts.", registry=registry
        )
        self._loop_lag_seconds = Histogram(
            "dragoman_event_loop_lag_seconds",
            "How late the event loop wakes a timer.",
            buckets=_LAG_SECONDS,
            registry=registry,
        )
        self._create_segment_instruments(registry)
        ProcessCollector(registry=registry)

    def _create_segment_instruments(self, registry: CollectorRegistry) -> None:
        self._segment_seconds = Histogram(
            "dragoman_segment_seconds",
            "From a segment's arrival in the engine to its last step.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._queue_seconds = Histogram(
            "dragoman_segment_queue_seconds",
            "From a segment's arrival in the engine to its admission, by priority.",
            ("priority",),
            buckets=_SECONDS,
            registry=registry,
        )
        for priority in PRIORITIES:  # so that both are there before the first segment
            self._queue_seconds.labels(priority)
        self._first_step_seconds = Histogram(
            "dragoman_segment_first_step_seconds",
            "From a segment's arrival in the engine to the end of its first decoding step.",
            buckets=_SECONDS,
            registry=registry,
        )

    def request_started(self) -> None:
        """A request has arrived."""
        self._requests_in_progress.inc()

    def request_ended(
        self, *, route: str, status: int, seconds: float, priority: Priority | None = None
    ) -> None:
        """A request was answered, or its client left (status 499).

        Args:
            route: The template of its path.
            status: Of the answer.
            seconds: How long it took.
            priority: The class its segments waited in; None if it translated nothing.
        """
        self._requests_in_progress.dec()
        self._requests.labels(route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)
        if priority is not None and status == 200:
            self._translation_seconds.labels(priority).observe(seconds)

    def characters_accepted(self, num_characters: int) -> None:
        """Texts passed every check."""
        self._characters.inc(num_characters)

    def segment_finished(self, timings: SegmentTimings) -> None:
        """The engine translated one segment."""
        self._segment_seconds.observe(timings.queue_seconds + timings.decode_seconds)
        self._queue_seconds.labels(timings.priority).observe(timings.queue_seconds)
        self._first_step_seconds.observe(timings.first_step_seconds)

    def engine_restarted(self, reason: RestartReason) -> None:
        """An engine process was lost and is replaced by a new one."""
        self._engine_restarts.labels(reason).inc()

    def connection_refused(self, reason: Refusal) -> None:
        """A connection was ended without the answer to a request."""
        self._refused_connections.labels(reason).inc()

    def loop_woke_late(self, seconds: float) -> None:
        """The lag probe woke `seconds` after its time."""
        self._loop_lag_seconds.observe(seconds)

    def watch_work(self, num_in_work: Callable[[], int], *, limit: int) -> None:
        """Also export how many translation requests are being worked on, of how many."""
        in_work = Gauge(
            "dragoman_requests_in_work",
            "Translation requests being worked on.",
            registry=self._registry,
        )
        in_work.set_function(num_in_work)
        Gauge(
            "dragoman_max_requests",
            "Translation requests that may be worked on.",
            registry=self._registry,
        ).set(limit)

    def watch_connections(self, num_open: Callable[[], int], *, limit: int) -> None:
        """Also export how many connections are open, of how many."""
        connections = Gauge(
            "dragoman_open_connections", "Connections that are open.", registry=self._registry
        )
        connections.set_function(num_open)
        Gauge(
            "dragoman_max_connections", "Connections that may be open.", registry=self._registry
        ).set(limit)

    def watch_tasks(self, num_tasks: Callable[[], int]) -> None:
        """Also export how many tasks the event loop has; rendered on that loop alone."""
        Gauge(
            "dragoman_event_loop_tasks",
            "Tasks of the front's event loop that are not done.",
            registry=self._registry,
        ).set_function(num_tasks)

    def watch_engine(self, engine: "EngineCollector") -> None:
        """Also export what `engine` collects."""
        self._registry.register(engine)

    def render(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self._registry)


class EngineCollector(Collector):
    """The engine's snapshot, read when it is scraped.

    Args:
        snapshot: The latest snapshot; zeros before the first.
        num_pending: Segments accepted and not yet answered.
        max_pending: How many there may be.
        is_up: 1 while the engine answers.
        ready: What the engine said when it was warm; None before.
        process_id: The engine's process; None when it is gone.
    """

    def __init__(
        self,
        *,
        snapshot: Callable[[], Snapshot],
        num_pending: Callable[[], int],
        max_pending: int,
        is_up: Callable[[], bool],
        ready: Callable[[], Ready | None],
        process_id: Callable[[], int | None],
    ) -> None:
        self._snapshot = snapshot
        self._num_pending = num_pending
        self._max_pending = max_pending
        self._is_up = is_up
        self._ready = ready
        # A process that is gone has no directory in /proc, and neither has "None".
        self._process = ProcessCollector(
            "dragoman_engine", pid=lambda: f"{process_id()}", registry=None
        )

    def describe(self) -> list[_EngineFamily]:
        """Nothing: names are checked when they are collected."""
        return []

    def collect(self) -> Iterator[Metric]:
        """One family per number."""
        snapshot = self._snapshot()
        yield from self._info()
        yield _gauge("engine_up", "1 while the engine answers.", float(self._is_up()))
        yield _gauge(
            "pending_segments", "Segments accepted and not yet answered.", self._num_pending()
        )
        yield _gauge("max_pending_segments", "Segments that may be pending.", self._max_pending)
        yield from _gauges(snapshot)
        yield _waiting(snapshot)
        yield from _counters(snapshot)
        yield _rows_per_step(snapshot)
        yield from self._process.collect()

    def _info(self) -> Iterator[_EngineFamily]:
        ready = self._ready()
        if ready is not None:
            info = InfoMetricFamily(
                "dragoman", "Checkpoints and device in use.", labels=("checkpoint",)
            )
            for checkpoint in ready.checkpoints:
                facts = {"device": ready.device, "version": distribution_version()}
                info.add_metric((checkpoint.name,), facts)
            yield info
            yield _gauge("engine_threads", "CPU threads of the engine.", ready.num_threads)
            yield _gauge(
                "engine_start_seconds",
                "Time the engine took to load and to warm up.",
                ready.load_seconds + ready.warmup_seconds,
            )


def _gauge(name: str, documentation: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"dragoman_{name}", documentation, value=value)


def _gauges(snapshot: Snapshot) -> Iterator[GaugeMetricFamily]:
    yield _gauge("queued_segments", "Segments waiting to be admitted.", snapshot.num_waiting)
    yield _gauge("running_segments", "Segments being decoded.", snapshot.num_running)
    yield _gauge("running_rows", "Beam rows being decoded.", snapshot.num_rows)
    yield _gauge("max_rows", "Beam rows that can run at once.", snapshot.max_rows)
    yield _gauge("slots_in_use", "Slots that hold a segment.", snapshot.num_slots)
    yield _gauge("max_slots", "Slots there are.", snapshot.max_slots)


def _waiting(snapshot: Snapshot) -> GaugeMetricFamily:
    # An engine that is gone has none waiting, whatever its last snapshot said of bulk.
    num_bulk = min(snapshot.num_waiting_bulk, snapshot.num_waiting)
    family = GaugeMetricFamily(
        "dragoman_waiting_segments",
        "Segments waiting to be admitted, by priority.",
        labels=("priority",),
    )
    family.add_metric(("interactive",), snapshot.num_waiting - num_bulk)
    family.add_metric(("bulk",), num_bulk)
    return family


def _counters(snapshot: Snapshot) -> Iterator[CounterMetricFamily]:
    counters = (
        ("received_segments", "Segments that reached the engine.", snapshot.num_received),
        ("admitted_segments", "Segments that were encoded.", snapshot.num_admitted),
        ("finished_segments", "Segments translated.", snapshot.num_finished),
        ("cancelled_segments", "Segments nobody waited for.", snapshot.num_cancelled),
        ("failed_segments", "Segments the engine gave up.", snapshot.num_failed),
        ("encoder_batches", "Batches of segments encoded.", snapshot.num_admissions),
        ("encoder_seconds", "Time spent encoding.", snapshot.admit_seconds),
        ("step_seconds", "Time spent in decoding steps.", snapshot.step_seconds),
        ("source_tokens", "Source tokens encoded.", snapshot.num_source_tokens),
        (
            "padded_source_tokens",
            "Source tokens encoded, with padding: minus source_tokens it is the waste.",
            snapshot.num_padded_source_tokens,
        ),
        ("target_tokens", "Target tokens of finished segments.", snapshot.num_target_tokens),
    )
    for name, documentation, value in counters:
        yield CounterMetricFamily(f"dragoman_{name}", documentation, value=value)


def _rows_per_step(snapshot: Snapshot) -> HistogramMetricFamily:
    bounds = (*(str(float(bound)) for bound in ROWS_BUCKETS), "+Inf")
    cumulative = accumulate(snapshot.rows_per_step)
    return HistogramMetricFamily(
        "dragoman_step_rows",
        "Beam rows of a decoding step.",
        buckets=list(zip(bounds, cumulative, strict=True)),
        sum_value=snapshot.num_row_steps,
    )
