"""Instruments of the front: names, units, buckets and labels.

Owns what `/metrics` says of requests, connections, reloads and the front's own process; what it
says of segments is `service.telemetry.segment_metrics`, of the engines
`service.telemetry.engine_metrics`, of loads on demand `service.telemetry.residency_metrics`. Base
units; labels are bounded (routes by template, statuses, the two priorities, reasons and results
from closed lists, the loaded pairs and checkpoints) and never carry text, addresses or keys.
"""

import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from service.labels import Served, ServedLabels
from service.priority import PRIORITIES, Priority
from service.telemetry.buckets import CHARACTERS, LAG_SECONDS, SECONDS
from service.telemetry.document_metrics import DocumentMetrics
from service.telemetry.engine_metrics import EngineCollector
from service.telemetry.instruments import Counter, Histogram
from service.telemetry.merging import Family, merged, shared_families
from service.telemetry.residency_metrics import ResidencyMetrics
from service.telemetry.segment_metrics import LABELS, SegmentMetrics, label_values

RestartReason = Literal["exit", "hang", "protocol"]
"""Why an engine was replaced: it left, it stopped answering, or it sent what is no message."""

Refusal = Literal[
    "too_many_connections", "displaced", "headers_too_large", "header_timeout", "invalid_http"
]
"""Why a connection ended without a request's answer; "displaced" had to make room."""

Reloaded = Literal["checkpoints", "keys"]
ReloadResult = Literal["success", "partial", "failure"]
"""All of what is there was taken; some of it; none, and what there was stays."""


class Metrics:
    """Instruments of the front, in the registry that is passed in.

    Attributes:
        registry: As it was passed in.
        segments: Those of segments.
        residency: Those of what is in memory.
        documents: Those of documents.
    """

    def __init__(
        self, registry: CollectorRegistry, *, now: Callable[[], float] = time.time
    ) -> None:
        self.registry = self._registry = registry
        self._of_fronts: Callable[[], Sequence[Family]] = tuple
        self._update_fronts: Callable[[], Awaitable[None]] = _no_fronts
        self._labels = ServedLabels()
        self.segments = SegmentMetrics(registry, self._labels)
        self.residency = ResidencyMetrics(registry)
        self.documents = DocumentMetrics(registry)
        self._now = now
        self._requests = Counter(
            "dragoman_requests",
            "Requests answered, by route template, status, language pair and checkpoint.",
            ("route", "status", *LABELS),
            registry=registry,
        )
        self._request_seconds = Histogram(
            "dragoman_request_seconds",
            "From the request line to the last byte of the answer.",
            ("route",),
            buckets=SECONDS,
            registry=registry,
        )
        self._requests_in_progress = Gauge(
            "dragoman_requests_in_progress", "Requests not yet answered.", registry=registry
        )
        self._translation_seconds = Histogram(
            "dragoman_translation_seconds",
            "From the request line to the last byte, of translations answered with 200.",
            ("priority",),
            buckets=SECONDS,
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
        self._characters = Histogram(
            "dragoman_source_characters",
            "Characters of a request's texts, once they are accepted.",
            LABELS,
            buckets=CHARACTERS,
            registry=registry,
        )
        self._loop_lag_seconds = Histogram(
            "dragoman_event_loop_lag_seconds",
            "How late the event loop wakes a timer.",
            buckets=LAG_SECONDS,
            registry=registry,
        )
        self._create_reload_instruments(registry)
        ProcessCollector(registry=registry)

    def pairs_loaded(self, loaded: Iterable[Served], *, on_demand: Collection[str] = ()) -> None:
        """Replace the loaded pairs; series of those that were unloaded long ago end.

        Args:
            loaded: Those that have series from now on.
            on_demand: Checkpoints whose pairs have series from their first request on.
        """
        loaded = tuple(loaded)
        instruments = (*self.segments.by_pair, self._characters)
        for gone in self._labels.load(loaded, on_demand=on_demand):
            for instrument in (*instruments, self._requests):
                instrument.remove_by_labels({"pair": gone.pair, "checkpoint": gone.checkpoint})
        for served in loaded:  # so that they are there before the first request
            for instrument in instruments:
                instrument.labels(*label_values(served))

    def _create_reload_instruments(self, registry: CollectorRegistry) -> None:
        self._ready_seconds = Gauge(
            "dragoman_ready_timestamp_seconds",
            "When the engine was ready for the first time, seconds since 1970; 0 before.",
            registry=registry,
        )
        self._reloads = Counter(
            "dragoman_reloads",
            "Reloads of checkpoints or keys, by result.",
            ("kind", "result"),
            registry=registry,
        )
        self._reload_is_complete = Gauge(
            "dragoman_reload_successful",
            "1 if the last load of checkpoints or keys took all of them.",
            ("kind",),
            registry=registry,
        )
        self._reload_success_seconds = Gauge(
            "dragoman_reload_last_success_timestamp_seconds",
            "When all checkpoints or keys were last loaded, seconds since 1970; 0 before.",
            ("kind",),
            registry=registry,
        )
        for kind in get_args(Reloaded):
            self._reload_is_complete.labels(kind).set(1)  # nothing has failed yet
            self._reload_success_seconds.labels(kind)
            for result in get_args(ReloadResult):
                self._reloads.labels(kind, result)

    def request_started(self) -> None:
        """A request has arrived."""
        self._requests_in_progress.inc()

    def request_ended(
        self,
        *,
        route: str,
        status: int,
        seconds: float,
        priority: Priority | None = None,
        served: Served | None = None,
    ) -> None:
        """A request was answered, or its client left (status 499).

        Args:
            route: The template of its path.
            status: Of the answer.
            seconds: How long it took.
            priority: The class its segments waited in; None if it translated nothing.
            served: What translates it; None if no pair was chosen.
        """
        self._requests_in_progress.dec()
        pair = label_values(self._labels.bounded(served))
        self._requests.labels(route, str(status), *pair).inc()
        self._request_seconds.labels(route).observe(seconds)
        if priority is not None and status == 200:
            self._translation_seconds.labels(priority).observe(seconds)

    def characters_accepted(self, num_characters: int, served: Served | None) -> None:
        """The texts of a request passed every check."""
        self._characters.labels(*label_values(self._labels.bounded(served))).observe(num_characters)

    def engine_restarted(self, reason: RestartReason) -> None:
        """An engine process was lost and is replaced by a new one."""
        self._engine_restarts.labels(reason).inc()

    def became_ready(self) -> None:
        """The engine is warm for the first time."""
        self._ready_seconds.set(self._now())

    def loaded(self, kind: Reloaded, *, is_complete: bool = True) -> None:
        """Checkpoints or keys were loaded, at the start or by a reload; whether all of them."""
        self._reload_is_complete.labels(kind).set(is_complete)
        if is_complete:
            self._reload_success_seconds.labels(kind).set(self._now())

    def reloaded(self, kind: Reloaded, result: ReloadResult) -> None:
        """A reload has ended."""
        self._reloads.labels(kind, result).inc()
        self.loaded(kind, is_complete=result == "success")

    def connection_refused(self, reason: Refusal) -> None:
        """A connection was ended without the answer to a request."""
        self._refused_connections.labels(reason).inc()

    def loop_woke_late(self, seconds: float) -> None:
        """The lag probe woke `seconds` after its time."""
        self._loop_lag_seconds.observe(seconds)

    def watch_requests(self, num_in_work: Callable[[], int], *, limit: int) -> None:
        """Also export how many translation requests are in flight, and their limit."""
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

    def watch_cache(self, num_bytes: Callable[[], int]) -> None:
        """Also export how much the cache of segments holds."""
        Gauge(
            "dragoman_segment_cache_bytes",
            "Bytes of translated segments that are kept.",
            registry=self._registry,
        ).set_function(num_bytes)

    def watch_connections(self, num_open: Callable[[], int], *, limit: int) -> None:
        """Also export how many connections are open, and their limit."""
        connections = Gauge(
            "dragoman_open_connections", "Connections that are open.", registry=self._registry
        )
        connections.set_function(num_open)
        Gauge(
            "dragoman_max_connections", "Connections that may be open.", registry=self._registry
        ).set(limit)

    def watch_redis(self, is_lost: Callable[[], bool]) -> None:
        """Also export whether the Redis that limits are shared by is lost."""
        Gauge(
            "dragoman_redis_lost",
            "1 while limits are counted in this process, as Redis did not answer when last asked.",
            registry=self._registry,
        ).set_function(is_lost)

    def watch_tasks(self, num_tasks: Callable[[], int]) -> None:
        """Also export how many tasks the event loop has; rendered on that loop alone."""
        Gauge(
            "dragoman_event_loop_tasks",
            "Tasks of the front's event loop that are not done.",
            registry=self._registry,
        ).set_function(num_tasks)

    def watch_fronts(
        self,
        families: Callable[[], Sequence[Family]],
        update_fronts: Callable[[], Awaitable[None]],
    ) -> None:
        """Also export what other front processes count, as a part of what is counted here.

        Args:
            families: The sums of all of them.
            update_fronts: Has these sums be as they are now.
        """
        self._of_fronts = families
        self._update_fronts = update_fronts

    async def refresh(self) -> None:
        """Have what other processes count be as it is now."""
        await self._update_fronts()

    def shared_families(self) -> tuple[Family, ...]:
        """What another process adds to its own figures."""
        return shared_families(self._registry.collect())

    def watch_engine(self, engine: EngineCollector) -> None:
        """Also export what `engine` collects."""
        self._registry.register(engine)

    def render_parts(self) -> Iterator[bytes]:
        """Everything, in Prometheus' text format: one family at a time, as it is much."""
        others = self._of_fronts()
        for family in self._registry.collect():
            yield generate_latest(_OneFamily(merged(family, others)))

    def render(self) -> bytes:
        """Everything at once."""
        return b"".join(self.render_parts())


async def _no_fronts() -> None:
    """Update of the fronts' sums where there are no fronts: nothing."""


class _OneFamily(Collector):
    """A family that has been collected."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        """The family."""
        yield self._family
