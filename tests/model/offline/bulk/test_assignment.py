"""Assignment: neighbours to one worker, what is lost to others, each block once, no idle end."""

import random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.offline.bulk.assignment import Assignment
from model.offline.bulk.blocks import Block


def _blocks(groups: list[int]) -> list[Block]:
    numbers = [group for group, size in enumerate(groups) for _ in range(size)]
    return [
        Block(number=number, file=0, group=group, start=0, end=0, first_row=1, num_rows=1)
        for number, group in enumerate(numbers)
    ]


def _next(assignment: Assignment, worker: int) -> int | None:
    block = assignment.next(worker)
    return None if block is None else block.number


def test_each_worker_reads_a_group_of_its_own_in_order() -> None:
    assignment = Assignment(_blocks([3, 3, 2]))
    assert [_next(assignment, worker) for worker in (0, 1, 0, 1, 0, 1)] == [0, 3, 1, 4, 2, 5]
    assert [_next(assignment, worker) for worker in (1, 0, 1)] == [6, 7, None]


def test_what_a_lost_worker_had_goes_to_the_others_first() -> None:
    assignment = Assignment(_blocks([4]))
    assert [_next(assignment, worker) for worker in (0, 0, 1)] == [0, 1, 2]
    assignment.finished(0, 0)
    assert [block.number for block in assignment.lost(0)] == [1]
    assert [_next(assignment, 1) for _ in range(3)] == [1, 3, None]
    assert not assignment.is_done
    for number in (1, 2, 3):
        assignment.finished(1, number)
    assert assignment.is_done


def _handed_out(assignment: Assignment, ready: list[int], num_workers: int) -> list[list[int]]:
    """What each worker gets."""
    got: list[list[int]] = [[] for _ in range(num_workers)]
    for worker, block in assignment.hand_out(ready, num_workers=num_workers, max_held=3):
        got[worker].append(block.number)
    return got


def test_a_worker_has_several_blocks_while_many_wait_and_one_at_the_end() -> None:
    assignment = Assignment(_blocks([8]))
    assert _handed_out(assignment, [0, 1], 2) == [[0, 2, 4], [1, 3]]
    later = []
    for number in (0, 2, 4, 5):
        assignment.finished(0, number)
        later.append(_handed_out(assignment, [0, 1], 2))
    assert later == [[[], []], [[5], []], [[6], []], [[], []]]  # 7 is for who has none
    for number in (1, 3):
        assignment.finished(1, number)
    assert _handed_out(assignment, [0, 1], 2) == [[], [7]]


def test_what_waits_is_kept_for_a_worker_that_is_still_starting() -> None:
    assignment = Assignment(_blocks([3]))
    assert _handed_out(assignment, [0], 3) == [[0], [], []]
    assert _handed_out(assignment, [0, 1, 2], 3) == [[], [1], [2]]


def test_a_worker_alone_has_as_many_as_it_takes_to_the_end() -> None:
    assignment = Assignment(_blocks([4]))
    assert _handed_out(assignment, [0], 1) == [[0, 1, 2]]
    assignment.finished(0, 0)
    assert _handed_out(assignment, [0], 1) == [[3]]


def _idle_blocks(num_blocks: int, num_workers: int, *, is_kept_full: bool, seed: int) -> float:
    """Work that could have been done while some workers had ended and others had not.

    Workers are nearly equally fast, and share their time among the blocks that they have.
    """
    drawn = random.Random(seed)
    assignment = Assignment(_blocks([num_blocks]))
    speeds = [drawn.uniform(0.95, 1.05) for _ in range(num_workers)]
    held: list[dict[int, float]] = [{} for _ in speeds]
    ended = [0.0] * num_workers
    now = 0.0
    while not assignment.is_done:
        for worker, blocks in enumerate(held):
            while is_kept_full and len(blocks) < 3 and (block := assignment.next(worker)):
                blocks[block.number] = drawn.uniform(0.9, 1.1)
        for worker, block in assignment.hand_out(
            range(num_workers), num_workers=num_workers, max_held=3
        ):
            held[worker][block.number] = drawn.uniform(0.9, 1.1)
        step, first = min(
            (min(blocks.values()) * len(blocks) / speed, worker)
            for worker, (blocks, speed) in enumerate(zip(held, speeds, strict=True))
            if blocks
        )
        now += step
        for blocks, speed in zip(held, speeds, strict=True):
            for number in blocks:
                blocks[number] -= step * speed / len(blocks)
        done = min(held[first], key=held[first].__getitem__)
        del held[first][done]
        assignment.finished(first, done)
        ended[first] = now
    return sum(max(ended) - one for one in ended)


@pytest.mark.parametrize(("num_blocks", "num_workers"), [(8, 2), (40, 2), (100, 8), (1000, 40)])
def test_workers_end_nearly_together(num_blocks: int, num_workers: int) -> None:
    now, full = (
        mean(
            _idle_blocks(num_blocks, num_workers, is_kept_full=is_kept_full, seed=seed)
            for seed in range(20)
        )
        for is_kept_full in (False, True)
    )
    assert now < 0.7 * full
    assert now < 0.6 * num_workers


@given(
    groups=st.lists(st.integers(1, 5), max_size=4),
    acts=st.lists(st.tuples(st.integers(0, 2), st.sampled_from("nfl")), max_size=60),
)
def test_no_block_is_lost_and_none_is_held_twice(
    groups: list[int], acts: list[tuple[int, str]]
) -> None:
    blocks = _blocks(groups)
    assignment = Assignment(blocks)
    held: dict[int, list[int]] = {0: [], 1: [], 2: []}
    finished: list[int] = []
    for worker, act in acts:
        if act == "n" and (number := _next(assignment, worker)) is not None:
            assert all(number not in own for own in held.values())
            held[worker].append(number)
        elif act == "f" and held[worker]:
            finished.append(held[worker].pop(0))
            assignment.finished(worker, finished[-1])
        elif act == "l":
            assert [block.number for block in assignment.lost(worker)] == held[worker]
            held[worker] = []
    for worker in held:
        assignment.lost(worker)
    while (number := _next(assignment, 9)) is not None:
        assignment.finished(9, number)
        finished.append(number)
    assert sorted(finished) == [block.number for block in blocks]
    assert assignment.is_done
