"""Arithmetic on the engine's counters: sums, and the totals of an engine that is gone.

Does not own what is counted, which is `service.engine.messages.Snapshot`, nor the counting, which
is `service.engine.worker.totals`.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from service.engine.messages import Snapshot


def summed(snapshots: Sequence[Snapshot]) -> Snapshot:
    """Several snapshots as one: each of its numbers is the sum of theirs."""
    names = [name for name in Snapshot.__struct_fields__ if name != "rows_per_step"]
    counts = {name: sum(getattr(snapshot, name) for snapshot in snapshots) for name in names}
    by_bucket = zip(*(snapshot.rows_per_step for snapshot in snapshots), strict=True)
    return Snapshot(**counts, rows_per_step=tuple(map(sum, by_bucket)))


def only_totals(snapshot: Snapshot) -> Snapshot:
    """The totals of an engine that is gone: nothing waits there, and there are no rows."""
    return replace(
        snapshot,
        num_waiting=0,
        num_waiting_bulk=0,
        num_running=0,
        num_rows=0,
        num_slots=0,
        max_rows=0,
        max_slots=0,
    )
