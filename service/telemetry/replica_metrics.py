"""Metrics of replicas, each by the number of its place.

Owns their families, and the bound of their label: there are at most `service.bounds.MAX_REPLICAS`.
What all engines did together is `service.telemetry.engine_metrics`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFacts:
    """Facts of one replica.

    Attributes:
        is_up: Whether it answers.
        process_id: Its process; None when it is gone.
        num_pending: Segments that it has and has not answered.
        num_pending_row_steps: Their work: beams × an estimate of tokens.
        num_row_steps: Rows summed over the steps of all its engines so far.
        step_seconds: Time of these steps.
    """

    is_up: bool = False
    process_id: int | None = None
    num_pending: int = 0
    num_pending_row_steps: int = 0
    num_row_steps: int = 0
    step_seconds: float = 0.0


_GAUGES: tuple[tuple[str, str, Callable[[ReplicaFacts], float]], ...] = (
    ("replica_up", "1 while the replica answers.", lambda one: float(one.is_up)),
    (
        "replica_pending_segments",
        "Segments that the replica has and has not answered.",
        lambda one: one.num_pending,
    ),
    (
        "replica_pending_row_steps",
        "Work of these segments: beams times an estimate of tokens.",
        lambda one: one.num_pending_row_steps,
    ),
)
_COUNTERS: tuple[tuple[str, str, Callable[[ReplicaFacts], float]], ...] = (
    (
        "replica_row_steps",
        "Beam rows of the replica, summed over its decoding steps.",
        lambda one: one.num_row_steps,
    ),
    (
        "replica_step_seconds",
        "Time the replica spent in decoding steps.",
        lambda one: one.step_seconds,
    ),
)


def replica_families(
    replicas: Sequence[ReplicaFacts],
) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
    """The families of replicas, by their places; none before they are there."""
    if not replicas:
        return
    for name, documentation, value in _GAUGES:
        gauge = GaugeMetricFamily(f"dragoman_{name}", documentation, labels=("replica",))
        for place, one in enumerate(replicas):
            gauge.add_metric((str(place),), value(one))
        yield gauge
    for name, documentation, value in _COUNTERS:
        counter = CounterMetricFamily(f"dragoman_{name}", documentation, labels=("replica",))
        for place, one in enumerate(replicas):
            counter.add_metric((str(place),), value(one))
        yield counter
