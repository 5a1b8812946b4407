"""Bounds of latencies: a quantile that is read from them is near the true one."""

import math
from itertools import pairwise

import pytest
from prometheus_client import CollectorRegistry

from service.telemetry.buckets import COARSEST_SECONDS, FINEST_SECONDS, SECONDS
from service.telemetry.metrics import Metrics


def _histogram_quantile(registry: CollectorRegistry, name: str, quantile: float) -> float:
    """As PromQL has it: linear between the bounds of the bucket that the rank falls into."""
    [family] = [family for family in registry.collect() if family.name == name]
    buckets: dict[float, float] = {}
    for sample in family.samples:
        if sample.name == f"{name}_bucket":
            bound = float(sample.labels["le"])
            buckets[bound] = buckets.get(bound, 0.0) + sample.value
    rank = quantile * buckets[math.inf]
    low, below = 0.0, 0.0
    for bound, count in buckets.items():
        if count >= rank:
            return low + (bound - low) * (rank - below) / (count - below)
        low, below = bound, count
    raise AssertionError("a quantile is in some bucket")


@pytest.mark.parametrize("step", range(60))
def test_a_p95_read_from_the_buckets_is_within_a_tenth_wherever_it_lies(step: int) -> None:
    """All observations at one place of a bucket: no distribution is harder."""
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    seconds = FINEST_SECONDS * (COARSEST_SECONDS / FINEST_SECONDS) ** (step / 59)
    for _ in range(20):
        metrics.request_ended(
            route="/translate", status=200, seconds=seconds, priority="interactive"
        )
    for name in ("dragoman_request_seconds", "dragoman_translation_seconds"):
        assert _histogram_quantile(registry, name, 0.95) == pytest.approx(seconds, rel=0.1)


def test_no_two_bounds_of_a_latency_are_more_than_a_tenth_apart() -> None:
    fine = [bound for bound in SECONDS if FINEST_SECONDS <= bound <= COARSEST_SECONDS]
    assert (fine[0], fine[-1]) == (FINEST_SECONDS, COARSEST_SECONDS)
    for low, high in pairwise(fine):
        assert low < high <= low * 1.1 * (1 + 1e-9)
