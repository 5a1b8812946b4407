"""Figures of several processes as those of one."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from service.telemetry.merging import added, merged, only_totals, shared_families


def _counted(number: int, *, label: str = "a") -> CollectorRegistry:
    registry = CollectorRegistry()
    counter = Counter("dragoman_things", "Things.", ("of",), registry=registry)
    counter.labels(label).inc(number)
    seconds = Histogram("dragoman_seconds", "Time.", buckets=(1, 2), registry=registry)
    for _ in range(number):
        seconds.observe(1.5)
    Gauge("dragoman_open_connections", "Open.", registry=registry).set(number)
    Gauge("dragoman_max_requests", "Limit.", registry=registry).set(8)
    Counter("dragoman_reloads", "Reloads.", registry=registry).inc()
    return registry


def _page(own: CollectorRegistry, *others: CollectorRegistry) -> dict[str, float]:
    sums = added([shared_families(other.collect()) for other in others])
    return {
        f"{sample.name}{sorted(sample.labels.values())}": sample.value
        for family in own.collect()
        for sample in merged(family, sums).samples
    }


def test_counters_histograms_and_some_gauges_are_sums_and_limits_are_the_owners() -> None:
    page = _page(_counted(1), _counted(2), _counted(4))
    assert page["dragoman_things_total['a']"] == 7
    assert page["dragoman_seconds_bucket['1.0']"] == 0
    assert page["dragoman_seconds_bucket['2.0']"] == 7
    assert page["dragoman_seconds_count[]"] == 7
    assert page["dragoman_seconds_sum[]"] == 7 * 1.5
    assert page["dragoman_open_connections[]"] == 7
    assert page["dragoman_max_requests[]"] == 8
    assert page["dragoman_reloads_total[]"] == 1, "every process reads the same files"


def test_a_series_that_only_another_process_has_is_there_too() -> None:
    page = _page(_counted(1), _counted(2, label="b"))
    assert (page["dragoman_things_total['a']"], page["dragoman_things_total['b']"]) == (1, 2)


def test_a_family_of_which_nobody_else_has_any_is_as_it_was() -> None:
    registry = _counted(3)
    for family in registry.collect():
        assert merged(family, ()) is family


def test_of_a_process_that_is_gone_its_totals_stay() -> None:
    gone = only_totals(shared_families(_counted(5).collect()))
    names = {family.name for family in gone}
    assert names == {"dragoman_things", "dragoman_seconds"}


def test_sums_are_what_a_scrape_can_read() -> None:
    sums = added([shared_families(_counted(2).collect())])

    class Merged:
        def collect(self) -> object:
            return [merged(family, sums) for family in _counted(1).collect()]

    registry = CollectorRegistry()
    registry.register(Merged())  # type: ignore[arg-type]  # what it needs of a collector
    text = generate_latest(registry).decode()
    assert 'dragoman_things_total{of="a"} 3.0' in text
    assert 'dragoman_seconds_bucket{le="+Inf"} 3.0' in text
