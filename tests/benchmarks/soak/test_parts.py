"""The parts of the long proofs that can be wrong by themselves; running them tries the rest."""

import asyncio
import math

import pytest

from benchmarks.soak import watch
from benchmarks.soak.outcome import Outcome, quantile, spread
from benchmarks.soak.server import Served
from benchmarks.soak.steady import Window, judge
from benchmarks.soak.texts import paragraphs, sentences
from benchmarks.soak.traffic import (
    NO_REPLY,
    Client,
    closed_loop,
    for_seconds,
    offered,
    wait_idle,
    wait_until,
)
from support.running_server import RunningServer, free_port


def test_a_quantile_is_one_of_the_values() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert quantile(values, 0.99) == 100.0
    assert quantile(values, 0.5) == 51.0
    assert math.isnan(quantile([], 0.5))
    assert spread([]) == {}
    assert spread([0.1, 0.2, 0.3]) == {"median": 0.2, "p99": 0.3, "max": 0.3}


def test_only_broken_promises_are_noted() -> None:
    outcome = Outcome()
    outcome.expect(holds=True, otherwise="a")
    outcome.expect(holds=False, otherwise="b")
    assert outcome.missed == ["b"]


def _window(
    *,
    num_failed: int = 0,
    stolen: float = 0.0,
    others: float = 0.0,
    p99: float = 0.1,
    mib: int = 300,
) -> Window:
    return Window(
        capacity_per_second=100.0,
        num_requests=2_400,
        num_failed=num_failed,
        latency_seconds={"median": 0.01, "p99": p99, "max": 1.0},
        resident_bytes={"front": mib * 2**20},
        num_files=50,
        stolen=stolen,
        others=others,
        slowness=1.0,
    )


def test_a_steady_load_is_judged_by_its_undisturbed_windows() -> None:
    outcome = Outcome()
    disturbed = [
        _window(num_failed=9, stolen=0.2, p99=9.0),
        _window(num_failed=9, stolen=0.06, others=0.06),
    ]
    judge(outcome, [_window()] * 5 + disturbed + [_window()], 6)
    assert outcome.missed == []
    assert outcome.figures["num_judged"] == 6
    assert outcome.figures["num_requests"] == 6 * 2_400


@pytest.mark.parametrize(
    ("windows", "missed"),
    [
        ([_window()] * 5 + [_window(stolen=0.2)], "only 5 windows were undisturbed, not 6"),
        ([_window()] * 5 + [_window(num_failed=1)], "1 of 14400 requests failed"),
        ([_window()] * 4 + [_window(mib=307)] * 2, "memory grew by 2.3%"),
        ([_window()] * 4 + [_window(p99=0.2)] * 2, "p99 went from 0.100 to 0.200 s"),
    ],
)
def test_a_steady_load_misses_what_an_undisturbed_window_misses(
    windows: list[Window], missed: str
) -> None:
    outcome = Outcome()
    judge(outcome, windows, 6)
    assert outcome.missed == [missed]


def test_a_watch_sees_every_second_and_its_own_errors(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Served(process=server.process, url=server.url, log=None)
    monkeypatch.setattr(watch, "INTERVAL_SECONDS", 0.02)

    async def scenario(pause: float) -> list[watch.Second]:
        async with watch.watching(served) as seconds:
            await asyncio.sleep(pause)
        return seconds

    seconds = asyncio.run(scenario(0.5))
    assert 2 <= len(seconds) <= 25
    assert all(0.0 <= one.stolen + one.others <= 1.0 for one in seconds)
    assert all(one.work_seconds > 0.0 and one.late_seconds >= 0.0 for one in seconds)
    assert watch.mean(seconds, lambda one: one.work_seconds) > 0.0
    assert math.isnan(watch.mean([], lambda one: one.stolen))

    monkeypatch.setattr(watch, "fixed_work_seconds", lambda: 1 / 0)
    with pytest.RaisesGroup(ZeroDivisionError):
        asyncio.run(scenario(0.5))


def test_sentences_are_distinct_and_no_more_than_there_are() -> None:
    assert len(set(sentences(4_096))) == 4_096
    with pytest.raises(ValueError, match="there are 4096"):
        sentences(4_097)


def test_paragraphs_have_every_sentence_once() -> None:
    found = paragraphs(5, num_sentences=8)
    assert len(found) == 5
    assert all(one in " ".join(found) for one in sentences(40))


def test_clients_see_translations_refusals_and_silence(server: RunningServer) -> None:
    async def scenario() -> None:
        client = Client(server.port)
        reply = await client.translate("A cat sees the river.")
        assert (reply.status, reply.code) == (200, "")
        assert reply.translation
        refused = await client.translate("a" * 30_000)
        assert (refused.status, refused.code) == (413, "too_long")
        assert await wait_until(client, "/readyz", 200) < 60
        await wait_idle(client)
        client.close()
        nobody = Client(free_port())
        assert (await nobody.translate("A cat.")).status == NO_REPLY
        assert await nobody.get("/readyz") == (NO_REPLY, "")

    asyncio.run(scenario())


def test_loads_note_every_request(server: RunningServer) -> None:
    async def scenario() -> None:
        answered = "dragoman_requests_total{route=/translate,status=200}"
        before = server.metrics().get(answered, 0)
        closed = await closed_loop(
            server.port, sentences(50), num_clients=3, is_over=for_seconds(0.5)
        )
        opened = await offered(server.port, sentences(50), rate=20, seconds=0.5)
        assert opened.statuses == {200: 10}
        assert set(closed.statuses) == {200}
        assert server.metrics()[answered] - before == closed.statuses[200] + 10
        assert closed.answered_per_second > 0

    asyncio.run(scenario())
