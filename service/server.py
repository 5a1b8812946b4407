"""Server process: one socket, one uvicorn worker, and the handling of signals.

Owns listening, announcing and leaving. On SIGTERM or SIGINT new work is refused with a 503,
accepted work is finished within the grace time, and the process leaves with 0; a second signal
does not wait. On SIGHUP keys and checkpoints are loaded anew. An engine that cannot start ends the
process with 1; so does, if the settings say so, one that is given up.
"""

import asyncio
import logging
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from model.errors import ConfigError, DragomanError
from service.access.key_store import KeyStore
from service.app import create_app
from service.engine.messages import Ready
from service.front import Front
from service.http.protocol import WireLimits, protocol_factory
from service.settings import Settings
from service.telemetry.metrics import Metrics
from service.telemetry.tracing import open_tracing

_LOGGER = logging.getLogger("dragoman")

# Answers are there when the sockets close; this bounds clients that do not read theirs.
_CLOSE_SECONDS = 5
_KEEP_ALIVE_SECONDS = 30
_SPARE_FILES = 100
"""What the process opens besides connections, with room."""


class _UvicornServer(uvicorn.Server):
    """Uvicorn without its signal handlers: it would close the sockets before the drain."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to `Server`."""
        yield


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
        metrics = Metrics(CollectorRegistry())
        spans = open_tracing(settings)
        self._front = Front(
            settings,
            metrics,
            on_ready=lambda ready: self._announce(self._address, ready),
            on_failed=self._leave,
            on_finished=None if spans is None else spans.segments_finished,
        )
        app = create_app(front=self._front, spans=spans)
        self._keys: KeyStore = app.state.keys
        max_connections = allow_connections(settings.max_connections)
        self._uvicorn = _UvicornServer(_uvicorn_config(app, settings, metrics, max_connections))
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
        await self._uvicorn.serve(sockets=[listener])

    def _leave(self, failure: DragomanError) -> None:
        self._failure = failure
        self._front.arrivals.end()
        self._uvicorn.should_exit = True

    def _on_signal(self) -> None:
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(), name="drain")
        elif not self._draining.done():
            self._front.hurry()
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
            await self._front.reload()
        except DragomanError as error:
            _LOGGER.warning("reload_refused", extra={"fields": {"reason": str(error)}})
        except Exception:
            _LOGGER.exception("reload_failed")

    async def _drain(self) -> None:
        """Finish what was accepted, then close; a second signal hurries either half."""
        _LOGGER.info("draining")
        is_drained = await self._front.drain()
        _LOGGER.info("drained", extra={"fields": {"is_complete": is_drained}})
        self._uvicorn.should_exit = True


def _uvicorn_config(
    app: FastAPI, settings: Settings, metrics: Metrics, max_connections: int
) -> uvicorn.Config:
    limits = WireLimits(
        max_header_bytes=settings.max_header_bytes,
        header_timeout_seconds=settings.header_timeout_seconds,
        max_connections=max_connections,
    )
    return uvicorn.Config(
        app,
        http=protocol_factory(limits, metrics.connection_refused),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_CLOSE_SECONDS,
    )


def allow_connections(num_connections: int) -> int:
    """Raise the process's limit on open files to what so many connections need, as far as it may.

    Returns:
        How many there may be. If all of them had files, there would be none for another engine.

    Raises:
        ConfigError: There may be none.
    """
    num_files = num_connections + _SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= num_files:
        return num_connections
    limit = num_files if hard == resource.RLIM_INFINITY else min(num_files, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    allowed = limit - _SPARE_FILES
    if allowed < 1:
        raise ConfigError(
            f"this process may open {limit} files (ulimit -Hn); it needs {_SPARE_FILES} and one for"
            " each connection"
        )
    if allowed < num_connections:
        fields = {"limit": limit, "needed": num_files, "max_connections": allowed}
        _LOGGER.warning("few_open_files", extra={"fields": fields})
    return allowed


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the address, IPv4 if the name has both.

    Raises:
        ConfigError: The name is unknown or the address is taken.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
        return socket.create_server(address, family=family)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot listen on {host} port {port}: {reason}") from error


def url_of(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
