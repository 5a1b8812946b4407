"""The owner's handle of a front that answers by a script, over a real socket."""

import asyncio
import socket
import time
from typing import cast

import pytest

from service.fronts.child import FrontChild
from service.fronts.handle import FrontHandle
from service.fronts.leases import Common
from service.fronts.messages import (
    AskFigures,
    Figures,
    FrontMessage,
    OwnerMessage,
    Serve,
    Serving,
    front_messages,
    owner_messages,
)
from service.fronts.stream import PeerGoneError, Stream
from service.http import passing


class _Child:
    """A front without a process."""

    exit_status = 0

    def __init__(self, stream: Stream[FrontMessage], passed: socket.socket) -> None:
        self.stream = stream
        self.passed = passed
        self.is_killed = False

    def kill(self) -> None:
        self.is_killed = True
        self.stream.abort()

    async def reap(self) -> None:
        self.stream.abort()


async def _serve_all(front: Stream[OwnerMessage]) -> None:
    """Reply to every order to serve, until the owner has gone."""
    try:
        while True:
            for message in await front.receive():
                if isinstance(message, Serve):
                    front.send(Serving(generation=message.generation, is_serving=True))
    except PeerGoneError:
        return


def test_whoever_waits_for_a_deployment_is_told_however_often_it_is_ordered() -> None:
    async def scenario() -> None:
        own, other = socket.socketpair()
        sending, receiving = passing.channel()
        front = await Stream.over(other, owner_messages())
        child = _Child(await Stream.over(own, front_messages()), receiving)
        handle = FrontHandle(
            cast("FrontChild", child),
            cast("Common", None),  # nothing is asked for
            lambda _connection, _data: None,
            clock=time.monotonic,
        )
        seconds = 60.0
        running = asyncio.create_task(
            handle.run(start_seconds=seconds, hang_seconds=seconds, figures_seconds=seconds)
        )
        replying = asyncio.create_task(_serve_all(front))
        async with asyncio.timeout(10):
            await asyncio.gather(handle.serve(1, ()), handle.serve(1, ()))
            await handle.serve(1, ())
        front.abort()
        assert await running == "exit"
        await replying
        sending.close()

    asyncio.run(scenario())


class _Watched:
    """A front that replies to heartbeats, or not; each of them takes one interval of its clock."""

    def __init__(self, *, interval_seconds: float) -> None:
        self.now = 1000.0
        self.num_heartbeats = 0
        self.is_silent = self.is_left = False
        self._interval_seconds = interval_seconds

    async def run(self, front: Stream[OwnerMessage]) -> None:
        try:
            while True:
                for message in await front.receive():
                    if isinstance(message, AskFigures):
                        self.num_heartbeats += 1
                        self.now += self._interval_seconds
                        if not self.is_silent:
                            front.send(Figures(number=message.number, families=()))
        except PeerGoneError:
            self.is_left = True

    async def beats(self, number: int) -> None:
        """Return after some further heartbeats, or when it is left."""
        until = self.num_heartbeats + number
        while self.num_heartbeats < until and not self.is_left:  # noqa: ASYNC110  # nothing tells
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("figures_seconds", [0.01, 60.0])
def test_a_front_is_killed_for_its_own_silence_alone(figures_seconds: float) -> None:
    async def scenario() -> None:
        hang_seconds = 0.08  # heartbeats are a hundredth of a second apart, however often figures
        watched = _Watched(interval_seconds=0.01)
        own, other = socket.socketpair()
        sending, receiving = passing.channel()
        front = await Stream.over(other, owner_messages())
        child = _Child(await Stream.over(own, front_messages()), receiving)
        handle = FrontHandle(
            cast("FrontChild", child),
            cast("Common", None),  # nothing is asked for
            lambda _connection, _data: None,
            clock=lambda: watched.now,
        )
        running = asyncio.create_task(
            handle.run(
                start_seconds=60.0, hang_seconds=hang_seconds, figures_seconds=figures_seconds
            )
        )
        replying = asyncio.create_task(watched.run(front))
        async with asyncio.timeout(30):
            await watched.beats(20)
            await handle.ask_figures()  # it has replied to the latest heartbeat
            watched.now += 3600.0  # the machine was suspended: nobody was heard
            await watched.beats(20)
            assert not running.done()
            watched.is_silent = True
            before = watched.num_heartbeats
            assert await running == "hang"
        assert child.is_killed
        assert 7 <= watched.num_heartbeats - before <= 10
        front.abort()
        await replying
        sending.close()

    asyncio.run(scenario())
