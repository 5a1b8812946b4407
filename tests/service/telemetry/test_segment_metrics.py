import pytest
from prometheus_client import CollectorRegistry

from model.config import SearchConfig
from model.request import DecodeRequest, Hypothesis
from service.engine.client.submission import SegmentJob
from service.engine.messages import Finished, SegmentTimings
from service.engine.worker.scheduler import Priority
from service.labels import Served, ServedLabels
from service.telemetry.segment_metrics import SegmentMetrics

EN_ZH = Served(pair="en>zh-Hans", checkpoint="small")
ZH_EN = Served(pair="zh-Hans>en", checkpoint="other")


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> SegmentMetrics:
    labels = ServedLabels()
    labels.load([EN_ZH, ZH_EN])
    return SegmentMetrics(registry, labels)


def _job(served: Served, *, num_tokens: int = 3) -> SegmentJob:
    return SegmentJob(
        request=DecodeRequest(source_ids=(5,) * num_tokens, prefix_ids=(0,), search=SearchConfig()),
        served=served,
    )


def _finished(*, num_tokens: int = 4, priority: Priority = "interactive") -> Finished:
    hypothesis = Hypothesis(
        token_ids=(7,) * (num_tokens - 1),
        score=-1.0,
        token_log_probs=(-0.5,) * num_tokens,
        is_truncated=False,
    )
    timings = SegmentTimings(
        queue_seconds=1.0,
        first_step_seconds=1.5,
        decode_seconds=3.0,
        num_steps=9,
        priority=priority,
    )
    return Finished(segment_id=1, hypotheses=(hypothesis,), timings=timings)


def test_a_finished_segment_is_observed_in_the_queue_to_its_first_step_and_in_all(
    metrics: SegmentMetrics, registry: CollectorRegistry
) -> None:
    metrics.segment_finished(_job(EN_ZH), _finished())
    interactive = {"priority": "interactive"}
    assert registry.get_sample_value("dragoman_segment_queue_seconds_sum", interactive) == 1.0
    assert registry.get_sample_value("dragoman_segment_first_step_seconds_sum") == 1.5
    assert registry.get_sample_value("dragoman_segment_seconds_sum") == 4.0


def test_the_wait_is_told_apart_by_priority(
    metrics: SegmentMetrics, registry: CollectorRegistry
) -> None:
    def count(priority: str) -> float | None:
        labels = {"priority": priority}
        return registry.get_sample_value("dragoman_segment_queue_seconds_count", labels)

    assert count("bulk") == 0  # there before the first segment
    metrics.segment_finished(_job(EN_ZH), _finished(priority="bulk"))
    assert (count("bulk"), count("interactive")) == (1, 0)


def test_every_word_on_a_segment_is_counted_for_its_pair_and_checkpoint(
    metrics: SegmentMetrics, registry: CollectorRegistry
) -> None:
    def sample(name: str, served: Served) -> float | None:
        labels = {"pair": served.pair, "checkpoint": served.checkpoint}
        return registry.get_sample_value(f"dragoman_{name}", labels)

    for _ in range(4):
        metrics.segment_received(_job(EN_ZH, num_tokens=9))
    metrics.segment_finished(_job(EN_ZH), _finished(num_tokens=6))
    metrics.segment_cancelled(_job(EN_ZH))
    metrics.segment_cancelled(_job(EN_ZH))
    metrics.segment_failed(_job(EN_ZH))
    metrics.segment_received(_job(ZH_EN, num_tokens=2))
    words = ("received", "finished", "cancelled", "failed")
    assert [sample(f"{word}_segments_total", EN_ZH) for word in words] == [4, 1, 2, 1]
    assert [sample(f"{word}_segments_total", ZH_EN) for word in words] == [1, None, None, None]
    assert sample("segment_source_tokens_sum", EN_ZH) == 36
    assert sample("segment_source_tokens_sum", ZH_EN) == 2
    assert sample("segment_target_tokens_sum", EN_ZH) == 6
    assert sample("segment_target_tokens_count", EN_ZH) == 1


def test_a_segment_of_nobody_known_is_counted_as_other(
    metrics: SegmentMetrics, registry: CollectorRegistry
) -> None:
    metrics.segment_received(_job(Served(pair="en>de", checkpoint="gone")))
    labels = {"pair": "other", "checkpoint": "other"}
    assert registry.get_sample_value("dragoman_received_segments_total", labels) == 1
