import subprocess
import sys
from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.worker.scheduler import (
    PRIORITIES,
    SLACK_TOKENS,
    Priority,
    Scheduler,
    WaitingSegment,
)

MANY = 1_000_000


def segment(
    segment_id: int, *, tokens: int = 10, rows: int = 4, priority: Priority = "interactive"
) -> WaitingSegment:
    return WaitingSegment(
        segment_id=segment_id, num_source_tokens=tokens, num_rows=rows, priority=priority
    )


def scheduler_of(*segments: WaitingSegment, **rules: int) -> Scheduler:
    scheduler = Scheduler(max_rows=MANY, max_slots=MANY, **rules)
    scheduler.add(segments)
    return scheduler


def plan(
    scheduler: Scheduler, free_rows: int, free_slots: int = MANY, *, budget: int = MANY
) -> list[int]:
    return scheduler.plan(free_rows=free_rows, free_slots=free_slots, token_budget=budget)


def test_an_empty_queue_admits_nobody():
    assert plan(scheduler_of(), MANY) == []


def test_segments_of_one_length_join_in_their_order_until_the_rows_are_gone():
    scheduler = scheduler_of(*(segment(number) for number in range(5)))
    assert plan(scheduler, 15) == [0, 1, 2]
    assert scheduler.num_waiting == 2
    assert plan(scheduler, 3) == []
    assert plan(scheduler, 8) == [3, 4]
    assert scheduler.num_waiting == 0


def test_segments_join_until_the_slots_are_gone():
    scheduler = scheduler_of(*(segment(number) for number in range(3)))
    assert plan(scheduler, MANY, 0) == []
    assert plan(scheduler, MANY, 2) == [0, 1]


def test_the_token_budget_counts_padding():
    # 30 + 20 tokens are below 55, but padded they are 60.
    scheduler = scheduler_of(segment(0, tokens=30), segment(1, tokens=20))
    assert plan(scheduler, MANY, budget=55) == [0]
    assert plan(scheduler, MANY, budget=55) == [1]


def test_a_segment_above_the_token_budget_joins_alone():
    scheduler = scheduler_of(segment(0, tokens=500), segment(1, tokens=490))
    assert plan(scheduler, MANY, budget=100) == [0]
    assert plan(scheduler, MANY, budget=100) == [1]


def test_a_chunk_is_filled_with_the_nearest_lengths():
    scheduler = scheduler_of(
        segment(0, tokens=40),
        segment(1, tokens=25),
        segment(2, tokens=41),
        segment(3, tokens=39),
    )
    assert plan(scheduler, MANY, budget=3 * 41) == [0, 2, 3]
    assert plan(scheduler, MANY, budget=3 * 41) == [1]


def test_lengths_that_would_mostly_be_padding_do_not_share_a_chunk():
    short, long = segment(0, tokens=20), segment(1, tokens=20 + SLACK_TOKENS + 5)
    scheduler = scheduler_of(short, long)
    assert plan(scheduler, MANY) == [0]


def test_the_oldest_segment_opens_the_chunk_even_if_nobody_is_like_it():
    scheduler = scheduler_of(
        segment(0, tokens=100), *(segment(number, tokens=10) for number in range(1, 50))
    )
    assert plan(scheduler, MANY) == [0]


def test_narrow_segments_may_pass_a_wide_one_but_only_so_many():
    wide = segment(0, rows=16)
    narrow = [segment(number, rows=1) for number in range(1, 20)]
    scheduler = scheduler_of(wide, *narrow, max_overtakes=3)
    assert plan(scheduler, 1) == [1]
    assert plan(scheduler, 15) == [2, 3]
    assert plan(scheduler, 15) == []
    assert plan(scheduler, 16) == [0]
    assert plan(scheduler, 1) == [4]


def test_room_goes_by_age_and_only_then_by_length():
    # Rows for three: the younger segments of the same length as the first must wait.
    lengths = [10, 30, 31, 10, 10, 10]
    scheduler = scheduler_of(
        *(segment(number, tokens=tokens) for number, tokens in enumerate(lengths))
    )
    assert plan(scheduler, 12) == [0]
    assert plan(scheduler, 8) == [1, 2]


def test_every_wide_segment_is_passed_by_its_own_count():
    wide = [segment(number, rows=16) for number in range(2)]
    narrow = [segment(number, rows=1) for number in range(2, 9)]
    scheduler = scheduler_of(*wide, *narrow, max_overtakes=2)
    assert plan(scheduler, 8) == [2, 3]
    assert plan(scheduler, 8) == []
    assert plan(scheduler, 16) == [0]
    assert plan(scheduler, 8) == [4, 5]
    assert plan(scheduler, 8) == []


def test_a_wide_segment_may_not_be_passed_while_its_elders_take_the_room():
    scheduler = scheduler_of(
        segment(0, rows=4), segment(1, rows=8), segment(2, rows=1), max_overtakes=0
    )
    assert plan(scheduler, 8) == [0]
    assert plan(scheduler, 4) == []
    assert plan(scheduler, 9) == [1, 2]


def test_only_the_window_is_considered():
    scheduler = scheduler_of(segment(0, rows=16), segment(1, rows=16), segment(2), window=2)
    assert plan(scheduler, 4) == []


def test_a_cancelled_segment_leaves_at_once_and_only_once():
    scheduler = scheduler_of(segment(0, rows=16), segment(1))
    assert scheduler.cancel(0)
    assert not scheduler.cancel(0)
    assert not scheduler.cancel(99)
    assert scheduler.num_waiting == 1
    assert plan(scheduler, 4) == [1]


def test_a_wide_segment_that_was_cancelled_holds_nobody_up():
    scheduler = scheduler_of(segment(0, rows=9), segment(1, rows=1), max_overtakes=1)
    assert plan(scheduler, 1) == [1]
    scheduler.add([segment(2, rows=1)])
    assert plan(scheduler, 1) == []
    scheduler.cancel(0)
    assert plan(scheduler, 1) == [2]


@dataclass
class World:
    """A session that only counts, and the scheduler that fills it."""

    max_rows: int
    max_slots: int
    budget: int
    max_overtakes: int
    window: int
    reserved_share: float = 0.25
    has_bulk: bool = False
    waiting: dict[int, WaitingSegment] = field(default_factory=dict)
    running: deque[WaitingSegment] = field(default_factory=deque)
    overtakes: dict[int, int] = field(default_factory=dict)
    next_id: int = 0

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(
            max_rows=self.max_rows,
            max_slots=self.max_slots,
            reserved_share=self.reserved_share,
            window=self.window,
            max_overtakes=self.max_overtakes,
        )

    def arrive(self, tokens: int, rows: int, priority: Priority = "interactive") -> None:
        newcomer = segment(
            self.next_id,
            tokens=tokens,
            rows=min(rows, self.max_rows),
            priority=priority if self.has_bulk else "interactive",
        )
        self.next_id += 1
        self.waiting[newcomer.segment_id] = newcomer
        self.scheduler.add([newcomer])

    def cancel(self, pick: int) -> None:
        segment_id = pick % (self.next_id + 1)
        was_waiting = self.waiting.pop(segment_id, None) is not None
        assert self.scheduler.cancel(segment_id) == was_waiting

    def leave(self, num: int) -> None:
        for _ in range(min(num, len(self.running))):
            self.scheduler.release(self.running.popleft().segment_id)

    def plan(self) -> list[int]:
        free_rows = self.max_rows - sum(one.num_rows for one in self.running)
        free_slots = self.max_slots - len(self.running)
        oldest = next(iter(self.waiting), None)
        chosen_ids = plan(self.scheduler, free_rows, free_slots, budget=self.budget)
        assert len(set(chosen_ids)) == len(chosen_ids)
        chosen = [self.waiting.pop(segment_id) for segment_id in chosen_ids]
        assert sum(one.num_rows for one in chosen) <= free_rows
        assert len(chosen) <= free_slots
        if len(chosen) > 1:
            assert max(one.num_source_tokens for one in chosen) * len(chosen) <= self.budget
        assert self.scheduler.num_waiting == len(self.waiting)
        self.running.extend(chosen)
        if self.has_bulk:
            self._check_reserve(chosen)
        elif oldest is not None and oldest in self.waiting:
            assert self.waiting[oldest].num_rows > free_rows or not free_slots
            self.overtakes[oldest] = self.overtakes.get(oldest, 0) + len(chosen)
            assert self.overtakes[oldest] <= self.max_overtakes
        return chosen_ids

    def _check_reserve(self, chosen: list[WaitingSegment]) -> None:
        """When bulk has joined, the reserve is held by interactive segments or idle."""
        reserved = int(self.max_rows * self.reserved_share)
        bulk_rows = [one.num_rows for one in chosen if one.priority == "bulk"]
        if not bulk_rows or max(bulk_rows) > self.max_rows - reserved:
            return
        interactive = [one for one in self.running if one.priority == "interactive"]
        free_rows = self.max_rows - sum(one.num_rows for one in self.running)
        assert free_rows >= reserved - sum(one.num_rows for one in interactive)
        free_slots = self.max_slots - len(self.running)
        assert free_slots >= int(self.max_slots * self.reserved_share) - len(interactive)


EVENTS = st.one_of(
    st.tuples(
        st.just("arrive"), st.integers(1, 120), st.integers(1, 16), st.sampled_from(PRIORITIES)
    ),
    st.tuples(st.just("cancel"), st.integers(0, 60)),
    st.tuples(st.just("leave"), st.integers(0, 4)),
    st.tuples(st.just("plan")),
)


WORLDS = st.builds(
    World,
    max_rows=st.integers(1, 32),
    max_slots=st.integers(1, 8),
    budget=st.integers(1, 300),
    max_overtakes=st.integers(0, 4),
    window=st.integers(1, 8),
    reserved_share=st.floats(0.0, 0.9),
    has_bulk=st.booleans(),
)


@given(events=st.lists(EVENTS, max_size=60), world=WORLDS)
def test_budgets_hold_and_nobody_starves_whatever_comes_and_goes(events, world):
    for name, *arguments in events:
        getattr(world, name)(*arguments)
    # One running segment ends between two plans: everybody gets in.
    for _ in range(2 * len(world.waiting) + len(world.running) + world.max_slots):
        world.plan()
        world.leave(1)
    assert not world.waiting


def test_a_wide_segment_gets_in_while_narrow_ones_never_stop_coming():
    world = World(max_rows=16, max_slots=16, budget=MANY, max_overtakes=16, window=128)
    for _ in range(16):
        world.arrive(10, 1)
    world.plan()
    world.arrive(10, 16)
    num_rounds = 0
    while 16 in world.waiting:
        world.leave(1)
        world.arrive(10, 1)
        world.plan()
        num_rounds += 1
        assert num_rounds <= 16 + 16


@pytest.mark.parametrize(("wide", "narrow"), [("bulk", "interactive"), ("interactive", "bulk")])
def test_a_wide_segment_gets_in_while_narrow_ones_of_the_other_class_never_stop(wide, narrow):
    world = World(
        max_rows=32, max_slots=32, budget=MANY, max_overtakes=16, window=128, has_bulk=True
    )
    for _ in range(64):
        world.arrive(10, 1, narrow)
    world.plan()
    world.arrive(10, 16, wide)
    wide_id = world.next_id - 1
    num_rounds = 0
    while wide_id in world.waiting:
        world.leave(1)
        world.arrive(10, 1, narrow)
        world.plan()
        num_rounds += 1
        assert num_rounds <= 16 + 16


@pytest.mark.parametrize("name", ["torch", "asyncio", "time"])
def test_the_scheduler_is_imported_without(name):
    # `time` is built in and always there; what counts is that the scheduler does not name it.
    import service.engine.worker.scheduler as scheduler_file

    assert not hasattr(scheduler_file, name)
    if name == "time":
        return
    code = f"import sys, service.engine.worker.scheduler; sys.exit({name!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
