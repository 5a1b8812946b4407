"""The server: one socket, one uvicorn worker, and what signals mean.

Owns listening, announcing and leaving. On SIGTERM or SIGINT new work is refused with a 503,
accepted work is finished within the grace time, and the process leaves with 0; a second signal
does not wait. An engine that cannot start ends the process with 1.
"""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from model.errors import ConfigError, DragomanError
from service.app import create_app
from service.engine.messages import Ready
from service.front import Front
from service.metrics import Metrics
from service.settings import Settings

_LOGGER = logging.getLogger("dragoman")

# Answers are there when the sockets close; this bounds clients that do not read theirs.
_CLOSE_SECONDS = 5
_KEEP_ALIVE_SECONDS = 30


class _UvicornServer(uvicorn.Server):
    """Uvicorn without its signal handlers: it would close the sockets before the drain."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Server:
    """Serves until a signal or a failed start.

    Args:
        settings: Of the server.
        announce: Called once with the address when the engine is warm.
    """

    def __init__(self, settings: Settings, *, announce: Callable[[str, Ready], None]) -> None:
        self._settings = settings
        self._announce = announce
        self._failure: DragomanError | None = None
        self._draining: asyncio.Task[None] | None = None

    def run(self) -> None:
        """Listen, serve, drain.

        Raises:
            ConfigError: The address cannot be listened on.
            DragomanError: The engine did not start.
        """
        with bind(self._settings.host, self._settings.port) as listener:
            address = url_of(listener)
            config, front = self._configure(address)
            loop_factory = config.get_loop_factory()
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                runner.run(self._serve(config, front, listener))
        if self._failure is not None:
            raise self._failure

    def _configure(self, address: str) -> tuple[uvicorn.Config, Front]:
        front = Front(
            self._settings,
            Metrics(CollectorRegistry()),
            on_ready=lambda ready: self._announce(address, ready),
            on_failed=self._fail,
        )
        config = uvicorn.Config(
            create_app(front=front),
            loop="auto",
            http="httptools",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_CLOSE_SECONDS,
        )
        return config, front
