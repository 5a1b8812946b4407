import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from service.telemetry.buckets import SECONDS
from service.telemetry.instruments import Counter, Histogram

BOUNDS = (0.5, 1.0, 2.0)
AMOUNTS = st.floats(min_value=0.0, max_value=400.0) | st.sampled_from(SECONDS)


def _without_times(registry: CollectorRegistry) -> list[str]:
    lines = generate_latest(registry).decode().splitlines()
    return [line for line in lines if "_created" not in line]


@given(st.lists(AMOUNTS, max_size=20))
def test_a_histogram_says_what_the_library_s_own_says(amounts: list[float]) -> None:
    registries = CollectorRegistry(), CollectorRegistry()
    own = Histogram("seconds", "Time.", ("way",), buckets=SECONDS, registry=registries[0])
    theirs = prometheus_client.Histogram(
        "seconds", "Time.", ("way",), buckets=SECONDS, registry=registries[1]
    )
    for amount in amounts:
        own.labels("up").observe(amount)
        theirs.labels("up").observe(amount)
    assert _without_times(registries[0]) == _without_times(registries[1])


def test_a_series_is_found_again_however_its_labels_are_given() -> None:
    registry = CollectorRegistry()
    counter = Counter("things", "Things.", ("kind", "size"), registry=registry)
    counter.labels("a", "1").inc()
    counter.labels("a", 1).inc()
    counter.labels(kind="a", size="1").inc()
    assert registry.get_sample_value("things_total", {"kind": "a", "size": "1"}) == 3


def test_a_series_that_was_removed_begins_anew() -> None:
    registry = CollectorRegistry()
    histogram = Histogram("seconds", "Time.", ("way",), buckets=BOUNDS, registry=registry)
    histogram.labels("up").observe(0.7)
    histogram.remove_by_labels({"way": "up"})
    assert registry.get_sample_value("seconds_count", {"way": "up"}) is None
    histogram.labels("up").observe(1.5)
    assert registry.get_sample_value("seconds_count", {"way": "up"}) == 1


def test_a_wrong_number_of_labels_is_refused() -> None:
    counter = Counter("things", "Things.", ("kind",), registry=CollectorRegistry())
    with pytest.raises(ValueError, match="label count"):
        counter.labels("a", "b")
    with pytest.raises(ValueError, match="label count"):
        counter.labels()


def test_an_observation_with_an_exemplar_keeps_it() -> None:
    registry = CollectorRegistry()
    histogram = Histogram("seconds", "Time.", buckets=BOUNDS, registry=registry)
    histogram.observe(0.7, {"trace": "1"})
    [family] = registry.collect()
    assert [sample.exemplar.labels for sample in family.samples if sample.exemplar] == [
        {"trace": "1"}
    ]
