"""Front process: answers requests for translation on a port that it shares.

Owns the process from its first message to its end: its server, which requests are its own, and
what the owner tells it. All other requests it passes on as they come: so there is one owner of
documents, glossaries, pages and metrics, which is a whole server and answers what a front cannot.
"""

import asyncio
import logging
import socket
from collections.abc import Coroutine, Sequence
from typing import Any

import uvicorn
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from service.access.keys import KeyRing
from service.app import Shared, create_app
from service.engine.errors import ProtocolError
from service.front import Front
from service.fronts.following import Following
from service.fronts.link import Link, RemoteCounts, RemoteGlossaries
from service.fronts.messages import (
    Answered,
    AskFigures,
    Begin,
    Deploy,
    Drain,
    Figures,
    Leave,
    OwnerMessage,
    Prepared,
    Refused,
    ReloadKeys,
    Replied,
    Serve,
    Serving,
    WrittenTo,
    owner_messages,
)
from service.fronts.settings_message import settings_of
from service.fronts.stream import PeerGoneError, Stream
from service.http.passing import Sender
from service.listening import QuietServer, uvicorn_config
from service.logs import configure_logging
from service.phase import Phase
from service.settings import Settings
from service.telemetry.metrics import Metrics
from service.telemetry.tracing import open_tracing

_LOGGER = logging.getLogger("dragoman.fronts")


class FrontServer:
    """One front: its server, and the conversation with the owner.

    Args:
        stream: To the owner.
        begin: Its first message.
        passing: Where connections are passed on.
        listener: Of the port.
    """

    def __init__(
        self,
        stream: Stream[OwnerMessage],
        begin: Begin,
        *,
        passing: socket.socket,
        listener: socket.socket,
    ) -> None:
        self._stream = stream
        self._listener = listener
        settings = settings_of(begin).model_copy(
            update={"documents": False, "watch": False}  # the owner does
        )
        self._link = Link(stream)
        self._sender = Sender(passing, asyncio.get_running_loop())
        self._metrics = Metrics(CollectorRegistry())
        self._tasks: set[asyncio.Task[None]] = set()
        app = self._app(settings, begin.keys)
        self._keys = app.state.keys
        self._own = {(method.encode(), path.encode()) for method, path in app.state.endpoints}
        config = uvicorn_config(
            app,
            settings,
            self._metrics.connection_refused,
            max_connections=begin.max_connections,
            pass_on=self,
        )
        self._uvicorn = QuietServer(config)
        connections = self._uvicorn.server_state.connections
        self._metrics.watch_tasks(lambda: len(asyncio.all_tasks()))
        self._metrics.watch_connections(lambda: len(connections), limit=begin.max_connections)

    def __repr__(self) -> str:
        return f"<FrontServer {self._following!r}>"

    def keeps(self, method: bytes, url: bytes) -> bool:
        """Whether a request is for a translation, and can be answered here."""
        is_ready = self._following.is_serving and self._front.phase is not Phase.BOOTING
        return is_ready and (method, url.partition(b"?")[0]) in self._own

    def take(self, connection: socket.socket, data: bytes) -> bool:
        """Pass a connection on to the owner; False where it has too many to take already."""
        return self._sender.send(connection, data)

    async def run(self, heard: Sequence[OwnerMessage] = ()) -> None:
        """Serve until the owner says that it is over, or is gone.

        Args:
            heard: What came together with the first message.
        """
        for message in heard:
            self._heard(message)
        listening = asyncio.create_task(self._listen(), name="owner-listener")
        try:
            await self._uvicorn.serve(sockets=[self._listener])
        finally:
            listening.cancel()
            await asyncio.wait([listening])
            self._sender.close()

    def _app(self, settings: Settings, keys: KeyRing | None) -> FastAPI:
        spans = open_tracing(settings)
        on_finished = None if spans is None else spans.segments_finished

        def follow(front: Front) -> Following:
            self._following = Following(front, self._link, on_finished=on_finished)
            return self._following

        self._front = Front(settings, self._metrics, follow=follow, claim=self._link.place)
        shared = Shared(
            limiter=self._link,
            counts=RemoteCounts(self._link.count),
            glossaries=RemoteGlossaries(self._link),
            close=_nothing,
        )
        return create_app(front=self._front, spans=spans, shared=shared, held_keys=keys)

    async def _listen(self) -> None:
        try:
            while True:
                for message in await self._stream.receive():
                    self._heard(message)
        except PeerGoneError:
            _LOGGER.error("owner_lost")  # noqa: TRY400  # nothing is wrong here
        except Exception:
            _LOGGER.exception("owner_unreadable")
        finally:
            self._link.lost()
            self._uvicorn.should_exit = True

    def _heard(self, message: OwnerMessage) -> None:
        match message:
            case Replied() | WrittenTo() | Answered() | Refused():
                self._link.handle(message)
            case AskFigures(number=number):
                self._stream.send(Figures(number=number, families=self._metrics.shared_families()))
            case Deploy():
                self._start(self._prepare(message))
            case Serve(generation=generation, kept=kept):
                self._following.serve(generation, kept)
                is_serving = self._following.is_serving
                self._stream.send(Serving(generation=generation, is_serving=is_serving))
            case ReloadKeys():
                self._start(self._reload_keys())
            case Drain():
                self._start(self._drain())
            case Leave(is_hurried=is_hurried):
                self._leave(is_hurried=is_hurried)
            case Begin():
                raise ValueError("a second beginning")

    def _leave(self, *, is_hurried: bool) -> None:
        self._uvicorn.should_exit = True
        if is_hurried:
            for connection in tuple(self._uvicorn.server_state.connections):
                connection.transport.abort()

    async def _prepare(self, told: Deploy) -> None:
        is_read = await self._following.prepare(told)
        self._stream.send(Prepared(generation=told.generation, is_read=is_read))

    async def _reload_keys(self) -> None:
        await asyncio.to_thread(self._keys.reload)

    async def _drain(self) -> None:
        await self._front.drain()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._logged(work), name="owner's order")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _logged(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:
            _LOGGER.exception("order_failed")


async def _nothing() -> None:
    """Return: the limiter's connections are the owner's."""


async def _serve(link: int, passing: int, listener: int) -> None:
    stream = await Stream.over(socket.socket(fileno=link), owner_messages())
    first, *rest = await stream.receive()
    if not isinstance(first, Begin):
        raise ProtocolError("the first message of the owner was no beginning")
    settings = settings_of(first)
    configure_logging(settings.log_level)
    channel = socket.socket(fileno=passing)
    channel.setblocking(False)
    server = FrontServer(stream, first, passing=channel, listener=socket.socket(fileno=listener))
    await server.run(rest)


def run(*, link: int, passing: int, listener: int) -> int:
    """Serve; the status to leave with.

    Args:
        link: Number of the socket to the owner.
        passing: Number of the socket for connections that are passed on.
        listener: Number of the socket of the port.
    """
    loop_factory = uvicorn.Config("service.app:create_app").get_loop_factory()
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(_serve(link, passing, listener))
    return 0
