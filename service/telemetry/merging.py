"""Figures of several processes as those of one: what of them is summed, and how.

Owns the arithmetic alone, over families of samples as values; where they come from, and when, is
`service.fronts`. Counters and histograms are sums, but those that every process counts alike
(`_COUNTED_ONCE`). Of gauges the ones in `_SUMMED_GAUGES` are sums; all others are what the owner of
the processes says.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample as PrometheusSample

_COUNTED_ONCE = frozenset({"dragoman_reloads", "python_info"})
_SUMMED_GAUGES = frozenset(
    {
        "dragoman_event_loop_tasks",
        "dragoman_max_connections",
        "dragoman_open_connections",
        "dragoman_requests_in_progress",
        "dragoman_segment_cache_bytes",
        "process_max_fds",
        "process_open_fds",
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
    }
)
_CREATED = "_created"
Labels = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    """One number: its name and labels, in their order."""

    name: str
    labels: Labels
    value: float


class Family(NamedTuple):
    """Samples of one instrument."""

    name: str
    kind: str
    samples: tuple[Sample, ...]


def shared_families(families: Iterable[Metric]) -> tuple[Family, ...]:
    """The families of a process that are summed over all processes."""
    return tuple(
        Family(
            name=family.name,
            kind=family.type,
            samples=tuple(
                Sample(one.name, tuple(one.labels.items()), one.value) for one in family.samples
            ),
        )
        for family in families
        if _is_summed(family.name, family.type)
    )


def only_totals(families: Iterable[Family]) -> tuple[Family, ...]:
    """The totals of a process that has ended: counters without gauges."""
    return tuple(family for family in families if family.kind != "gauge")


def added(processes: Iterable[Sequence[Family]]) -> tuple[Family, ...]:
    """The sums of several processes."""
    sums: dict[str, dict[tuple[str, Labels], float]] = {}
    kinds: dict[str, str] = {}
    for families in processes:
        for family in families:
            kinds[family.name] = family.kind
            _add(sums.setdefault(family.name, {}), family.samples)
    return tuple(
        Family(name, kinds[name], tuple(Sample(*key, value) for key, value in of_name.items()))
        for name, of_name in sums.items()
    )


def merged(own: Metric, others: Sequence[Family]) -> Metric:
    """A family of the owner with what its processes add to it.

    Args:
        own: The owner's.
        others: The sums of all its processes.
    """
    found = [family for family in others if family.name == own.name]
    if not found:
        return own
    sums: dict[tuple[str, Labels], float] = {}
    of_own = [Sample(one.name, tuple(one.labels.items()), one.value) for one in own.samples]
    for samples in (of_own, *(family.samples for family in found)):
        _add(sums, samples)
    result = Metric(own.name, own.documentation, own.type, own.unit)
    result.samples = [
        PrometheusSample(name, dict(labels), value) for (name, labels), value in sums.items()
    ]
    return result


def _is_summed(name: str, kind: str) -> bool:
    if kind == "gauge":
        return name in _SUMMED_GAUGES
    return kind in ("counter", "histogram") and name not in _COUNTED_ONCE


def _add(sums: dict[tuple[str, Labels], float], samples: Iterable[Sample]) -> None:
    for sample in samples:
        key = (sample.name, sample.labels)
        if key not in sums:
            sums[key] = sample.value
        elif sample.name.endswith(_CREATED):
            sums[key] = min(sums[key], sample.value)
        else:
            sums[key] += sample.value
