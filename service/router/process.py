"""Process of the router: its parts put together, its socket, and signals.

Owns listening, announcing and leaving. On SIGTERM or SIGINT it refuses what comes, as a server
does, and leaves when what it has passed on is answered, or after the grace time; a second signal
does not wait.
"""

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from secrets import token_hex

from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.deepl.languages import LanguageLists
from service.api.deepl.reply import error_reply_at, is_of_deepl
from service.errors import draining
from service.http.arrivals import Arrivals
from service.http.body import BodyReader
from service.http.cors import Cors
from service.http.middleware import Edge
from service.http.uploads import MAX_FRAME_BYTES
from service.listening import QuietServer, allow_connections, listen, url_of, uvicorn_config
from service.models.requests.detection import LanguageDetection
from service.router.app import build_app, build_routes
from service.router.asking import Asking
from service.router.dispatch import Dispatcher
from service.router.groups import Group
from service.router.members import Members, Resolve, resolve
from service.router.metrics import RouterMetrics
from service.router.room import UploadRoom
from service.router.watch import Watch
from service.settings import Settings
from service.telemetry.request_context import PROBES

_LOGGER = logging.getLogger("dragoman.router")

_SPARE_SECONDS = 15.0
"""What a group may take beyond the longest deadline of a request."""
_CONNECTIONS_PER_CLIENT = 2
"""Files that a client's connection takes: its own, and one to a group."""


class Router:
    """Router that runs once, until a signal.

    Args:
        settings: Address, limits of bodies and connections, detection, pivot, trusted proxies,
            origins of pages.
        groups: Whom it asks.
        announce: Called with the address when it is listened on.
        resolve: Looks up the names of groups.

    Raises:
        ConfigError: So few files may be open that there is none for a connection.
    """

    def __init__(
        self,
        settings: Settings,
        groups: Sequence[Group],
        *,
        announce: Callable[[str], None],
        resolve: Resolve = resolve,
    ) -> None:
        self._resolve = resolve
        self._settings = settings
        self._announce = announce
        self._arrivals = Arrivals()
        self._num_in_work = 0
        self._is_hurried = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._leaving: asyncio.Task[None] | None = None
        metrics = RouterMetrics(CollectorRegistry(), [group.name for group in groups])
        self._room = UploadRoom(
            max_bytes=max(
                settings.documents_total_bytes, settings.documents_max_bytes + MAX_FRAME_BYTES
            ),
            max_per_address=settings.documents_per_caller,
        )
        dispatcher = self._new_dispatcher(groups, metrics)
        self._watch = dispatcher.asking.watch
        routes = build_routes(dispatcher, metrics.render)
        app = self._counted(build_app(routes))
        if settings.cors_origins:
            app = Cors(app, reply_at=error_reply_at, origins=settings.cors_origins)
        edge = Edge(
            app,
            metrics=metrics,
            routes=[route.path for route in routes],
            clock=time.monotonic,
            new_request_id=partial(token_hex, 16),
            is_leaving=lambda: self._arrivals.is_over,
            reply_at=error_reply_at,
            is_traced=is_of_deepl,
        )
        allowed = allow_connections(_CONNECTIONS_PER_CLIENT * settings.max_connections)
        max_connections = max(1, allowed // _CONNECTIONS_PER_CLIENT)
        config = uvicorn_config(
            edge, settings, metrics.connection_refused, max_connections=max_connections
        )
        config.lifespan = "off"
        self._uvicorn = QuietServer(config)
        connections = self._uvicorn.server_state.connections
        metrics.watch_connections(lambda: len(connections), limit=max_connections)

    def __repr__(self) -> str:
        return f"<Router {self._watch!r}>"

    def run(self) -> None:
        """Listen, pass on, leave.

        Raises:
            ConfigError: The address cannot be listened on.
        """
        with listen(self._settings.host, self._settings.port) as listener:
            loop_factory = self._uvicorn.config.get_loop_factory()
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                runner.run(self._serve(listener))

    def _new_dispatcher(self, groups: Sequence[Group], metrics: RouterMetrics) -> Dispatcher:
        settings = self._settings
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="text")
        detection = LanguageDetection(settings.detection, thread=thread)
        seconds = settings.max_timeout_seconds + _SPARE_SECONDS
        watch = Watch(
            {
                group.name: Members(
                    group,
                    seconds=seconds,
                    keep_seconds=settings.documents_keep_seconds,
                    resolve=self._resolve,
                )
                for group in groups
            },
            pivot=settings.pivot_language,
            detection=detection,
            metrics=metrics,
        )
        reader = BodyReader(
            max_bytes=settings.max_body_bytes,
            timeout_seconds=settings.body_timeout_seconds,
            executor=thread,
            arrivals=self._arrivals,
        )
        return Dispatcher(
            asking=Asking(watch=watch, metrics=metrics),
            settings=settings,
            reader=reader,
            arrivals=self._arrivals,
            detection=detection,
            lists=LanguageLists(),
            room=self._room,
        )

    async def _serve(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        watching = asyncio.create_task(self._watch.run(), name="watch")
        self._announce(url_of(listener))
        try:
            await self._uvicorn.serve(sockets=[listener])
        finally:
            watching.cancel()
            await asyncio.wait([watching])
            for members in self._watch.members.values():
                members.close()

    def _counted(self, app: ASGIApp) -> ASGIApp:
        """An application whose requests are known to be in work, and refused when it leaves."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if self._arrivals.is_over and scope["path"] not in PROBES:
                refusal = error_reply_at(scope["path"], draining().problem)
                await refusal(scope, receive, send)
                return
            self._num_in_work += 1
            try:
                await app(scope, receive, send)
            finally:
                self._num_in_work -= 1
                if not self._num_in_work:
                    self._is_idle.set()

        return answer

    def _on_signal(self) -> None:
        if self._leaving is None:
            self._leaving = asyncio.create_task(self._leave(), name="leave")
        else:
            self._is_hurried.set()

    def _on_hangup(self) -> None:
        self._watch.poll_now()

    async def _leave(self) -> None:
        """Refuse what comes, wait for what is passed on, close."""
        _LOGGER.info("draining")
        self._arrivals.end()
        self._is_idle.clear()
        if self._num_in_work:
            ends = [asyncio.create_task(one.wait()) for one in (self._is_idle, self._is_hurried)]
            await asyncio.wait(
                ends,
                timeout=self._settings.grace_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for end in ends:
                end.cancel()
        _LOGGER.info("drained", extra={"fields": {"is_complete": not self._num_in_work}})
        self._uvicorn.should_exit = True
