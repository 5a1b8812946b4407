"""Assignment: neighbours to one worker, what is lost to the others, each block once."""

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
    assert [assignment.share(number) for number in (1, 2, 3, 9)] == [3, 2, 1, 1]
    for number in (1, 2, 3):
        assignment.finished(1, number)
    assert assignment.is_done


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
