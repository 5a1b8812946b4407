"""Arithmetic on the engine's counters: sums, and the totals of an engine that has ended.

Does not own what is counted, which is `service.engine.messages.EngineCounters`, nor the counting,
which is `service.engine.worker.totals`.
"""

from collections.abc import Sequence

from service.engine.messages import EngineCounters


def summed(engines: Sequence[EngineCounters]) -> EngineCounters:
    """Counters of several engines as one: each number is the sum of theirs."""
    names = [name for name in EngineCounters.__struct_fields__ if name != "rows_per_step"]
    counts = {name: sum(getattr(one, name) for one in engines) for name in names}
    by_bucket = zip(*(one.rows_per_step for one in engines), strict=True)
    return EngineCounters(**counts, rows_per_step=tuple(map(sum, by_bucket)))


def only_totals(counters: EngineCounters) -> EngineCounters:
    """The totals of an engine that has ended: no queue and no rows."""
    return EngineCounters(**counters.totals())
