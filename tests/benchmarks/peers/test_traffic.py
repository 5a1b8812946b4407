import asyncio
import json
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from benchmarks.peers.traffic import (
    Address,
    Traffic,
    closed_loop,
    open_loop,
    poisson_arrivals,
    probe,
    share_within,
    summarise_latencies,
)

REPLY = json.dumps({"translatedText": "好"}).encode()


def test_poisson_arrivals_are_seeded_ordered_and_as_many_as_the_rate_says() -> None:
    arrivals = poisson_arrivals(50.0, 40.0, seed=3)
    assert arrivals == poisson_arrivals(50.0, 40.0, seed=3)
    assert arrivals == sorted(arrivals)
    assert arrivals[0] > 0
    assert arrivals[-1] < 40.0
    assert len(arrivals) == pytest.approx(2_000, rel=0.1)


def test_gaps_between_arrivals_vary_as_those_of_a_poisson_process() -> None:
    arrivals = poisson_arrivals(50.0, 40.0, seed=3)
    gaps = [later - earlier for earlier, later in pairwise(arrivals)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert deviation / mean == pytest.approx(1.0, abs=0.1)


def test_no_latencies_give_no_percentiles() -> None:
    assert summarise_latencies([]) == {"p50": None, "p95": None, "p99": None}


def _against_a_server(
    act: Callable[[Address], Awaitable[Traffic]], *, status: str = "200 OK"
) -> tuple[Traffic, list[dict[str, str]]]:
    """What clients saw of a server that answers at once, and what it was sent."""
    seen = []
    connections = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.current_task())
        while not reader.at_eof():
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            seen.append(json.loads(await reader.readexactly(length)))
            writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(REPLY)}\r\n\r\n".encode())
            writer.write(REPLY)
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def scenario() -> Traffic:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            traffic = await act(Address(url=f"http://127.0.0.1:{port}", target="de"))
            await asyncio.gather(*connections)
            return traffic

    return asyncio.run(scenario()), seen


def test_a_closed_loop_counts_answers_within_its_window_only() -> None:
    traffic, seen = _against_a_server(
        lambda address: closed_loop(address, ["a", "b"], num_clients=2, seconds=0.2)
    )
    assert traffic.seconds == pytest.approx(0.15)
    assert 0 < traffic.num_answered <= len(traffic.latencies_seconds) < len(seen)
    assert traffic.per_second == pytest.approx(traffic.num_answered / 0.15)
    assert traffic.num_errors == 0
    assert {(sent["q"], sent["target"]) for sent in seen} == {("a", "de"), ("b", "de")}


def test_a_request_counts_by_the_share_of_its_life_within_the_time() -> None:
    within = [
        share_within(start, stop, begin=10.0, end=20.0)
        for start, stop in ((11.0, 12.0), (8.0, 12.0), (19.0, 23.0), (5.0, 25.0), (1.0, 2.0))
    ]
    assert within == [1.0, 0.5, 0.25, 0.5, 0.0]
    assert share_within(11.0, 11.0, begin=10.0, end=20.0) == 1.0


def test_batches_count_the_same_wherever_they_fall() -> None:
    """Batches of 1.7 s in a window of 4 s: two or three end within it, 4 / 1.7 are in it."""
    for shift in range(17):
        ends = [shift / 10 + 1.7 * number for number in range(6)]
        counted = sum(share_within(stop - 1.7, stop, begin=2.0, end=6.0) for stop in ends)
        assert counted == pytest.approx(4 / 1.7)


def test_an_open_loop_sends_every_arrival() -> None:
    traffic, seen = _against_a_server(
        lambda address: open_loop(address, ["a"], [0.0, 0.0, 0.01, 0.02])
    )
    assert (traffic.num_answered, len(traffic.latencies_seconds), len(seen)) == (4, 4, 4)


def test_an_answer_that_is_not_200_is_an_error_and_has_no_latency() -> None:
    traffic, _ = _against_a_server(
        lambda address: open_loop(address, ["a"], [0.0, 0.0]), status="503 Service Unavailable"
    )
    assert (traffic.num_errors, traffic.num_answered, traffic.latencies_seconds) == (2, 0, [])


def test_probes_are_sent_beside_the_long_texts() -> None:
    traffic, seen = _against_a_server(
        lambda address: probe(address, ["long"], "short", seconds=1.0, seed=1)
    )
    num_short = sum(sent["q"] == "short" for sent in seen)
    assert 0 < num_short == len(traffic.latencies_seconds)
    assert num_short < len(seen)
