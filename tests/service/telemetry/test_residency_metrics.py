from prometheus_client import CollectorRegistry

from service.labels import MAX_FIRST
from service.telemetry.residency_metrics import MAX_CHECKPOINTS, Residency, ResidencyMetrics


def test_loads_and_unloads_are_counted_by_checkpoint_and_there_before_the_first() -> None:
    registry = CollectorRegistry()
    metrics = ResidencyMetrics(registry)

    def count(name: str, checkpoint: str, **labels: str) -> float | None:
        labels |= {"checkpoint": checkpoint}
        return registry.get_sample_value(f"dragoman_checkpoint_{name}", labels)

    metrics.expect(["big", "small"])
    for checkpoint in ("big", "small"):
        for result in ("success", "failure", "no_memory"):
            assert count("loads_total", checkpoint, result=result) == 0
        for reason in ("evicted", "reload", "lost"):
            assert count("unloads_total", checkpoint, reason=reason) == 0
    metrics.loaded("small", seconds=2.5)
    metrics.unloaded("small", "evicted")
    metrics.not_loaded("big", "no_memory")
    assert count("loads_total", "small", result="success") == 1
    assert count("unloads_total", "small", reason="evicted") == 1
    assert count("loads_total", "big", result="no_memory") == 1
    assert registry.get_sample_value("dragoman_checkpoint_load_seconds_sum") == 2.5
    assert registry.get_sample_value("dragoman_checkpoint_load_seconds_count") == 1


def test_however_many_checkpoints_there_are_their_series_are_bounded() -> None:
    registry = CollectorRegistry()
    metrics = ResidencyMetrics(registry)
    names = [f"m{number}" for number in range(2 * MAX_CHECKPOINTS)]
    is_loaded = {name: name == names[-1] for name in names}
    metrics.watch(lambda: Residency(is_loaded=is_loaded))
    metrics.expect(names)
    few = {"checkpoint": names[MAX_FIRST], "result": "success"}
    assert registry.get_sample_value("dragoman_checkpoint_loads_total", few) is None
    for name in names:
        metrics.loaded(name, seconds=1.0)
    other = {"checkpoint": "other", "result": "success"}
    assert registry.get_sample_value("dragoman_checkpoint_loads_total", other) == MAX_CHECKPOINTS
    [family] = [one for one in registry.collect() if one.name == "dragoman_checkpoint_resident"]
    assert len(family.samples) == MAX_CHECKPOINTS
    last = {"checkpoint": names[-1]}
    assert registry.get_sample_value(family.name, last) == 1, "those that are loaded go first"


def test_what_is_in_memory_is_read_at_the_scrape() -> None:
    registry = CollectorRegistry()
    now = [Residency()]
    ResidencyMetrics(registry).watch(lambda: now[0])
    assert registry.get_sample_value("dragoman_memory_budget_bytes") == 0
    now[0] = Residency(
        is_loaded={"a": True, "b": False},
        by_state={"loaded": 1, "asleep": 1},
        num_engines={"serving": 1, "leaving": 2},
        counted_bytes=300,
        budget_bytes=500,
    )
    for name, labels, expected in (
        ("checkpoint_resident", {"checkpoint": "a"}, 1),
        ("checkpoint_resident", {"checkpoint": "b"}, 0),
        ("checkpoints", {"state": "asleep"}, 1),
        ("engines", {"state": "leaving"}, 2),
        ("memory_counted_bytes", {}, 300),
        ("memory_budget_bytes", {}, 500),
    ):
        assert registry.get_sample_value(f"dragoman_{name}", labels) == expected
