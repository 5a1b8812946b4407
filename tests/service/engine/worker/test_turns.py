"""Who comes next within a class, beside a machine that serves all requests at once and evenly."""

import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.worker.turns import FairQueue, WaitingSegment, shared_by_clients


def request(
    number: int, works: list[int], *, client: int = 0, first_id: int | None = None
) -> list[WaitingSegment]:
    """The segments of a request; their ids begin with 100 times its number."""
    first_id = 100 * number if first_id is None else first_id
    return [
        WaitingSegment(
            segment_id=first_id + place,
            num_source_tokens=work,
            num_rows=1,
            client=client,
            request=number,
            request_work=sum(works),
        )
        for place, work in enumerate(works)
    ]


def shared(*requests: list[WaitingSegment]) -> FairQueue:
    turns = shared_by_clients()
    for segments in requests:
        for segment in segments:
            turns.add(segment)
    return turns


def order(turns: FairQueue) -> list[int]:
    return [one.segment_id for one in turns.in_turn()]


def join_first(turns: FairQueue) -> WaitingSegment:
    first = next(turns.in_turn())
    turns.join(first)
    return first


def join_all(turns: FairQueue) -> list[int]:
    joined = []
    while turns:
        joined.append(join_first(turns).segment_id)
    return joined


def test_within_a_request_the_order_is_the_texts() -> None:
    turns = shared(request(1, [9, 1, 5, 1]))
    assert order(turns) == join_all(turns) == [100, 101, 102, 103]


@pytest.mark.parametrize("clients", [(0, 0, 0), (1, 2, 3)])
def test_equal_requests_are_done_one_after_the_other_as_they_came(
    clients: tuple[int, int, int],
) -> None:
    turns = shared(
        *(request(number, [5, 5], client=client) for number, client in enumerate(clients, start=1))
    )
    assert order(turns) == join_all(turns) == [100, 101, 200, 201, 300, 301]


@pytest.mark.parametrize("client", [0, 1])
def test_a_small_request_does_not_wait_for_a_large_one_that_has_begun(client: int) -> None:
    turns = shared(request(1, [10] * 50))
    for _ in range(5):
        join_first(turns)
    for segment in request(2, [10, 10], client=client):
        turns.add(segment)
    assert order(turns)[:3] == [200, 201, 105]


def test_a_client_of_many_requests_has_no_more_than_another_of_few() -> None:
    many = [request(number, [10], client=1) for number in range(1, 41)]
    turns = shared(*many, *(request(50 + n, [10], client=2) for n in range(4)))
    head = join_all(turns)[:8]
    assert sorted(number // 5000 for number in head) == [0] * 4 + [1] * 4


def test_a_client_that_was_away_has_no_claim_to_the_past() -> None:
    turns = shared(request(1, [1], client=1))
    join_all(turns)
    for number in range(100, 200):
        [segment] = request(number, [1], client=2, first_id=number)
        turns.add(segment)
    for _ in range(50):
        join_first(turns)
    for number in range(1, 11):
        [segment] = request(number, [1], client=1, first_id=number)
        turns.add(segment)
    head = order(turns)[:20]
    assert abs(sum(number < 100 for number in head) - 10) <= 1


def test_who_comes_back_at_once_still_owes_what_it_had() -> None:
    others = [request(number, [10], client=2) for number in range(10, 40)]
    turns = shared(*others)
    had = {1: 0, 2: 0}
    for number in range(1, 6):  # always one that is as large as five of the other's
        for segment in request(number, [50], client=1):
            turns.add(segment)
        while had[1] < 50 * number:
            first = join_first(turns)
            had[first.client] += first.work
        assert had[1] - had[2] <= 50


@pytest.mark.parametrize("is_client", [True, False])
def test_a_stream_of_newcomers_does_not_hold_up_who_waits(is_client: bool) -> None:
    turns = shared(request(1, [10] * 3, client=1, first_id=0))
    joined = []
    for newcomer in range(100, 400):  # always one that has had nothing yet
        client = newcomer if is_client else 1
        [segment] = request(newcomer, [10], client=client, first_id=newcomer)
        turns.add(segment)
        joined.append(join_first(turns).segment_id)
    assert {0, 1, 2} <= set(joined[:10])


def test_what_is_cancelled_is_charged_to_nobody() -> None:
    dropped = request(1, [1000] * 5, client=1)
    turns = shared(dropped, request(2, [10], client=2), request(3, [10], client=2))
    for one in dropped:
        turns.remove(one)
    for segment in request(4, [10], client=1):
        turns.add(segment)
    assert len(turns) == 3
    assert order(turns) == join_all(turns) == [200, 400, 300]


def test_clients_that_came_once_are_forgotten() -> None:
    turns = shared_by_clients()
    for number in range(10_000):
        for segment in request(number, [1 + number % 7], client=number):
            turns.add(segment)
        join_first(turns)
    assert len(turns) == 0
    assert len(turns._charges) < 3000


def test_segments_whose_request_is_not_known_are_served_as_they_came() -> None:
    turns = shared_by_clients()
    for number, work in enumerate((9, 1, 5)):
        turns.add(WaitingSegment(segment_id=number, num_source_tokens=work, num_rows=1))
    join_first(turns)
    turns.add(WaitingSegment(segment_id=7, num_source_tokens=1, num_rows=1))
    assert order(turns) == join_all(turns) == [1, 2, 7]


REQUESTS = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.integers(1, 30), min_size=1, max_size=5)),
    min_size=1,
    max_size=12,
)


@given(REQUESTS, st.randoms(use_true_random=False))
def test_the_order_that_is_told_is_the_order_in_which_they_join(
    asked: list[tuple[int, list[int]]], chance: random.Random
) -> None:
    turns = shared_by_clients()
    left = {}
    for number, (client, works) in enumerate(asked):
        for one in request(number, works, client=client):
            left[one.segment_id] = one
            turns.add(one)
    while left:
        assert len(turns) == len(left)
        told = list(turns.in_turn())
        assert sorted(one.segment_id for one in told) == sorted(left)
        if chance.random() < 0.3:
            turns.remove(left.pop(chance.choice(sorted(left))))
            continue
        for one in told[: chance.randint(1, 4)]:
            assert next(turns.in_turn()) == one
            turns.join(one)
            del left[one.segment_id]


def _ends_when_shared_evenly(asked: list[tuple[int, list[int]]]) -> list[float]:
    """When each request ends if all clients have the same at once, each client's requests too."""
    left = [float(sum(works)) for _, works in asked]
    ends, now = [0.0] * len(asked), 0.0
    while any(left):
        num_of_client = defaultdict(int)
        for (client, _), work in zip(asked, left, strict=True):
            num_of_client[client] += work > 0
        num_clients = sum(number > 0 for number in num_of_client.values())
        shares = [
            1 / num_clients / num_of_client[client] if work else 0.0
            for (client, _), work in zip(asked, left, strict=True)
        ]
        step = min(work / share for work, share in zip(left, shares, strict=True) if share)
        now += step
        for number, share in enumerate(shares):
            before = left[number]
            left[number] = max(0.0, before - share * step) if before - share * step > 1e-6 else 0.0
            if before and not left[number]:
                ends[number] = now
    return ends


@given(REQUESTS)
def test_nobody_ends_later_than_if_all_were_served_at_once_and_evenly(
    asked: list[tuple[int, list[int]]],
) -> None:
    turns = shared(
        *(request(number, works, client=who) for number, (who, works) in enumerate(asked))
    )
    now, ends = 0, {}
    while turns:
        first = join_first(turns)
        now += first.work
        ends[first.request] = now
    for number, latest in enumerate(_ends_when_shared_evenly(asked)):
        assert ends[number] <= latest + 1e-3, f"request {number} ends at {ends[number]}"
