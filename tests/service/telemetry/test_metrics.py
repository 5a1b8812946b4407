import os
import re

import pytest
from msgspec import structs
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from model.arithmetic import ComputeReason
from model.native import kernels
from service.engine.messages import ROWS_BUCKETS, EngineCounters, Ready
from service.labels import MAX_UNLOADED, Served
from service.telemetry.engine_metrics import START, EngineCollector, EngineFacts
from service.telemetry.metrics import Metrics
from service.telemetry.replica_metrics import ReplicaFacts
from support.warm_engines import loaded_checkpoint, warm_engine

REASONS: dict[str, ComputeReason] = {"tiny": "processor", "other": "asked_for"}
READY = warm_engine(
    *(loaded_checkpoint(name, compute_reason=reason) for name, reason in REASONS.items())
)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> Metrics:
    return Metrics(registry)


def _engine(
    counters: EngineCounters, *, ready: Ready = READY, **others: EngineFacts
) -> EngineCollector:
    start = EngineFacts(is_up=True, start_seconds=4.5, num_threads=1)
    return EngineCollector(
        counters=lambda: counters,
        num_pending=lambda: 3,
        max_pending=lambda: 8,
        fullest_share=lambda: 0.25,
        ready=lambda: ready,
        engines=lambda: {START: start} | others,
    )


def test_requests_are_counted_by_route_and_status(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    metrics.request_started()
    assert registry.get_sample_value("dragoman_requests_in_progress") == 1
    metrics.request_ended(route="/translate", status=200, seconds=0.2)
    labels = {"route": "/translate", "status": "200", "pair": "none", "checkpoint": "none"}
    assert registry.get_sample_value("dragoman_requests_total", labels) == 1
    assert registry.get_sample_value("dragoman_requests_in_progress") == 0
    route = {"route": "/translate"}
    assert registry.get_sample_value("dragoman_request_seconds_sum", route) == 0.2


def test_waiting_is_told_apart_by_priority(metrics: Metrics, registry: CollectorRegistry) -> None:
    def sample(name: str, priority: str) -> float | None:
        return registry.get_sample_value(f"dragoman_{name}", {"priority": priority})

    metrics.watch_engine(_engine(EngineCounters(num_waiting=7, num_waiting_bulk=5)))
    assert sample("waiting_segments", "interactive") == 2
    assert sample("waiting_segments", "bulk") == 5
    assert registry.get_sample_value("dragoman_queued_segments") == 7


def test_of_none_that_wait_none_are_bulk(metrics: Metrics, registry: CollectorRegistry) -> None:
    metrics.watch_engine(_engine(EngineCounters(num_waiting=0, num_waiting_bulk=5)))
    for priority in ("interactive", "bulk"):
        labels = {"priority": priority}
        assert registry.get_sample_value("dragoman_waiting_segments", labels) == 0


def test_rows_per_step_is_a_cumulative_histogram(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    counts = (1, 0, 2, *(0,) * (len(ROWS_BUCKETS) - 3), 4)
    assert ROWS_BUCKETS[-1] == 4096  # what a GPU's overlay lets run at once
    metrics.watch_engine(_engine(EngineCounters(rows_per_step=counts, num_row_steps=900)))

    def bucket(bound: str) -> float | None:
        return registry.get_sample_value("dragoman_step_rows_bucket", {"le": bound})

    assert [bucket("1.0"), bucket("2.0"), bucket("4.0"), bucket("4096.0")] == [1, 1, 3, 3]
    assert bucket("+Inf") == 7
    assert registry.get_sample_value("dragoman_step_rows_sum") == 900
    assert registry.get_sample_value("dragoman_step_rows_count") == 7


def test_the_engine_is_described_once_it_is_warm(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    metrics.watch_engine(_engine(EngineCounters(num_running=2, num_source_tokens=5)))
    text = metrics.render().decode()
    for name in ("tiny", "other"):
        assert f'dragoman_info{{checkpoint="{name}",' in text
    assert registry.get_sample_value("dragoman_running_segments") == 2
    assert registry.get_sample_value("dragoman_source_tokens_total") == 5
    assert registry.get_sample_value("dragoman_pending_segments") == 3
    assert registry.get_sample_value("dragoman_fullest_queue_ratio") == 0.25
    # Loading and warm-up are a part of it: 1.5 seconds of Ready.
    assert registry.get_sample_value("dragoman_engine_start_seconds") == 4.5


def test_the_arithmetic_is_told_with_its_reason_and_whether_it_is_a_slow_one(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    metrics.watch_engine(_engine(EngineCounters()))
    info = re.findall("^dragoman_info{(.*)}", metrics.render().decode(), re.MULTILINE)
    for labels, reason in zip(info, REASONS.values(), strict=True):
        assert f'compute_reason="{reason}",compute_type="float32"' in labels
    for name, is_slow in (("tiny", 1), ("other", 0)):
        labels = {"checkpoint": name, "compute_type": "float32", "compute_reason": REASONS[name]}
        assert registry.get_sample_value("dragoman_slow_compute_type", labels) == is_slow


def test_a_reload_is_counted_by_result_and_all_are_there_from_the_start() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry, now=lambda: 1_000.0)

    def sample(name: str, kind: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"dragoman_{name}", {"kind": kind} | labels)

    last = "reload_last_success_timestamp_seconds"
    for kind in ("checkpoints", "keys"):
        assert (sample("reload_successful", kind), sample(last, kind)) == (1, 0)
        for result in ("success", "partial", "failure"):
            assert sample("reloads_total", kind, result=result) == 0
    metrics.reloaded("checkpoints", "partial")
    metrics.reloaded("keys", "failure")
    assert (sample("reload_successful", "checkpoints"), sample(last, "checkpoints")) == (0, 0)
    assert (sample("reload_successful", "keys"), sample(last, "keys")) == (0, 0)
    metrics.reloaded("keys", "success")
    assert (sample("reload_successful", "keys"), sample(last, "keys")) == (1, 1_000)
    counts = [sample("reloads_total", "keys", result=one) for one in ("success", "failure")]
    assert counts == [1, 1]
    metrics.loaded("checkpoints")  # at the start: it is no reload
    assert sample(last, "checkpoints") == 1_000
    assert sample("reloads_total", "checkpoints", result="success") == 0


def test_restarts_are_counted_by_reason_and_there_from_the_start(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    def count(reason: str) -> float | None:
        return registry.get_sample_value("dragoman_engine_restarts_total", {"reason": reason})

    metrics.engine_restarted("hang")
    assert [count(reason) for reason in ("exit", "hang", "protocol")] == [0, 1, 0]


def test_two_servers_in_one_process_do_not_share_instruments() -> None:
    first, second = CollectorRegistry(), CollectorRegistry()
    Metrics(first).connection_refused("displaced")
    Metrics(second)
    labels = {"reason": "displaced"}
    assert first.get_sample_value("dragoman_refused_connections_total", labels) == 1
    assert second.get_sample_value("dragoman_refused_connections_total", labels) == 0


def test_names_are_ours_in_base_units_and_documented(metrics: Metrics) -> None:
    metrics.watch_engine(_engine(EngineCounters()))
    families = list(text_string_to_metric_families(metrics.render().decode()))
    for family in families:
        assert re.fullmatch("(dragoman|process)[a-z_]*", family.name), family.name
        assert family.documentation
        assert not re.search("_(ms|millis|minutes|kb|mb)(_|$)", family.name)


def test_labels_are_only_those_that_are_bounded(metrics: Metrics) -> None:
    metrics.request_ended(route="unmatched", status=404, seconds=0.0)
    metrics.watch_engine(_engine(EngineCounters()))
    families = text_string_to_metric_families(metrics.render().decode())
    labels = {name for family in families for sample in family.samples for name in sample.labels}
    known = {"route", "status", "le", "checkpoint", "device", "version", "priority", "reason"}
    known |= {"pair"}
    known |= {"compute_type", "compute_reason", "kind", "result", "instruction_set"}
    assert labels <= known


def test_the_instruction_set_of_the_kernels_is_a_label_of_each_checkpoint(
    metrics: Metrics,
) -> None:
    chosen = kernels.chosen(os.environ) or "none"
    one = structs.replace(READY.checkpoints[0], compute_type="int8", instruction_set=chosen)
    ready = structs.replace(READY, checkpoints=(one,))
    metrics.watch_engine(_engine(EngineCounters(), ready=ready))
    families = text_string_to_metric_families(metrics.render().decode())
    infos = [one for family in families for one in family.samples if one.name == "dragoman_info"]
    assert [info.labels["instruction_set"] for info in infos] == [chosen]


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
    metrics.watch_requests(lambda: work[0], limit=9)
    work[0] = 4
    assert registry.get_sample_value("dragoman_requests_in_work") == 4
    assert registry.get_sample_value("dragoman_max_requests") == 9


def test_what_every_engines_process_takes_is_told_while_there_is_one(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    name = "dragoman_engine_process_resident_memory_bytes"
    engines = {
        START: EngineFacts(is_up=True, replicas=(ReplicaFacts(process_id=os.getpid()),)),
        "small": EngineFacts(is_up=True, replicas=(ReplicaFacts(process_id=os.getppid()),)),
    }
    metrics.watch_engine(
        EngineCollector(
            counters=EngineCounters,
            num_pending=lambda: 0,
            max_pending=lambda: 1,
            fullest_share=lambda: 0.25,
            ready=lambda: None,
            engines=lambda: engines,
        )
    )
    small = {"checkpoint": "small"}
    memory = [registry.get_sample_value(name, labels) for labels in ({}, small)]
    assert all(value is not None and value > 1_000_000 for value in memory)
    assert memory[0] != memory[1]
    del engines["small"]
    engines[START] = EngineFacts(is_up=True)
    assert [registry.get_sample_value(name, labels) for labels in ({}, small)] == [None, None]
    assert registry.get_sample_value("dragoman_engine_up") == 1
    assert registry.get_sample_value("dragoman_engine_up", small) is None


def test_replicas_have_series_of_their_places(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    replicas = (
        ReplicaFacts(
            is_up=True,
            process_id=os.getpid(),
            num_pending=3,
            num_pending_row_steps=90,
            num_row_steps=1000,
            step_seconds=2.5,
        ),
        ReplicaFacts(),
    )
    start = EngineFacts(is_up=True, num_threads=2, replicas=replicas)
    metrics.watch_engine(
        EngineCollector(
            counters=EngineCounters,
            num_pending=lambda: 3,
            max_pending=lambda: 9,
            fullest_share=lambda: 0.25,
            ready=lambda: None,
            engines=lambda: {START: start},
        )
    )
    metrics.segments.moved(4)

    def of(name: str) -> list[float | None]:
        return [registry.get_sample_value(f"dragoman_{name}", {"replica": place}) for place in "01"]

    assert of("replica_up") == [1, 0]
    assert of("replica_pending_segments") == [3, 0]
    assert of("replica_pending_row_steps") == [90, 0]
    assert of("replica_row_steps_total") == [1000, 0]
    assert of("replica_step_seconds_total") == [2.5, 0]
    memory = of("engine_process_resident_memory_bytes")
    assert memory[0] is not None
    assert memory[1] is None
    assert registry.get_sample_value("dragoman_engine_up") == 1
    assert registry.get_sample_value("dragoman_engine_threads") == 2
    assert registry.get_sample_value("dragoman_moved_segments_total") == 4


def test_an_engine_beside_that_of_the_start_has_series_of_its_checkpoint(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    metrics.watch_engine(_engine(EngineCounters(), small=EngineFacts(num_threads=3)))
    small = {"checkpoint": "small"}
    names = ("engine_up", "engine_threads", "engine_start_seconds")
    for labels, expected in (({}, [1, 1, 4.5]), (small, [0, 3, None])):
        found = [registry.get_sample_value(f"dragoman_{name}", labels) for name in names]
        assert found == expected


EN_ZH = Served(pair="en>zh-Hans", checkpoint="small")
EN_DE = Served(pair="en>de", checkpoint="other")


def _of_pair(registry: CollectorRegistry, name: str, served: Served, **labels: str) -> float | None:
    labels |= {"pair": served.pair, "checkpoint": served.checkpoint}
    return registry.get_sample_value(f"dragoman_{name}", labels)


def test_requests_and_characters_are_told_apart_by_pair_and_checkpoint(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    metrics.pairs_loaded([EN_ZH, EN_DE])
    assert _of_pair(registry, "source_characters_count", EN_DE) == 0  # before the first request
    metrics.characters_accepted(25, EN_ZH)
    metrics.characters_accepted(5, EN_ZH)
    metrics.request_ended(route="/translate", status=200, seconds=0.2, served=EN_ZH)
    metrics.request_ended(route="/livez", status=200, seconds=0.2)
    route = {"route": "/translate", "status": "200"}
    assert _of_pair(registry, "requests_total", EN_ZH, **route) == 1
    assert _of_pair(registry, "requests_total", EN_DE, **route) is None
    assert _of_pair(registry, "source_characters_sum", EN_ZH) == 30
    assert _of_pair(registry, "source_characters_bucket", EN_ZH, le="10.0") == 1
    assert _of_pair(registry, "source_characters_count", EN_DE) == 0


def test_reloads_under_ever_new_names_leave_a_bounded_number_of_series(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    def num_series() -> int:
        return sum(len(family.samples) for family in registry.collect())

    sizes = []
    for number in range(3 * MAX_UNLOADED):
        served = Served(pair="en>de", checkpoint=f"release-{number}")
        metrics.pairs_loaded([served])
        metrics.characters_accepted(7, served)
        metrics.request_ended(route="/translate", status=200, seconds=0.2, served=served)
        sizes.append(num_series())
    assert sizes[-1] == sizes[MAX_UNLOADED]
    assert _of_pair(registry, "source_characters_sum", served) == 7


def test_what_still_runs_of_a_pair_without_series_is_other(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    metrics.pairs_loaded([EN_ZH])
    metrics.request_ended(route="/translate", status=200, seconds=0.2, served=EN_DE)
    labels = {"route": "/translate", "status": "200", "pair": "other", "checkpoint": "other"}
    assert registry.get_sample_value("dragoman_requests_total", labels) == 1


def test_the_parts_of_an_exposition_are_all_of_it(metrics: Metrics) -> None:
    metrics.watch_engine(_engine(EngineCounters()))
    parts = list(metrics.render_parts())
    assert len(parts) > 20
    assert all(part.startswith(b"# HELP ") for part in parts)
    assert {family.name for family in text_string_to_metric_families(metrics.render().decode())} > {
        "dragoman_requests",
        "dragoman_engine_up",
    }
