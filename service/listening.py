"""Listening: the socket of the port, how many connections there may be, and how uvicorn serves.

Owns what every process that answers on the port does alike. Signals, and when a process leaves, are
`service.server` and `service.fronts.process`.
"""

import errno
import logging
import os
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from model.errors import ConfigError
from service.http.passing import PassOn
from service.http.protocol import BoundedProtocol, WireLimits, protocol_factory
from service.settings import Settings
from service.telemetry.metrics import Refusal

_LOGGER = logging.getLogger("dragoman")

# Answers are there when the sockets close; this bounds clients that do not read theirs.
CLOSE_SECONDS = 5
_SPARE_FILES = 100
"""What the process opens besides connections, with room."""


class QuietServer(uvicorn.Server):
    """Uvicorn without its signal handlers: it would close the sockets before the drain."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to whoever runs it."""
        yield


def uvicorn_config(
    app: ASGIApp,
    settings: Settings,
    on_refused: Callable[[Refusal], None],
    *,
    max_connections: int,
    pass_on: PassOn | None = None,
) -> uvicorn.Config:
    """How uvicorn serves an application.

    Args:
        app: What answers.
        settings: Of the server.
        on_refused: Told of every connection that ends without a request's answer.
        max_connections: Connections that this process may have.
        pass_on: Takes connections whose next request is another process's.
    """
    limits = WireLimits(
        max_header_bytes=settings.max_header_bytes,
        header_timeout_seconds=settings.header_timeout_seconds,
        max_connections=max_connections,
    )
    return uvicorn.Config(
        app,
        http=protocol_factory(limits, on_refused, pass_on),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=settings.idle_timeout_seconds,  # type: ignore[arg-type]  # any number
        timeout_graceful_shutdown=CLOSE_SECONDS,
    )


def protocol_of(server: uvicorn.Server) -> BoundedProtocol:
    """A new protocol of a running server, for a connection that it has not accepted itself."""
    make = cast("type[Any]", server.config.http_protocol_class)
    made = make(server.config, server.server_state, server.lifespan.state)
    assert isinstance(made, BoundedProtocol)
    return made


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
    except (socket.gaierror, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot listen on {host} port {port}: {reason}") from error
    except OSError as error:  # what it says itself repeats the address
        reason = os.strerror(error.errno) if error.errno else error
        is_taken = error.errno == errno.EADDRINUSE
        hint = "; DRAGOMAN_PORT or --port names another (0: a free one)" if is_taken else ""
        raise ConfigError(f"cannot listen on {host} port {port}: {reason}{hint}") from error


def url_of(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
