"""Instruments of the router: names, units and labels.

Owns what its `/metrics` says: requests by route, by group and status, which groups answer,
connections. Labels are bounded: routes by template, statuses, the groups that were given.
"""

import asyncio
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.process_collector import ProcessCollector

from service.labels import Served
from service.priority import Priority
from service.telemetry.buckets import SECONDS
from service.telemetry.instruments import Counter, Histogram
from service.telemetry.metrics import Refusal


class RouterMetrics:
    """Instruments in the registry that is passed in.

    Args:
        registry: Where they are registered.
        groups: Names of the groups.
    """

    def __init__(self, registry: CollectorRegistry, groups: Iterable[str]) -> None:
        self._registry = registry
        self._requests = Counter(
            "dragoman_router_requests",
            "Requests answered, by route template and status.",
            ("route", "status"),
            registry=registry,
        )
        self._request_seconds = Histogram(
            "dragoman_router_request_seconds",
            "From the request line to the last byte of the answer.",
            ("route",),
            buckets=SECONDS,
            registry=registry,
        )
        self._in_progress = Gauge(
            "dragoman_router_requests_in_progress", "Requests not yet answered.", registry=registry
        )
        self._passed = Counter(
            "dragoman_router_passed",
            'Requests passed to a group, by the status of its answer; "none" is no answer.',
            ("group", "status"),
            registry=registry,
        )
        self._is_up = Gauge(
            "dragoman_router_group_up",
            "1 if a group would translate when it was last asked.",
            ("group",),
            registry=registry,
        )
        self._refused = Counter(
            "dragoman_router_refused_connections",
            "Connections that ended without a request's answer, by reason.",
            ("reason",),
            registry=registry,
        )
        for name in groups:
            self._is_up.labels(name).set(0)
        Gauge(
            "dragoman_router_event_loop_tasks",
            "Tasks of the event loop that are not done.",
            registry=registry,
        ).set_function(lambda: len(asyncio.all_tasks()))
        ProcessCollector(registry=registry)

    def request_started(self) -> None:
        """A request has arrived."""
        self._in_progress.inc()

    def request_ended(
        self,
        *,
        route: str,
        status: int,
        seconds: float,
        priority: Priority | None = None,  # noqa: ARG002  # a server's
        served: Served | None = None,  # noqa: ARG002  # same
    ) -> None:
        """A request was answered, or its client left."""
        self._in_progress.dec()
        self._requests.labels(route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def passed(self, group: str, status: int | None) -> None:
        """A group was asked; None: it gave no answer."""
        self._passed.labels(group, "none" if status is None else str(status)).inc()

    def group_is(self, group: str, *, is_up: bool) -> None:
        """A group would translate now, or would not."""
        self._is_up.labels(group).set(is_up)

    def connection_refused(self, reason: Refusal) -> None:
        """A connection was ended without the answer to a request."""
        self._refused.labels(reason).inc()

    def watch_connections(self, num_open: Callable[[], int], *, limit: int) -> None:
        """Also export how many connections are open, and their limit."""
        Gauge(
            "dragoman_router_open_connections",
            "Connections that are open.",
            registry=self._registry,
        ).set_function(num_open)
        Gauge(
            "dragoman_router_max_connections",
            "Connections that may be open.",
            registry=self._registry,
        ).set(limit)

    def render(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self._registry)
