"""Instruments of segments: outcomes, sizes and times.

Owns the part of `service.telemetry.metrics` that the engine's client reports to, segment by
segment. Counts and sizes are told apart by pair and checkpoint (`service.labels`), times by
priority alone.
"""

from prometheus_client import CollectorRegistry

from service.engine.client.submission import SegmentJob
from service.engine.messages import Finished
from service.labels import Served, ServedLabels
from service.priority import PRIORITIES
from service.telemetry.buckets import SECONDS, TOKENS
from service.telemetry.instruments import Counter, Histogram

LABELS = ("pair", "checkpoint")


class SegmentMetrics:
    """Instruments of the segments that were submitted to engines, and of their answers.

    Args:
        registry: Where the instruments are.
        labels: Which pairs have series.
    """

    def __init__(self, registry: CollectorRegistry, labels: ServedLabels) -> None:
        self._labels = labels

        def counter(name: str, documentation: str) -> Counter:
            return Counter(f"dragoman_{name}_segments", documentation, LABELS, registry=registry)

        def tokens(name: str, documentation: str) -> Histogram:
            return Histogram(
                f"dragoman_segment_{name}_tokens",
                documentation,
                LABELS,
                buckets=TOKENS,
                registry=registry,
            )

        self._received = counter("received", "Segments handed to the engine.")
        self._finished = counter("finished", "Segments translated.")
        self._cancelled = counter("cancelled", "Segments nobody waited for.")
        self._failed = counter("failed", "Segments the engine gave up.")
        self._moved = Counter(
            "dragoman_moved_segments",
            "Segments that another replica translates, as theirs was lost.",
            registry=registry,
        )
        self._source_tokens = tokens("source", "Source tokens of a segment for the engine.")
        self._target_tokens = tokens("target", "Target tokens of a finished segment.")
        self._create_times(registry)
        self._looked_up = Counter(
            "dragoman_segment_cache_lookups",
            "Segments that were looked for in the cache, by whether they were there.",
            ("result",),
            registry=registry,
        )
        for result in ("hit", "miss"):
            self._looked_up.labels(result)

    def _create_times(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "dragoman_segment_seconds",
            "From a segment's arrival in the engine to its last step.",
            buckets=SECONDS,
            registry=registry,
        )
        self._queue_seconds = Histogram(
            "dragoman_segment_queue_seconds",
            "From a segment's arrival in the engine to its admission, by priority.",
            ("priority",),
            buckets=SECONDS,
            registry=registry,
        )
        for priority in PRIORITIES:  # so that both are there before the first segment
            self._queue_seconds.labels(priority)
        self._first_step_seconds = Histogram(
            "dragoman_segment_first_step_seconds",
            "From a segment's arrival in the engine to the end of its first decoding step.",
            buckets=SECONDS,
            registry=registry,
        )

    @property
    def by_pair(self) -> tuple[Counter | Histogram, ...]:
        """The instruments that have the labels of a pair and no others."""
        return (
            self._received,
            self._finished,
            self._cancelled,
            self._failed,
            self._source_tokens,
            self._target_tokens,
        )

    def looked_up(self, num_hits: int, num_misses: int) -> None:
        """Segments of a request were looked for in the cache."""
        self._looked_up.labels("hit").inc(num_hits)
        self._looked_up.labels("miss").inc(num_misses)

    def segment_received(self, job: SegmentJob) -> None:
        """A segment was handed to the engine."""
        pair = self._pair(job)
        self._received.labels(*pair).inc()
        self._source_tokens.labels(*pair).observe(len(job.request.source_ids))

    def segment_finished(self, job: SegmentJob, finished: Finished) -> None:
        """The engine translated a segment."""
        pair = self._pair(job)
        self._finished.labels(*pair).inc()
        self._target_tokens.labels(*pair).observe(len(finished.hypotheses[0].token_log_probs))
        timings = finished.timings
        self._seconds.observe(timings.queue_seconds + timings.decode_seconds)
        self._queue_seconds.labels(timings.priority).observe(timings.queue_seconds)
        self._first_step_seconds.observe(timings.first_step_seconds)

    def segment_cancelled(self, job: SegmentJob) -> None:
        """The engine dropped a segment."""
        self._cancelled.labels(*self._pair(job)).inc()

    def segment_failed(self, job: SegmentJob) -> None:
        """The engine gave a segment up."""
        self._failed.labels(*self._pair(job)).inc()

    def moved(self, number: int) -> None:
        """Segments of an engine that was lost go on in another one."""
        self._moved.inc(number)

    def _pair(self, job: SegmentJob) -> tuple[str, str]:
        return label_values(self._labels.bounded(job.served))


def label_values(served: Served) -> tuple[str, str]:
    """Values of `LABELS`."""
    return served.pair, served.checkpoint
