"""What two fronts hold of one owner, over real sockets, with a real engine."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from model.config import SearchConfig
from model.errors import InputError
from model.request import DecodeRequest
from service.engine.client.submission import OnWritten, SegmentJob
from service.engine.errors import EngineUnavailableError, QueueFullError
from service.errors import RequestError
from service.fronts.leases import Common, FrontLeases
from service.fronts.link import Link, RemoteEngines
from service.fronts.messages import front_messages, owner_messages
from service.fronts.stream import PeerGoneError, Stream
from service.models.deployments.deployment import Deployment
from support.served_front import Served
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

MAX_REQUESTS = 3
JOB = SegmentJob(
    request=DecodeRequest(
        source_ids=(5, 6, 1), prefix_ids=(2,), search=SearchConfig(beam_size=2, max_length=8)
    )
)


@dataclass
class _Front:
    """A front's end, and the owner's of the same conversation."""

    link: Link
    stream: Stream
    leases: FrontLeases
    engines: RemoteEngines
    deployments: dict[str, Deployment]

    def leave(self) -> None:
        self.stream.abort()


@asynccontextmanager
async def _front(common: Common) -> AsyncIterator[_Front]:
    one, other = socket.socketpair()
    owner = await Stream.over(one, front_messages())
    front = await Stream.over(other, owner_messages())
    leases = FrontLeases(common, owner.send)
    link = Link(front)

    async def serve() -> None:
        try:
            while True:
                for message in await owner.receive():
                    leases.handle(message)  # type: ignore[arg-type]  # fronts ask nothing else here
        except PeerGoneError:
            leases.close()

    async def listen() -> None:
        try:
            while True:
                for message in await front.receive():
                    link.handle(message)  # type: ignore[arg-type]  # likewise
        except PeerGoneError:
            link.lost()

    tasks = [asyncio.create_task(serve()), asyncio.create_task(listen())]
    served = common.front.deployments[0]
    engines = RemoteEngines(
        link, 1, served.pool.ready, max_request_segments=served.pool.max_request_segments
    )
    ours = Deployment.__new__(Deployment)  # of which a place needs the engines alone
    ours.pool = engines
    try:
        yield _Front(link, front, leases, engines, {"tiny": ours})
    finally:
        front.abort()
        owner.abort()
        await asyncio.gather(*tasks, return_exceptions=True)


def _run(
    folder: Path, scenario: Callable[[Served, _Front, _Front], Awaitable[None]], **settings: int
) -> None:
    checkpoint = write_tiny_checkpoint(folder / "tiny", pairs=(EN_ZH,))

    async def run() -> None:
        served = Served(checkpoint, **settings)
        async with served.client(), AsyncExitStack() as stack:
            common = Common(
                front=served.front,
                shared=served.app.state.shared,
                keys=served.app.state.keys,
                generations={1: served.front.deployments[0]},
            )
            fronts = [await stack.enter_async_context(_front(common)) for _ in range(2)]
            await scenario(served, *fronts)

    asyncio.run(run())


def test_places_are_counted_over_fronts_and_come_back_when_one_is_lost(tmp_path: Path) -> None:
    async def scenario(served: Served, one: _Front, other: _Front) -> None:
        in_flight = served.front.in_flight
        async with AsyncExitStack() as stack:
            for front in (one, other, one):
                place = front.link.place(front.deployments, "interactive")
                await stack.enter_async_context(place)
            assert in_flight.num == MAX_REQUESTS
            for front in (one, other):
                with pytest.raises(RequestError, match="3 requests are in work") as caught:
                    await front.link.place(front.deployments, "interactive").__aenter__()
                assert caught.value.problem.status == 429
            one.leave()
            await _until(lambda: in_flight.num == 1)
            async with other.link.place(other.deployments, "interactive"):
                assert in_flight.num == 2
        await _until(lambda: in_flight.num == 0)

    _run(tmp_path, scenario, max_requests=MAX_REQUESTS)


def test_segments_of_fronts_share_the_queue_and_a_lost_fronts_are_dropped(tmp_path: Path) -> None:
    async def scenario(served: Served, one: _Front, other: _Front) -> None:
        [found] = await one.engines.submit([JOB]).results()
        [same] = await other.engines.submit([JOB]).results()
        assert found.hypotheses == same.hypotheses
        pool = served.front.deployments[0].pool
        process = pool.replicas[0].process_id
        assert process is not None
        os.kill(process, signal.SIGSTOP)
        kept = other.engines.submit([JOB])
        with one.engines.submit([JOB, JOB]) as batch:
            await _until(lambda: pool.num_pending == 3)
            with pytest.raises(QueueFullError) as caught:
                await other.engines.submit([JOB, JOB]).results()
            assert caught.value.limit == 3, "a class leaves a quarter to the other"
            one.leave()
            with pytest.raises(EngineUnavailableError):
                await batch.results()
        os.kill(process, signal.SIGCONT)
        assert (await kept.results())[0].hypotheses == found.hypotheses
        await _until(lambda: pool.num_pending == 0)
        assert served.sample("cancelled_segments_total", pair="none") == 2

    _run(tmp_path, scenario, max_pending_segments=4)


def test_what_nobody_waits_for_any_more_is_cancelled(tmp_path: Path) -> None:
    async def scenario(served: Served, one: _Front, _: _Front) -> None:
        pool = served.front.deployments[0].pool
        process = pool.replicas[0].process_id
        assert process is not None
        os.kill(process, signal.SIGSTOP)
        with one.engines.submit([JOB]) as batch:
            await _until(lambda: pool.num_pending == 1)
        assert batch.num_pending == 0
        os.kill(process, signal.SIGCONT)
        await _until(lambda: pool.num_pending == 0)
        assert repr(one.link) == "<Link questions=0 submissions=0>"
        assert repr(one.leases) == "<FrontLeases places=0 submissions=0>"

    _run(tmp_path, scenario)


def test_a_job_that_could_never_run_is_refused_as_the_engine_refuses_it(tmp_path: Path) -> None:
    async def scenario(served: Served, one: _Front, _: _Front) -> None:
        with pytest.raises(InputError, match="segments; the limit is"):
            one.engines.submit([JOB] * 2000)
        one.engines.generation = 7
        with pytest.raises(RequestError, match="were just replaced"):
            await one.engines.submit([JOB]).results()
        assert len(one.engines.submit([])) == 0
        assert served.front.deployments[0].pool.num_pending == 0

    _run(tmp_path, scenario)


def test_a_minute_and_what_was_translated_are_counted_once_for_all(tmp_path: Path) -> None:
    async def scenario(served: Served, one: _Front, other: _Front) -> None:
        asked = [front.link.spend("requests", "key:a", limit=5) for front in (one, other) * 4]
        waits = await asyncio.gather(*asked)
        assert waits.count(None) == 5
        assert all(wait is None or wait > 0 for wait in waits)
        one.link.count("key:a", 10)
        other.link.count("key:a", 32)
        await _until(lambda: served.app.state.shared.counts.of("key:a") == 42)
        with pytest.raises(RequestError) as caught:
            await one.link.terms("key:a", ["missing"], ("en", "zh"))
        assert caught.value.problem.status == 404

    _run(tmp_path, scenario)


async def _until(is_so: Callable[[], bool]) -> None:
    """Wait for what is told to nobody; pytest's timeout is the bound."""
    while not is_so():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def test_tokens_are_told_to_the_front_that_watches_before_their_answer(tmp_path: Path) -> None:
    search = SearchConfig(beam_size=1, max_length=30)
    jobs = [
        SegmentJob(
            request=DecodeRequest(source_ids=(*first, 1), prefix_ids=(0,), search=search),
        )
        for first in ((5, 6), (7, 8, 9))
    ]

    async def scenario(_served: Served, one: _Front, other: _Front) -> None:
        told: dict[str, dict[int, list[int]]] = {"one": {}, "other": {}}

        def watcher(name: str) -> OnWritten:
            def note(place: int, start: int, token_ids: tuple[int, ...]) -> None:
                told[name].setdefault(place, [])[start:] = token_ids

            return note

        batches = [
            one.engines.submit(jobs, on_written=watcher("one")),
            other.engines.submit(jobs[1:], on_written=watcher("other")),
            other.engines.submit(jobs),
        ]
        answers = [await batch.results() for batch in batches]
        written = [list(answer.hypotheses[0].token_ids) for answer in answers[0]]
        assert all(written)
        assert told["one"] == dict(enumerate(written))
        assert told["other"] == {0: written[1]}
        with one.engines.submit(jobs, on_written=watcher("one")):
            pass
        await _until(lambda: repr(one.leases) == "<FrontLeases places=0 submissions=0>")
        await _until(lambda: not one.link._watched)
        assert repr(one.link) == "<Link questions=0 submissions=0>"

    _run(tmp_path, scenario)
