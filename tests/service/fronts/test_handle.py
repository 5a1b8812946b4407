"""The owner's handle of a front that answers by a script, over a real socket."""

import asyncio
import socket
import time
from typing import cast

from service.fronts.child import FrontChild
from service.fronts.handle import FrontHandle
from service.fronts.leases import Common
from service.fronts.messages import (
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
