import os
import re

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from service.engine.messages import ROWS_BUCKETS, LoadedCheckpoint, Ready, SegmentTimings, Snapshot
from service.metrics import EngineCollector, Metrics

READY = Ready(
    protocol_version=1,
    device="cpu",
    num_threads=1,
    load_seconds=1.0,
    warmup_seconds=0.5,
    max_rows=128,
    max_slots=64,
    checkpoints=tuple(
        LoadedCheckpoint(
            name=name,
            compute_type="float32",
            max_source_length=64,
            max_target_length=64,
            max_prefix_length=1,
        )
        for name in ("tiny", "other")
    ),
)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> Metrics:
    return Metrics(registry)


def _engine(
    snapshot: Snapshot, *, ready: Ready | None = READY, process_id: int | None = None
) -> EngineCollector:
    return EngineCollector(
        snapshot=lambda: snapshot,
        num_pending=lambda: 3,
        max_pending=8,
        is_up=lambda: True,
        ready=lambda: ready,
        process_id=lambda: process_id,
    )


def test_requests_are_counted_by_route_and_status(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    metrics.request_started()
    assert registry.get_sample_value("dragoman_requests_in_progress") == 1
    metrics.request_ended(route="/translate", status=200, seconds=0.2)
    labels = {"route": "/translate", "status": "200"}
    assert registry.get_sample_value("dragoman_requests_total", labels) == 1
    assert registry.get_sample_value("dragoman_requests_in_progress") == 0
    route = {"route": "/translate"}
    assert registry.get_sample_value("dragoman_request_seconds_sum", route) == 0.2


def test_a_finished_segment_is_observed_in_the_queue_to_its_first_step_and_in_all(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    metrics.segment_finished(
        SegmentTimings(queue_seconds=1.0, first_step_seconds=1.5, decode_seconds=3.0, num_steps=9)
    )
    interactive = {"priority": "interactive"}
    assert registry.get_sample_value("dragoman_segment_queue_seconds_sum", interactive) == 1.0
    assert registry.get_sample_value("dragoman_segment_first_step_seconds_sum") == 1.5
    assert registry.get_sample_value("dragoman_segment_seconds_sum") == 4.0


def test_waiting_is_told_apart_by_priority(metrics: Metrics, registry: CollectorRegistry) -> None:
    def sample(name: str, priority: str) -> float | None:
        return registry.get_sample_value(f"dragoman_{name}", {"priority": priority})

    assert sample("segment_queue_seconds_count", "bulk") == 0  # there before the first segment
    metrics.segment_finished(
        SegmentTimings(
            queue_seconds=2.0,
            first_step_seconds=2.5,
            decode_seconds=3.0,
            num_steps=9,
            priority="bulk",
        )
    )
    assert sample("segment_queue_seconds_sum", "bulk") == 2.0
    assert sample("segment_queue_seconds_count", "interactive") == 0
    metrics.watch_engine(_engine(Snapshot(num_waiting=7, num_waiting_bulk=5)))
    assert sample("waiting_segments", "interactive") == 2
    assert sample("waiting_segments", "bulk") == 5
    assert registry.get_sample_value("dragoman_queued_segments") == 7


def test_of_none_that_wait_none_are_bulk(metrics: Metrics, registry: CollectorRegistry) -> None:
    metrics.watch_engine(_engine(Snapshot(num_waiting=0, num_waiting_bulk=5)))
    for priority in ("interactive", "bulk"):
        labels = {"priority": priority}
        assert registry.get_sample_value("dragoman_waiting_segments", labels) == 0


def test_rows_per_step_is_a_cumulative_histogram(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    counts = (1, 0, 2, *(0,) * (len(ROWS_BUCKETS) - 3), 4)
    metrics.watch_engine(_engine(Snapshot(rows_per_step=counts, num_row_steps=900)))

    def bucket(bound: str) -> float | None:
        return registry.get_sample_value("dragoman_step_rows_bucket", {"le": bound})

    assert [bucket("1.0"), bucket("2.0"), bucket("4.0"), bucket("512.0")] == [1, 1, 3, 3]
    assert bucket("+Inf") == 7
    assert registry.get_sample_value("dragoman_step_rows_sum") == 900
    assert registry.get_sample_value("dragoman_step_rows_count") == 7


def test_the_engine_is_described_once_it_is_warm(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    metrics.watch_engine(_engine(Snapshot(num_running=2, num_source_tokens=5)))
    text = metrics.render().decode()
    for name in ("tiny", "other"):
        assert f'dragoman_info{{checkpoint="{name}",device="cpu",' in text
    assert registry.get_sample_value("dragoman_running_segments") == 2
    assert registry.get_sample_value("dragoman_source_tokens_total") == 5
    assert registry.get_sample_value("dragoman_pending_segments") == 3
    assert registry.get_sample_value("dragoman_engine_start_seconds") == 1.5


def test_restarts_are_counted_by_reason_and_there_from_the_start(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    def count(reason: str) -> float | None:
        return registry.get_sample_value("dragoman_engine_restarts_total", {"reason": reason})

    metrics.engine_restarted("hang")
    assert [count(reason) for reason in ("exit", "hang", "protocol")] == [0, 1, 0]


def test_two_servers_in_one_process_do_not_share_instruments() -> None:
    first, second = CollectorRegistry(), CollectorRegistry()
    Metrics(first).characters_accepted(5)
    Metrics(second)
    assert first.get_sample_value("dragoman_source_characters_total") == 5
    assert second.get_sample_value("dragoman_source_characters_total") == 0


def test_names_are_ours_in_base_units_and_documented(metrics: Metrics) -> None:
    metrics.watch_engine(_engine(Snapshot()))
    families = list(text_string_to_metric_families(metrics.render().decode()))
    for family in families:
        assert re.fullmatch("(dragoman|process)[a-z_]*", family.name), family.name
        assert family.documentation
        assert not re.search("_(ms|millis|minutes|kb|mb)(_|$)", family.name)


def test_labels_are_only_those_that_are_bounded(metrics: Metrics) -> None:
    metrics.request_ended(route="unmatched", status=404, seconds=0.0)
    metrics.watch_engine(_engine(Snapshot()))
    families = text_string_to_metric_families(metrics.render().decode())
    labels = {name for family in families for sample in family.samples for name in sample.labels}
    known = {"route", "status", "le", "checkpoint", "device", "version", "priority", "reason"}
    assert labels <= known


def test_translations_are_observed_by_priority_when_they_were_answered(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    def count(priority: str) -> float | None:
        labels = {"priority": priority}
        return registry.get_sample_value("dragoman_translation_seconds_count", labels)

    assert (count("interactive"), count("bulk")) == (0, 0)  # there before the first one
    metrics.request_ended(route="/translate", status=200, seconds=0.2, priority="bulk")
    metrics.request_ended(route="/translate", status=503, seconds=0.2, priority="interactive")
    metrics.request_ended(route="/languages", status=200, seconds=0.2)
    assert (count("interactive"), count("bulk")) == (0, 1)


def test_every_reason_of_a_restart_is_there_before_the_first(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    metrics.engine_restarted("hang")
    counts = {
        reason: registry.get_sample_value("dragoman_engine_restarts_total", {"reason": reason})
        for reason in ("exit", "hang", "protocol")
    }
    assert counts == {"exit": 0, "hang": 1, "protocol": 0}


def test_work_is_read_at_the_scrape_and_told_with_its_limit(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    work = [3]
    metrics.watch_work(lambda: work[0], limit=9)
    work[0] = 4
    assert registry.get_sample_value("dragoman_requests_in_work") == 4
    assert registry.get_sample_value("dragoman_max_requests") == 9


def test_the_memory_of_the_engines_process_is_told_while_there_is_one(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    name = "dragoman_engine_process_resident_memory_bytes"
    processes: list[int | None] = [os.getpid()]
    engine = EngineCollector(
        snapshot=Snapshot,
        num_pending=lambda: 0,
        max_pending=1,
        is_up=lambda: True,
        ready=lambda: None,
        process_id=lambda: processes[0],
    )
    metrics.watch_engine(engine)
    memory = registry.get_sample_value(name)
    assert memory is not None
    assert memory > 1_000_000
    processes[0] = None
    assert registry.get_sample_value(name) is None
    assert registry.get_sample_value("dragoman_engine_up") == 1
