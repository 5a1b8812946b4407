"""What the two classes owe each other: shares of the work, a reserve, and bounded passing."""

import pytest

from service.engine.worker.scheduler import CREDIT_TOKENS, Priority, Scheduler, WaitingSegment

MANY = 1_000_000


def segment(
    segment_id: int, *, tokens: int = 10, rows: int = 4, priority: Priority = "interactive"
) -> WaitingSegment:
    return WaitingSegment(
        segment_id=segment_id, num_source_tokens=tokens, num_rows=rows, priority=priority
    )


def bulk(*segment_ids: int, tokens: int = 10, rows: int = 4) -> list[WaitingSegment]:
    return [segment(one, tokens=tokens, rows=rows, priority="bulk") for one in segment_ids]


def scheduler_of(
    *segments: WaitingSegment, max_rows: int = MANY, max_slots: int = MANY, **rules: float
) -> Scheduler:
    scheduler = Scheduler(max_rows=max_rows, max_slots=max_slots, **rules)
    scheduler.add(segments)
    return scheduler


def plan(scheduler: Scheduler, free_rows: int, free_slots: int = MANY) -> list[int]:
    return scheduler.plan(free_rows=free_rows, free_slots=free_slots, token_budget=MANY)


def test_an_interactive_segment_goes_before_older_bulk():
    scheduler = scheduler_of(*bulk(*range(5)), segment(5), reserved_share=0.0)
    assert plan(scheduler, 4) == [5]
    assert scheduler.num_waiting_of("interactive") == 0
    assert scheduler.num_waiting_of("bulk") == 5


def test_of_the_work_that_joins_while_both_classes_wait_bulk_has_its_share():
    interactive = [segment(number) for number in range(100, 200)]
    scheduler = scheduler_of(
        *bulk(*range(100)), *interactive, reserved_share=0.0, bulk_share=0.2, window=10
    )
    joined = [number for _ in range(100) for number in plan(scheduler, 4)]
    assert sum(number < 100 for number in joined) == 20
    assert joined[:6] == [100, 0, 101, 102, 103, 104]


def test_long_segments_use_up_the_share_of_their_class_sooner():
    interactive = [segment(number, tokens=100) for number in range(100, 150)]
    scheduler = scheduler_of(
        *bulk(*range(100), tokens=10), *interactive, reserved_share=0.0, bulk_share=0.5
    )
    joined = [number for _ in range(22) for number in plan(scheduler, 4)]
    assert [number for number in joined if number >= 100] == [100, 101]


def test_a_class_that_had_nothing_to_run_has_no_claim_to_the_past():
    scheduler = scheduler_of(reserved_share=0.0, bulk_share=0.5)
    for number in range(100):
        scheduler.add([segment(number)])
        assert plan(scheduler, 4) == [number]
    scheduler.add([*bulk(*range(1000, 1010)), *(segment(number) for number in range(100, 110))])
    joined = [number for _ in range(10) for number in plan(scheduler, 4)]
    assert sum(number >= 1000 for number in joined) in (5, 6)


def test_a_claim_grows_no_larger_than_the_credit():
    # A bulk segment too wide for its room is passed again and again; when it has gone, it is
    # bulk's turn for the credit's worth, and not for all that has passed.
    max_rows = 16
    scheduler = scheduler_of(
        *bulk(0, rows=12),
        max_rows=max_rows,
        reserved_share=0.0,
        bulk_share=0.5,
        max_overtakes=MANY,
    )
    for number in range(1, 1000):
        scheduler.add([segment(number)])
        assert plan(scheduler, 4) == [number]
    scheduler.cancel(0)
    scheduler.add(bulk(*range(1000, 2000)))
    scheduler.add(segment(number) for number in range(2000, 3000))
    joined = [number for _ in range(200) for number in plan(scheduler, 4)]
    num_before = next(index for index, number in enumerate(joined) if number >= 2000)
    credit = 0.5 * max_rows * CREDIT_TOKENS / (4 * 10)
    assert credit / 2 < num_before <= credit + 1


def test_bulk_leaves_its_share_of_the_rows_to_interactive_segments():
    scheduler = scheduler_of(*bulk(*range(40)), max_rows=32, max_slots=40, reserved_share=0.25)
    assert plan(scheduler, 32) == [0, 1, 2, 3, 4, 5]
    assert plan(scheduler, 8) == []
    scheduler.add([segment(100), segment(101), segment(102)])
    assert plan(scheduler, 8) == [100, 101]
    assert plan(scheduler, 0) == []


def test_bulk_leaves_its_share_of_the_slots_to_interactive_segments():
    scheduler = scheduler_of(*bulk(*range(40)), max_slots=8, reserved_share=0.25)
    assert plan(scheduler, MANY, 8) == [0, 1, 2, 3, 4, 5]
    assert plan(scheduler, MANY, 2) == []
    scheduler.add([segment(100), segment(101), segment(102)])
    assert plan(scheduler, MANY, 2) == [100, 101]


def test_interactive_segments_may_have_every_row_and_keep_the_reserve():
    scheduler = scheduler_of(
        *(segment(number) for number in range(8)), max_rows=32, reserved_share=0.25
    )
    assert len(plan(scheduler, 32)) == 8
    scheduler.add(bulk(*range(100, 110)))
    assert plan(scheduler, 0) == []
    for number in range(6):  # of eight six leave; two hold just the reserve
        scheduler.release(number)
    assert plan(scheduler, 24) == [100, 101, 102, 103, 104, 105]


def test_a_running_segment_that_is_cancelled_gives_its_rows_back():
    scheduler = scheduler_of(segment(0), segment(1), max_rows=16, reserved_share=0.5)
    assert plan(scheduler, 16) == [0, 1]
    assert not scheduler.cancel(0)
    scheduler.add(bulk(2, 3, 4))
    assert plan(scheduler, 12) == [2, 3]  # four rows are kept for another interactive one


def test_a_bulk_segment_wider_than_what_is_not_reserved_may_use_the_reserve():
    scheduler = scheduler_of(*bulk(0, 1, rows=16), max_rows=16, reserved_share=0.25)
    assert plan(scheduler, 16) == [0]
    assert plan(scheduler, 0) == []
    assert plan(scheduler, 16) == [1]


def test_interactive_segments_in_the_reserve_take_nothing_from_a_wide_bulk_one():
    scheduler = scheduler_of(*bulk(0, rows=24), max_rows=32, reserved_share=0.25, max_overtakes=2)
    for number in range(1, 20):
        scheduler.add([segment(number)])
        assert plan(scheduler, 12) == [number]
        scheduler.release(number)
    assert plan(scheduler, 32) == [0]


def test_interactive_segments_outside_the_reserve_pass_a_wide_bulk_one_only_so_often():
    interactive = [segment(number) for number in range(1, 10)]
    scheduler = scheduler_of(
        *bulk(0, rows=24), *interactive, max_rows=32, reserved_share=0.25, max_overtakes=2
    )
    assert plan(scheduler, 20) == [1, 2, 3, 4]  # two in the reserve, and two that pass it
    assert plan(scheduler, 12) == []
    for number in (3, 4):
        scheduler.release(number)
    assert plan(scheduler, 24) == [0]


def test_the_classes_open_chunks_in_alternation_where_there_is_room_for_all():
    # No two lengths share a chunk. By charges alone 12 would go before 1, which is much longer.
    scheduler = scheduler_of(
        *bulk(0, tokens=200),
        *bulk(1, tokens=1000),
        *bulk(2, tokens=5000),
        *(segment(number, tokens=tokens) for number, tokens in ((10, 10), (11, 40), (12, 90))),
    )
    assert [plan(scheduler, MANY) for _ in range(6)] == [[10], [0], [11], [1], [12], [2]]


@pytest.mark.parametrize("max_rows", [16, 32, 64])
def test_the_reserve_is_a_share_of_the_rows_that_may_be_held_now(max_rows: int) -> None:
    scheduler = scheduler_of(*bulk(*range(40)), max_rows=128)
    chosen = scheduler.plan(
        free_rows=max_rows, free_slots=MANY, token_budget=MANY, max_rows=max_rows
    )
    assert len(chosen) == max_rows * 3 // 4 // 4
    scheduler.add([segment(40)])
    rest = max_rows - 4 * len(chosen)
    again = scheduler.plan(free_rows=rest, free_slots=MANY, token_budget=MANY, max_rows=max_rows)
    assert again == [40]


def test_a_beam_wider_than_what_bulk_may_hold_now_uses_the_reserve() -> None:
    scheduler = scheduler_of(*bulk(0, rows=16), max_rows=128)
    chosen = scheduler.plan(free_rows=16, free_slots=MANY, token_budget=MANY, max_rows=16)
    assert chosen == [0]
