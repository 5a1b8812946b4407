"""Shares of processors: on machines of many shapes, and on this one."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.system.cores import usable_cores
from model.system.shares import Core, Share, divide, read_cores


def machine(*cores_of_node: int, threads: int = 1) -> list[Core]:
    """Numbered as Linux does: the first threads of all cores before their second ones."""
    total = sum(cores_of_node)
    nodes = [node for node, number in enumerate(cores_of_node) for _ in range(number)]
    return [
        Core(node=node, processors=tuple(core + total * thread for thread in range(threads)))
        for core, node in enumerate(nodes)
    ]


MACHINES = st.builds(
    lambda cores, threads: machine(*cores, threads=threads),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 2),
)


@given(MACHINES, st.data())
def test_shares_are_disjoint_and_none_is_empty(cores, data):
    processors = [number for core in cores for number in core.processors]
    number = data.draw(st.integers(1, len(processors)))
    shares = divide(cores, number, num_usable=len(processors))
    used = [one for share in shares for one in share.processors or ()]
    assert len(shares) == number
    assert len(used) == len(set(used))
    assert set(used) <= set(processors)
    assert all(share.num_threads >= 1 and share.processors for share in shares)


@given(MACHINES, st.data())
def test_while_there_are_cores_for_all_no_core_is_in_two_shares(cores, data):
    number = data.draw(st.integers(1, len(cores)))
    core_of = {one: core for core in cores for one in core.processors}
    shares = divide(cores, number, num_usable=len(core_of))
    owners = [{core_of[one] for one in share.processors or ()} for share in shares]
    assert sum(map(len, owners)) == len(set().union(*owners))
    assert [len(owned) for owned in owners] == [share.num_threads for share in shares]
    assert sum(map(len, owners)) == max(number, len(cores) - 1)


@given(MACHINES, st.data())
def test_what_is_left_is_whole_cores_as_many_as_there_are_beside_one_a_share(cores, data):
    number = data.draw(st.integers(1, len(cores)))
    num_left = data.draw(st.integers(0, len(cores) + 3))
    core_of = {one: core for core in cores for one in core.processors}
    shares = divide(cores, number, num_usable=len(core_of), num_left=num_left)
    used = {core_of[one] for share in shares for one in share.processors or ()}
    assert len(cores) - len(used) == min(num_left, len(cores) - number)
    assert all(share.num_threads >= 1 for share in shares)
    assert sum(share.num_threads for share in shares) == len(used)


@given(MACHINES, st.data())
def test_with_a_quota_threads_are_what_is_left_and_never_fewer_than_shares(cores, data):
    num_processors = sum(len(core.processors) for core in cores)
    if num_processors == 1:
        return
    num_usable = data.draw(st.integers(1, num_processors - 1))
    number = data.draw(st.integers(1, num_usable))
    num_left = data.draw(st.integers(0, num_usable + 3))
    shares = divide(cores, number, num_usable=num_usable, num_left=num_left)
    expected = max(number, min(num_usable, len(cores)) - num_left)
    assert [share.processors for share in shares] == [None] * number
    assert sum(share.num_threads for share in shares) == expected
    assert min(share.num_threads for share in shares) >= 1


@given(st.integers(1, 4), st.integers(1, 9), st.data())
def test_what_is_left_is_taken_from_all_nodes_alike(num_nodes, cores_of_node, data):
    cores = machine(*[cores_of_node] * num_nodes)
    num_left = data.draw(st.integers(0, len(cores) - num_nodes))
    shares = divide(cores, num_nodes, num_usable=len(cores), num_left=num_left)
    sizes = [share.num_threads for share in shares]
    assert max(sizes) - min(sizes) <= 1


@given(MACHINES, st.data())
def test_with_as_many_shares_as_nodes_none_lies_across_two(cores, data):
    nodes = {core.node for core in cores}
    if len(cores) < len(nodes):
        return
    number = data.draw(st.integers(len(nodes), len(cores)))
    node_of = {one: core.node for core in cores for one in core.processors}
    for share in divide(cores, number, num_usable=len(node_of)):
        assert len({node_of[one] for one in share.processors or ()}) == 1


@given(st.integers(1, 40), st.data())
def test_on_one_node_shares_differ_by_one_core_at_most(number_of_cores, data):
    number = data.draw(st.integers(1, number_of_cores))
    sizes = [
        share.num_threads
        for share in divide(machine(number_of_cores), number, num_usable=number_of_cores)
    ]
    assert max(sizes) - min(sizes) <= 1


@given(MACHINES, st.data())
def test_with_less_time_than_processors_a_share_is_a_number_of_threads(cores, data):
    num_processors = sum(len(core.processors) for core in cores)
    if num_processors == 1:
        return
    num_usable = data.draw(st.integers(1, num_processors - 1))
    number = data.draw(st.integers(1, num_usable))
    shares = divide(cores, number, num_usable=num_usable)
    assert all(share.processors is None for share in shares)
    assert len(shares) == number
    assert sum(share.num_threads for share in shares) <= max(num_usable, number)


def test_two_replicas_on_two_cores_have_one_each():
    assert divide(machine(2), 2, num_usable=2) == [
        Share(num_threads=1, processors=(0,)),
        Share(num_threads=1, processors=(1,)),
    ]


def test_a_core_more_than_replicas_is_left_to_the_front():
    assert divide(machine(5, threads=2), 2, num_usable=10) == [
        Share(num_threads=2, processors=(0, 1, 5, 6)),
        Share(num_threads=2, processors=(2, 3, 7, 8)),
    ]


def test_more_shares_than_cores_are_threads_of_them():
    shares = divide(machine(2, threads=2), 4, num_usable=4)
    assert [share.processors for share in shares] == [(0,), (2,), (1,), (3,)]


def test_what_belongs_together_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 6})
    for number, siblings, node in ((0, "0,4", 1), (1, "1,5", 0), (2, "2,6", 1), (6, "2,6", 1)):
        folder = tmp_path / f"cpu{number}"
        (folder / "topology").mkdir(parents=True)
        (folder / "topology" / "thread_siblings_list").write_text(f"{siblings}\n")
        (folder / f"node{node}").mkdir()
    assert read_cores(tmp_path) == [
        Core(node=0, processors=(1,)),
        Core(node=0, processors=(3,)),
        Core(node=1, processors=(0,)),
        Core(node=1, processors=(2, 6)),
    ]


def test_this_machine_can_be_divided():
    number = usable_cores()
    shares = divide(read_cores(), number, num_usable=number)
    assert len(shares) == number
    for share in shares:
        assert set(share.processors or ()) <= os.sched_getaffinity(0)
