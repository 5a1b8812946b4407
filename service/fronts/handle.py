"""The owner's handle of one front process, from its start to its end.

Owns the front's heartbeats and figures, which deployment it serves, and how it was lost. Its
requests are `service.fronts.leases`; which deployments it is sent is `service.fronts.keeper`.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Literal, TypeVar

import msgspec

from service.engine.client.watchdog import WatchedTime
from service.fronts.child import FrontChild
from service.fronts.leases import Common, FrontLeases
from service.fronts.messages import (
    AskFigures,
    Deploy,
    Fault,
    Figures,
    FrontMessage,
    Place,
    Prepared,
    Serve,
    Serving,
)
from service.fronts.stream import PeerGoneError
from service.http.passing import Receiver
from service.models.checkpoints.discovery import TextCheckpoint
from service.models.deployments.deployment import Deployment
from service.telemetry.merging import Family

_LOGGER = logging.getLogger("dragoman.fronts")

T = TypeVar("T")

Loss = Literal["exit", "hang", "protocol"]
"""How a front was lost: its process ended, it was silent, or it sent an invalid message."""


class FrontHandle:
    """Handle of one front process, in the owner.

    Args:
        child: Its process.
        common: What fronts share.
        on_connection: Called with each connection that it passes on.
        clock: Seconds, monotonic.

    Attributes:
        figures: Its counts at the last heartbeat.
        is_serving: Whether it answers requests by itself, as it said last.
    """

    def __init__(
        self,
        child: FrontChild,
        common: Common,
        on_connection: Callable[[socket.socket, bytes], None],
        *,
        clock: Callable[[], float],
    ) -> None:
        self.figures: tuple[Family, ...] = ()
        self.is_serving = False
        self._child = child
        self._clock = clock
        self._leases = FrontLeases(common, self.send)
        self._numbers = count(1)
        self._prepared: dict[int, asyncio.Future[bool]] = {}
        self._served: dict[int, asyncio.Future[None]] = {}
        self._counted: dict[int, asyncio.Future[None]] = {}
        self._silent_seconds = 0.0
        self._has_replied = False
        self._closed = asyncio.Event()
        self._loss: Loss = "exit"
        loop = asyncio.get_running_loop()
        self._receiver = Receiver(child.passed, loop, on_connection)

    def __repr__(self) -> str:
        return f"<FrontHandle {self._child!r} {self._leases!r}>"

    def send(self, message: msgspec.Struct) -> None:
        """Send the front a message; never waits."""
        self._child.stream.send(message)

    async def run(
        self, *, start_seconds: float, hang_seconds: float, figures_seconds: float
    ) -> Loss:
        """Serve the front until its process has ended; how it ended.

        Args:
            start_seconds: Time until its first message, after which it is killed.
            hang_seconds: Silence after which it is killed, from then on; what was not watched,
                while this process was held up, is none.
            figures_seconds: Between two heartbeats, at most.
        """
        watching = asyncio.create_task(
            self._watch(start_seconds, hang_seconds, figures_seconds), name="front-watcher"
        )
        try:
            await self._listen()
        finally:
            watching.cancel()
            self._receiver.close()
            self._leases.close()
            self._closed.set()
            self.is_serving = False
            for prepared in self._prepared.values():
                prepared.cancel()
            for served in self._served.values():
                served.cancel()
            if self._loss != "exit":
                self._child.kill()
            await self._child.reap()
            fields = {"reason": self._loss, "exit_status": self._child.exit_status}
            _LOGGER.info("front_left", extra={"fields": fields})
        return self._loss

    async def wait_closed(self) -> None:
        """Return once the front has closed its end."""
        await self._closed.wait()

    async def deploy(self, number: int, deployment: Deployment) -> bool:
        """Have the front read a deployment's checkpoints; False if it cannot, or ends meanwhile.

        One that could not is asked again; else it is asked once.
        """
        answer = self._prepared.get(number)
        if self._closed.is_set():
            return False
        if answer is None or self.has_failed(number):
            answer = self._prepared[number] = asyncio.get_running_loop().create_future()
            self.send(_deploy_message(number, deployment))
        with suppress(asyncio.CancelledError):
            return await asyncio.shield(answer)
        if answer.cancelled():
            return False
        raise asyncio.CancelledError

    async def serve(self, number: int, kept: tuple[int, ...]) -> None:
        """Have it serve a deployment if it has read that one and serves what is kept, else none.

        May be called for one that it serves already, and twice at once.

        Args:
            number: Of the deployment.
            kept: As of `Serve`.
        """
        if self._closed.is_set():
            return
        answer = self._served.get(number)
        if answer is None:
            answer = self._served[number] = asyncio.get_running_loop().create_future()
        self.send(Serve(generation=number, kept=kept))
        await asyncio.wait([answer])

    def has_tried(self, number: int) -> bool:
        """Whether it has said that it can read what a deployment is of, or that it cannot."""
        answer = self._prepared.get(number)
        return answer is not None and answer.done()

    def has_failed(self, number: int) -> bool:
        """Whether it has said that it cannot, when it was asked last."""
        answer = self._prepared.get(number)
        if answer is None or not answer.done() or answer.cancelled():
            return False
        return not answer.result()

    async def ask_figures(self) -> None:
        """Request the front's figures, and wait for them."""
        number = next(self._numbers)
        answer = self._counted[number] = asyncio.get_running_loop().create_future()
        self.send(AskFigures(number=number))
        gone = asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait([answer, gone], return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            self._counted.pop(number, None)

    async def _listen(self) -> None:
        try:
            while True:
                messages = await self._child.stream.receive()
                self._silent_seconds = 0.0
                self._has_replied = True
                for message in messages:
                    self._take(message)
        except PeerGoneError:
            return
        except Exception:
            _LOGGER.exception("front_unreadable")
            self._loss = "protocol"

    async def _watch(self, start_seconds: float, hang_seconds: float, seconds: float) -> None:
        """Send the front periodic heartbeats; one that does not reply in time is killed."""
        seconds = min(seconds, hang_seconds / 8)
        time = WatchedTime(interval_seconds=seconds, now=self._clock())
        while True:
            self.send(AskFigures(number=next(self._numbers)))
            await asyncio.sleep(seconds)
            self._silent_seconds += time.since_last_look(now=self._clock())
            allowed = hang_seconds if self._has_replied else start_seconds
            if self._silent_seconds > allowed:
                self._loss = "hang"
                self._child.kill()
                return

    def _take(self, message: FrontMessage) -> None:
        match message:
            case Figures(number=number, families=families):
                self.figures = families
                _settle(self._counted.get(number), None)
            case Prepared(generation=number, is_read=is_read):
                _settle(self._prepared.get(number), is_read)
            case Serving(generation=number, is_serving=is_serving):
                self.is_serving = is_serving
                _settle(self._served.pop(number, None), None)
            case _:
                self._leases.handle(message)


def _settle(future: asyncio.Future[T] | None, value: T) -> None:
    if future is not None and not future.done():
        future.set_result(value)


def _deploy_message(number: int, deployment: Deployment) -> Deploy:
    return Deploy(
        generation=number,
        usable=tuple(map(_place, deployment.checkpoints)),
        unloaded=tuple(map(_place, deployment.unloaded)),
        faulty=tuple(
            Fault(directory=str(one.directory), reason=one.reason) for one in deployment.faulty
        ),
        left_out=tuple(deployment.left_out),
        ready=deployment.pool.ready,
        max_request_segments=deployment.pool.max_request_segments,
    )


def _place(checkpoint: TextCheckpoint) -> Place:
    return Place(directory=str(checkpoint.directory), fingerprint=checkpoint.fingerprint)
