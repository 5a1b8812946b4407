"""Many clients at once: leaving, waiting too long, too many, and all alike."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.running_server import POLL_SECONDS, RunningServer, running_server

# Few slots and float32 make a small network slow: the work below takes seconds, not milliseconds.
SLOW = {
    "DRAGOMAN_COMPUTE_TYPE": "float32",
    "DRAGOMAN_MAX_SLOTS": "4",
    "DRAGOMAN_MAX_ROWS": "16",
    "DRAGOMAN_MAX_PENDING_SEGMENTS": "2400",
}
GAUGES = ("pending_segments", "queued_segments", "running_segments", "running_rows", "slots_in_use")
TEXTS = [f"The cat number {number} sees the river." for number in range(8)]


@pytest.fixture(scope="module")
def slow_server(
    served_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    log = tmp_path_factory.mktemp("slow") / "log.jsonl"
    with running_server(served_checkpoint, log, **SLOW) as server:
        yield server


def _gauges(server: RunningServer) -> dict[str, float]:
    metrics = server.metrics()
    return {name: metrics[f"dragoman_{name}"] for name in GAUGES}


def _wait_idle(server: RunningServer) -> None:
    """Ask until nothing is left of any request; pytest's timeout is the bound."""
    while any(_gauges(server).values()):
        time.sleep(POLL_SECONDS)


async def _send(server: RunningServer, request: bytes) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    await writer.drain()
    return writer


def _raw_request(texts: list[str]) -> bytes:
    """A request whose sentences take all rows, each alone."""
    body = json.dumps({"texts": texts, "target": "zh-Hans", "beam_size": 16}).encode()
    head = "POST /v1/translate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def test_200_clients_that_disconnect_leave_nothing_behind(slow_server: RunningServer) -> None:
    before = slow_server.metrics()

    async def scenario() -> None:
        request = _raw_request(TEXTS)
        [engine] = slow_server.engine_ids()
        os.kill(engine, signal.SIGSTOP)  # some would be done before all have arrived
        try:
            writers = await asyncio.gather(*(_send(slow_server, request) for _ in range(200)))
            arrived = before["dragoman_received_segments_total"] + 200 * len(TEXTS)
            while slow_server.metrics()["dragoman_received_segments_total"] < arrived:  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECONDS)
            assert _gauges(slow_server)["pending_segments"] == 200 * len(TEXTS)
            for writer in writers:
                writer.close()
        finally:
            os.kill(engine, signal.SIGCONT)

    asyncio.run(scenario())
    _wait_idle(slow_server)
    after = slow_server.metrics()
    finished = (
        after["dragoman_finished_segments_total"] - before["dragoman_finished_segments_total"]
    )
    cancelled = (
        after["dragoman_cancelled_segments_total"] - before["dragoman_cancelled_segments_total"]
    )
    received = (
        after["dragoman_received_segments_total"] - before["dragoman_received_segments_total"]
    )
    assert finished + cancelled == received >= 200 * len(TEXTS)  # some are tried twice
    assert cancelled > finished
    gone = after["dragoman_requests_total{route=/v1/translate,status=499}"]
    assert gone == pytest.approx(200, abs=20)
    with slow_server.client() as client:
        reply = client.post("/translate", json={"q": "A cat.", "source": "en", "target": "zh"})
    assert reply.status_code == 200


def test_a_deadline_drops_its_work(slow_server: RunningServer) -> None:
    body = {"texts": TEXTS * 15, "target": "zh-Hans", "timeout_seconds": 0.3}
    with slow_server.client() as client:
        reply = client.post("/v1/translate", json=body)
    assert (reply.status_code, reply.json()["code"]) == (504, "deadline_exceeded")
    before = slow_server.metrics()["dragoman_finished_segments_total"]
    _wait_idle(slow_server)
    assert slow_server.metrics()["dragoman_finished_segments_total"] - before < len(TEXTS) * 15


MANY = {"texts": [" ".join(TEXTS)] * 100, "target": "zh-Hans", "beam_size": 4}


def test_a_stream_whose_client_leaves_drops_its_work_and_is_counted_once(
    slow_server: RunningServer,
) -> None:
    name = "dragoman_requests_total{route=/v1/translate/stream,status=499}"
    before = slow_server.metrics()
    with (
        slow_server.client() as client,
        client.stream("POST", "/v1/translate/stream", json=MANY) as reply,
    ):
        assert next(reply.iter_lines()) == "event: segment"
    _wait_idle(slow_server)
    while name not in slow_server.metrics():
        time.sleep(POLL_SECONDS)
    after = slow_server.metrics()
    assert after[name] == 1
    kind = "dragoman_cancelled_segments_total"
    assert after[kind] - before[kind] > 0


def test_a_stream_that_takes_too_long_ends_with_an_error(slow_server: RunningServer) -> None:
    with slow_server.client() as client:
        reply = client.post("/v1/translate/stream", json=MANY | {"timeout_seconds": 0.5})
    _wait_idle(slow_server)
    if reply.status_code == 200:  # a sentence was done by then
        name, _, data = reply.text.rstrip().rpartition("event: ")[2].partition("\ndata: ")
        assert name == "error"
        content = json.loads(data)
    else:
        content = {"status": reply.status_code} | reply.json()
    assert (content["status"], content["code"]) == (504, "deadline_exceeded")


async def _at_once(server: RunningServer, texts: list[str], num: int) -> list[httpx.Response]:
    body = {"q": texts, "source": "en", "target": "zh"}
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        return await asyncio.gather(*[client.post("/translate", json=body) for _ in range(num)])


def test_too_much_at_once_is_a_429_that_says_when_to_come_back(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    small = SLOW | {"DRAGOMAN_MAX_PENDING_SEGMENTS": "20", "DRAGOMAN_MAX_REQUESTS": "5"}
    with running_server(served_checkpoint, tmp_path / "log.jsonl", **small) as server:
        for texts, num_requests, limit in ((TEXTS, 4, 15), (TEXTS[:1], 10, 4)):
            replies = asyncio.run(_at_once(server, texts, num_requests))
            assert {reply.status_code for reply in replies} == {200, 429}
            for reply in replies:
                if reply.status_code == 429:
                    content = reply.json()
                    assert content["error"].startswith("Slowdown: ")
                    assert (content["code"], content["limit"]) == ("overloaded", limit)
                    assert content["value"] >= limit
                    assert 1 <= int(reply.headers["retry-after"]) <= 30
        never = {"q": ["A cat."] * 16, "source": "en", "target": "zh"}
        with server.client() as client:
            reply = client.post("/translate", json=never)
        assert (reply.status_code, reply.json()["limit"]) == (413, 15)


LONG = " ".join(TEXTS * 30)
ONE = {"q": "The cat sees the river.", "source": "en", "target": "zh"}


@pytest.mark.parametrize(
    "large",
    [
        {"texts": [LONG] * 5, "target": "zh-Hans", "beam_size": 4},
        {"texts": [LONG] * 5, "target": "zh-Hans", "beam_size": 4, "priority": "interactive"},
        {"texts": [" ".join(TEXTS)] * 100, "target": "zh-Hans", "priority": "interactive"},
    ],
    ids=["says nothing", "claims to be urgent", "many texts claim to be urgent"],
)
def test_a_large_request_holds_nobody_up_whatever_it_says_of_itself(
    slow_server: RunningServer, large: dict[str, object]
) -> None:
    async def scenario() -> None:
        received = slow_server.metrics()["dragoman_received_segments_total"]
        async with httpx.AsyncClient(base_url=slow_server.url, timeout=120) as client:
            waiting = asyncio.create_task(client.post("/v1/translate", json=large))
            while slow_server.metrics()["dragoman_received_segments_total"] == received:
                await asyncio.sleep(0.01)
                assert not waiting.done()
            for _ in range(5):
                reply = await client.post("/translate", json=ONE)
                assert reply.status_code == 200
            gauges = _gauges(slow_server)
            assert gauges["pending_segments"] > 100  # nearly all of the large one
            assert not waiting.done()
            waiting.cancel()

    asyncio.run(scenario())
    _wait_idle(slow_server)


def test_a_queue_full_of_bulk_refuses_bulk_and_nobody_else(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    small = SLOW | {"DRAGOMAN_MAX_PENDING_SEGMENTS": "200", "DRAGOMAN_MAX_REQUESTS": "16"}
    bulk = {"texts": TEXTS * 16, "target": "zh-Hans", "priority": "bulk"}

    async def scenario(server: RunningServer) -> None:
        [engine] = server.engine_ids()
        async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:
            os.kill(engine, signal.SIGSTOP)
            filling = asyncio.create_task(client.post("/v1/translate", json=bulk))
            while server.metrics()["dragoman_pending_segments"] < len(TEXTS * 16):
                await asyncio.sleep(0.01)
                assert not filling.done()
            ones = [asyncio.create_task(client.post("/translate", json=ONE)) for _ in range(5)]
            for _ in range(5):
                refused = await client.post("/v1/translate", json=bulk)
                assert (refused.status_code, refused.json()["limit"]) == (429, 150)
            os.kill(engine, signal.SIGCONT)
            replies = await asyncio.gather(filling, *ones)
            assert [reply.status_code for reply in replies] == [200] * 6

    with running_server(served_checkpoint, tmp_path / "log.jsonl", **small) as server:
        asyncio.run(scenario(server))


def test_concurrent_results_equal_serial_results(server: RunningServer) -> None:
    texts = [f"{text} Number {index}." for index, text in enumerate(TEXTS * 5)]

    async def scenario() -> list[str]:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            bodies = [{"q": text, "source": "en", "target": "zh"} for text in texts]
            replies = await asyncio.gather(
                *[client.post("/translate", json=body) for body in bodies]
            )
        return [reply.json()["translatedText"] for reply in replies]

    with server.client() as client:
        serial = [
            client.post("/translate", json={"q": text, "source": "en", "target": "zh"}).json()
            for text in texts
        ]
    assert asyncio.run(scenario()) == [reply["translatedText"] for reply in serial]
