"""Lane of one checkpoint in the engine: its scheduler and its session, one turn at a time.

Owns how the two fit together. The engine's loop (`service.engine.worker.process`) gives every lane
its turn; a lane knows nothing of the others.
"""

from collections.abc import Sequence

from service.engine.messages import (
    Cancelled,
    EngineCounters,
    Failed,
    Finished,
    SubmitSegment,
    Written,
)
from service.engine.worker.runner import Runner
from service.engine.worker.scheduler import Scheduler, WaitingSegment
from service.engine.worker.sharing import BULK_SHARE, INTERACTIVE_SHARE
from service.engine.worker.totals import Totals
from service.priority import PRIORITIES


class Lane:
    """Scheduler of one checkpoint and the runner that it plans for.

    Args:
        scheduler: Of this lane's rows and slots.
        runner: Of this lane's session.
        totals: What the runner counts.
        max_rows: Rows of the session.
        max_slots: Slots of the session.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        *,
        totals: Totals,
        max_rows: int,
        max_slots: int,
    ) -> None:
        self._scheduler = scheduler
        self._runner = runner
        self._totals = totals
        self._max_rows = max_rows
        self._max_slots = max_slots

    def __repr__(self) -> str:
        return f"<Lane {self._scheduler!r} {self._runner!r}>"

    @property
    def is_idle(self) -> bool:
        """Whether no segment waits or runs."""
        return self._runner.is_idle

    @property
    def is_running(self) -> bool:
        """Whether a segment is being decoded, which an encoder batch would hold up."""
        return self._runner.num_slots > 0

    @property
    def share(self) -> float:
        """Weight of the lane among others that are busy."""
        return INTERACTIVE_SHARE if self._scheduler.num_interactive else BULK_SHARE

    def accept(self, segments: Sequence[SubmitSegment]) -> None:
        """Queue segments that have arrived."""
        self._runner.accept(segments)
        self._scheduler.add(
            WaitingSegment(
                segment_id=segment.segment_id,
                num_source_tokens=len(segment.request.source_ids),
                num_rows=segment.request.search.beam_size,
                priority=segment.priority,
                client=segment.client,
                request=segment.submission,
                request_work=segment.submission_work,
            )
            for segment in segments
        )

    def cancel(self, segment_id: int) -> list[Cancelled]:
        """Drop a segment; one that is not here is ignored."""
        self._scheduler.cancel(segment_id)
        return self._runner.cancel(segment_id)

    def turn(
        self, *, max_token_budget: int, keeps_others_waiting: bool
    ) -> list[Written | Finished | Failed]:
        """Plan which segments join, admit them, step; the answers of this turn, and new tokens.

        Args:
            max_token_budget: Source tokens that may be encoded, at most.
            keeps_others_waiting: Something runs, here or in another lane: then measured times
                may allow less.
        """
        budget = max_token_budget
        if keeps_others_waiting:
            budget = self._runner.pacing.token_budget(ceiling=max_token_budget)
        answers = [*self._runner.admit(self._plan(budget)), *self._runner.step()]
        for answer in answers:
            self._scheduler.release(answer.segment_id)
        return [*self._runner.written(), *answers]

    def _plan(self, token_budget: int) -> list[int]:
        if not self._scheduler.num_waiting:
            return []
        return self._scheduler.plan(
            free_rows=self._runner.free_rows,
            free_slots=self._runner.free_slots,
            token_budget=token_budget,
            max_rows=self._runner.max_rows,
        )

    def counters(self) -> EngineCounters:
        """Where the lane stands, after a look at whether all of it agrees."""
        self._runner.check_integrity()
        interactive, bulk = (
            self._scheduler.num_waiting_of(name) + self._runner.num_retries_of(name)
            for name in PRIORITIES
        )
        return self._totals.counters(
            num_waiting=interactive + bulk,
            num_waiting_bulk=bulk,
            num_rows=self._runner.num_rows,
            num_slots=self._runner.num_slots,
            max_rows=self._max_rows,
            max_slots=self._max_slots,
        )
