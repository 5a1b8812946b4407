"""Server process: its socket, its front or fronts, and the handling of signals.

Owns listening, announcing and leaving. With several fronts (`service.fronts`) they accept the
connections, and this process owns what they share and answers what they pass on. On SIGTERM or
SIGINT new work is refused with a 503, accepted work is finished within the grace time, and the
process leaves with 0; a second signal does not wait. On SIGHUP keys and checkpoints are loaded
anew. An engine that cannot start ends the process with 1; so does, if the settings say so, one that
is given up.
"""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from model.errors import DragomanError
from service.access.key_store import KeyStore
from service.app import create_app
from service.engine.messages import Ready
from service.front import Front
from service.fronts.keeper import Fronts
from service.fronts.leases import Common
from service.listening import (
    QuietServer,
    allow_connections,
    listen,
    protocol_of,
    url_of,
    uvicorn_config,
)
from service.settings import Settings
from service.telemetry.metrics import Metrics
from service.telemetry.tracing import open_tracing

_LOGGER = logging.getLogger("dragoman")


class Server:
    """Server that runs once, until a signal or a failed start.

    Args:
        settings: Of the server.
        announce: Called once with the address when the engine is warm.

    Raises:
        ConfigError: Traces are asked for and cannot be made; or so few files may be open that
            there is none for a connection.
    """

    def __init__(self, settings: Settings, *, announce: Callable[[str, Ready], None]) -> None:
        self._settings = settings
        self._announce = announce
        self._address = ""
        self._failure: DragomanError | None = None
        self._draining: asyncio.Task[None] | None = None
        self._reloading: set[asyncio.Task[None]] = set()
        self._taking: set[asyncio.Task[object]] = set()
        metrics = Metrics(CollectorRegistry())
        spans = open_tracing(settings)
        self._fronts = Fronts(settings, metrics) if settings.fronts > 1 else None
        self._front = Front(
            settings,
            metrics,
            followers=self._fronts,
            on_ready=lambda ready: self._announce(self._address, ready),
            on_failed=self._leave,
            on_finished=None if spans is None else spans.segments_finished,
        )
        self._app: FastAPI = create_app(
            front=self._front, spans=spans, has_fronts=self._fronts is not None
        )
        self._keys: KeyStore = self._app.state.keys
        max_connections = allow_connections(settings.max_connections)
        if self._fronts is not None:
            max_connections = self._fronts.divide(max_connections)
        config = uvicorn_config(
            self._app, settings, metrics.connection_refused, max_connections=max_connections
        )
        self._uvicorn = QuietServer(config)
        metrics.watch_tasks(lambda: len(asyncio.all_tasks()))
        metrics.watch_connections(
            lambda: len(self._uvicorn.server_state.connections), limit=max_connections
        )

    def run(self) -> None:
        """Listen, serve, drain.

        Raises:
            ConfigError: The address cannot be listened on.
            DragomanError: The engine did not start, or was given up.
        """
        _LOGGER.info("settings", extra={"fields": self._settings.effective()})
        with listen(self._settings.host, self._settings.port) as listener:
            self._address = url_of(listener)
            loop_factory = self._uvicorn.config.get_loop_factory()
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                runner.run(self._serve(listener))
        if self._failure is not None:
            raise self._failure

    async def _serve(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        if self._fronts is None:
            await self._uvicorn.serve(sockets=[listener])
            return
        common = Common(
            front=self._front,
            shared=self._app.state.shared,
            keys=self._keys,
            generations=self._fronts.generations,
        )
        async with self._fronts.running(
            common, listener, on_connection=self._take, on_given_up=self._leave
        ):
            await self._uvicorn.serve(sockets=[])

    def _take(self, connection: socket.socket, data: bytes) -> None:
        """Take a connection that a front has passed on."""
        made = protocol_of(self._uvicorn).received_before(data)
        taking = asyncio.get_running_loop().connect_accepted_socket(lambda: made, connection)
        task = asyncio.create_task(taking)
        self._taking.add(task)
        task.add_done_callback(self._taking.discard)

    def _leave(self, failure: DragomanError) -> None:
        self._failure = failure
        self._front.arrivals.end()
        self._uvicorn.should_exit = True

    def _on_signal(self) -> None:
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(), name="drain")
        elif not self._draining.done():
            self._front.hurry()
            if self._fronts is not None:
                self._fronts.hurry()
        else:  # only clients that do not read their answers are left
            for connection in tuple(self._uvicorn.server_state.connections):
                connection.transport.abort()

    def _on_hangup(self) -> None:
        task = asyncio.create_task(self._reload(), name="reload")
        self._reloading.add(task)
        task.add_done_callback(self._reloading.discard)

    async def _reload(self) -> None:
        """Take keys and checkpoints as they are now; what keeps the old ones is logged."""
        try:
            await asyncio.to_thread(self._keys.reload)
            if self._fronts is not None:
                self._fronts.reload_keys()
            await self._front.reload(is_patient=True)
        except DragomanError as error:
            _LOGGER.warning("reload_refused", extra={"fields": {"reason": str(error)}})
        except Exception:
            _LOGGER.exception("reload_failed")

    async def _drain(self) -> None:
        """Finish what was accepted, then close; a second signal hurries either half."""
        _LOGGER.info("draining")
        if self._fronts is not None:
            self._fronts.drain()
        is_drained = await self._front.drain()
        _LOGGER.info("drained", extra={"fields": {"is_complete": is_drained}})
        if self._fronts is not None:
            await self._fronts.leave()
            await asyncio.gather(*self._taking, return_exceptions=True)
        self._uvicorn.should_exit = True
