"""Instruments of front processes: how many there are, how many answer, how many were lost.

Owns these alone; what fronts count is merged by `service.telemetry.merging`.
"""

from collections.abc import Callable
from typing import get_args

from prometheus_client import Counter, Gauge

from service.telemetry.metrics import Metrics, RestartReason


class FrontMetrics:
    """Instruments of the fronts of one server, in the registry of its owner.

    Args:
        metrics: Of the owner.
        num_fronts: How many fronts there are to be.
    """

    def __init__(self, metrics: Metrics, *, num_fronts: int) -> None:
        registry = metrics.registry
        self._serving = Gauge(
            "dragoman_fronts",
            "Front processes that answer requests for translation.",
            registry=registry,
        )
        Gauge(
            "dragoman_max_fronts", "Front processes that there are to be.", registry=registry
        ).set(num_fronts)
        self._restarts = Counter(
            "dragoman_front_restarts",
            "Front processes that were replaced, by reason.",
            ("reason",),
            registry=registry,
        )
        for reason in get_args(RestartReason):
            self._restarts.labels(reason)

    def watch(self, num_serving: Callable[[], int]) -> None:
        """Export how many answer requests."""
        self._serving.set_function(num_serving)

    def lost(self, reason: str) -> None:
        """A front was lost and is replaced by another."""
        self._restarts.labels(reason).inc()
