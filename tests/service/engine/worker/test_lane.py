"""What a lane tells its scheduler and its runner of each other; both stand in for the real ones."""

from collections.abc import Iterable
from typing import Any, cast

import pytest

from model.config import SearchConfig
from model.request import DecodeRequest
from service.engine.messages import Cancelled, SubmitSegment
from service.engine.worker.lane import Lane
from service.engine.worker.runner import Runner
from service.engine.worker.scheduler import Priority, Scheduler
from service.engine.worker.totals import Totals


class Waiting:
    """A scheduler that only notes what it is told."""

    num_waiting = 1

    def __init__(self) -> None:
        self.plans: list[dict[str, int]] = []
        self.added: list[Any] = []
        self.cancelled: list[int] = []
        self.num_waiting_by: dict[str, int] = {"interactive": 0, "bulk": 0}

    def add(self, segments: Iterable[Any]) -> None:
        self.added += segments

    def cancel(self, segment_id: int) -> None:
        self.cancelled.append(segment_id)

    def plan(self, **room: int) -> list[int]:
        self.plans.append(room)
        return []

    def num_waiting_of(self, priority: Priority) -> int:
        return self.num_waiting_by[priority]


class Measured:
    """A pacing that has measured."""

    def token_budget(self, *, ceiling: int) -> int:
        return min(ceiling, 40)


class Running:
    """A runner that only says what it is made to say."""

    num_rows = 6
    num_slots = 2
    max_rows = 10
    free_rows = 4
    free_slots = 6
    is_idle = False
    pacing = Measured()

    def __init__(self) -> None:
        self.accepted: list[SubmitSegment] = []
        self.num_retries_by: dict[str, int] = {"interactive": 0, "bulk": 0}

    def accept(self, segments: Iterable[SubmitSegment]) -> None:
        self.accepted += segments

    def cancel(self, segment_id: int) -> list[Cancelled]:
        return [Cancelled(segment_id=segment_id)]

    def admit(self, segment_ids: list[int]) -> list[Any]:
        return [f"admitted {segment_id}" for segment_id in segment_ids]

    def step(self) -> list[Any]:
        return []

    def written(self) -> list[Any]:
        return []

    def num_retries_of(self, priority: Priority) -> int:
        return self.num_retries_by[priority]

    def check_integrity(self) -> None:
        """All is well."""


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


@pytest.fixture
def running() -> Running:
    return Running()


@pytest.fixture
def lane(waiting: Waiting, running: Running) -> Lane:
    return Lane(
        cast("Scheduler", waiting),
        cast("Runner", running),
        totals=Totals(),
        max_rows=16,
        max_slots=8,
    )


def test_a_segment_waits_with_its_own_length_rows_and_class(
    lane: Lane, waiting: Waiting, running: Running
) -> None:
    segments = [
        SubmitSegment(
            segment_id=number,
            request=DecodeRequest(
                source_ids=(5,) * number,
                prefix_ids=(0,),
                search=SearchConfig(beam_size=number + 1),
            ),
            priority=priority,
        )
        for number, priority in ((1, "interactive"), (3, "bulk"))
    ]
    lane.accept(segments)
    assert running.accepted == segments
    found = [(s.segment_id, s.num_source_tokens, s.num_rows, s.priority) for s in waiting.added]
    assert found == [(1, 1, 2, "interactive"), (3, 3, 4, "bulk")]


def test_what_waits_to_be_tried_again_waits_in_its_class(
    lane: Lane, waiting: Waiting, running: Running
) -> None:
    waiting.num_waiting_by.update(interactive=3, bulk=50)
    running.num_retries_by.update(interactive=1, bulk=20)
    counters = lane.counters()
    assert (counters.num_waiting, counters.num_waiting_bulk) == (3 + 1 + 50 + 20, 50 + 20)
    assert (counters.num_rows, counters.max_rows, counters.max_slots) == (6, 16, 8)


def test_a_cancelled_segment_is_forgotten_on_both_sides(lane: Lane, waiting: Waiting) -> None:
    assert lane.cancel(7) == [Cancelled(segment_id=7)]
    assert waiting.cancelled == [7]


def test_a_plan_is_made_for_the_room_that_there_is_now(lane: Lane, waiting: Waiting) -> None:
    for is_busy in (False, True):
        assert lane.turn(max_token_budget=256, keeps_others_waiting=is_busy) == []
    room = {"free_rows": 4, "free_slots": 6, "max_rows": 10}
    assert waiting.plans == [{**room, "token_budget": 256}, {**room, "token_budget": 40}]
    waiting.num_waiting = 0
    lane.turn(max_token_budget=256, keeps_others_waiting=False)
    assert len(waiting.plans) == 2
