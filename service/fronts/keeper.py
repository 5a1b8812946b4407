"""Supervisor of the front processes: starts them, sends them deployments, replaces lost ones.

Owns which fronts there are, the numbers of deployments, and when a front follows one. A front
that is lost loses its connections and nothing else: what it held is given back, what it had
counted stays, and another one is started. What a front asks for is `service.fronts.leases`.
"""

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from weakref import WeakValueDictionary

from model.errors import DragomanError
from service.engine.client.supervisor import RestartBudget
from service.engine.errors import EngineUnavailableError
from service.fronts.child import FrontChild
from service.fronts.handle import FrontHandle
from service.fronts.leases import Common
from service.fronts.messages import Drain, Leave, ReloadKeys
from service.fronts.settings_message import begin_with
from service.models.deployments.deployment import Deployment
from service.settings import Settings
from service.telemetry.front_metrics import FrontMetrics
from service.telemetry.merging import Family, added, only_totals
from service.telemetry.metrics import Metrics

_LOGGER = logging.getLogger("dragoman.fronts")

_FOLLOW_SECONDS = 30.0
"""Time for fronts to read a deployment; whoever is slower follows when it has."""
_AGAIN_SECONDS = 60.0
"""Time until a front that could not read a deployment is asked to do so again."""
_SWITCH_SECONDS = 5.0
_FIGURES_SECONDS = 1.0
_LEAVE_SECONDS = 10.0


class Fronts:
    """Front processes of one server.

    Args:
        settings: Of the server.
        metrics: Of the owner, which tells theirs too.
        clock: Seconds, monotonic.

    Attributes:
        generations: Deployments by the numbers that fronts know them by.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._numbers = count(1)
        self.generations: WeakValueDictionary[int, Deployment] = WeakValueDictionary()
        self._latest: tuple[int, Deployment] | None = None
        self._next: tuple[int, Deployment] | None = None
        self._kept: tuple[int, ...] = ()  # beside the latest
        self._max_connections = 1
        self._listener: socket.socket | None = None
        self._handles: dict[int, FrontHandle] = {}
        self._past: tuple[Family, ...] = ()
        self._is_leaving = self._has_ended = False
        self._num_given_up = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._metrics = FrontMetrics(metrics, num_fronts=settings.fronts)
        self._metrics.watch(lambda: sum(handle.is_serving for handle in self._handles.values()))
        metrics.watch_fronts(self._families, self._ask_figures)

    def __repr__(self) -> str:
        return f"<Fronts {len(self._handles)} of {self._settings.fronts}>"

    def divide(self, max_connections: int) -> int:
        """Divide connections evenly; the part of each front, and of the owner."""
        self._max_connections = max(1, max_connections // (self._settings.fronts + 1))
        return self._max_connections

    @asynccontextmanager
    async def running(
        self,
        common: Common,
        listener: socket.socket,
        *,
        on_connection: Callable[[socket.socket, bytes], None],
        on_given_up: Callable[[DragomanError], None],
    ) -> AsyncIterator[None]:
        """Keep fronts running until the block is left.

        Args:
            common: What they share.
            listener: The socket of the port; closed when the fronts leave, so that the last of
                them to close its own ends it: what nobody would accept is refused.
            on_connection: Called with each connection that one passes on, and what it read.
            on_given_up: Called when all are lost too often.
        """

        async def keep(place: int) -> None:
            if not await self._keep(place, common, listener, on_connection):
                self._num_given_up += 1
                if self._num_given_up == self._settings.fronts:
                    on_given_up(EngineUnavailableError("the front processes were lost too often"))

        keeping = [
            asyncio.create_task(keep(place), name="front-keeper")
            for place in range(self._settings.fronts)
        ]
        keeping.append(asyncio.create_task(self._ask_again(), name="front-asker"))
        self._listener = listener
        try:
            yield
        finally:
            self._is_leaving = True
            for task in (*keeping, *self._tasks):
                task.cancel()
            await asyncio.gather(*keeping, *self._tasks, return_exceptions=True)

    async def began(self, deployment: Deployment) -> None:
        """Have all fronts serve the first deployment, as soon as each has read what it is of.

        Returns when they do, or after a while: one that reads accepts connections and answers none.
        """
        number = self._number(deployment)
        self._latest = number, deployment
        following = [self._start_bringing_up(handle) for handle in self._handles.values()]
        if following:
            await asyncio.wait(following, timeout=_FOLLOW_SECONDS)

    async def prepare(self, deployment: Deployment) -> None:
        """Have the fronts that serve read what the next deployment is of."""
        number = self._number(deployment)
        self._next = number, deployment
        replies = [handle.deploy(number, deployment) for handle in self._handles.values()]
        if replies:
            await asyncio.wait(list(map(asyncio.ensure_future, replies)), timeout=_FOLLOW_SECONDS)

    async def switch(self, deployment: Deployment, kept: Collection[Deployment]) -> None:
        """Have the fronts serve it; one that has not read it serves nothing until it has.

        Args:
            deployment: As it was prepared.
            kept: Earlier ones that still serve what it could not load. A front that does not serve
                each of them serves nothing, as it cannot read any more what they have.
        """
        assert self._next is not None
        assert self._next[1] is deployment
        self._latest, self._next = self._next, None
        self._kept = tuple(number for number, one in self.generations.items() if one in kept)
        number, handles = self._latest[0], list(self._handles.values())
        late = [handle for handle in handles if not handle.has_tried(number)]
        replies = [asyncio.ensure_future(handle.serve(number, self._kept)) for handle in handles]
        if replies:
            await asyncio.wait(replies, timeout=_SWITCH_SECONDS)
        for handle in late:
            self._start_bringing_up(handle)

    def reload_keys(self) -> None:
        """Have all read their keys again."""
        for handle in self._handles.values():
            handle.send(ReloadKeys())

    def drain(self) -> None:
        """Have all accept nothing more."""
        self._is_leaving = True
        for handle in self._handles.values():
            handle.send(Drain())

    def hurry(self) -> None:
        """Have all that are leaving wait for no client that does not read its answer."""
        if self._has_ended:
            for handle in self._handles.values():
                handle.send(Leave(is_hurried=True))

    async def leave(self) -> None:
        """Have all fronts write their answers and end; returns when they have, or after a while."""
        self._is_leaving = self._has_ended = True
        if self._listener is not None:
            self._listener.close()
        handles = list(self._handles.values())
        for handle in handles:
            handle.send(Leave())
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await asyncio.gather(*(handle.wait_closed() for handle in handles))

    async def _keep(
        self,
        place: int,
        common: Common,
        listener: socket.socket,
        on_connection: Callable[[socket.socket, bytes], None],
    ) -> bool:
        """Keep one front running; False when it is given up."""
        budget = RestartBudget(
            max_restarts=self._settings.max_restarts,
            window_seconds=self._settings.restart_window_seconds,
        )
        while True:
            reason = await self._run_one(place, common, listener, on_connection)
            if self._is_leaving:
                return True
            self._metrics.lost(reason)
            delay = budget.next_delay(now=self._clock())
            _LOGGER.error("front_lost", extra={"fields": {"front": place, "reason": reason}})
            if delay is None:
                _LOGGER.error("front_given_up", extra={"fields": {"front": place}})
                return False
            await asyncio.sleep(delay)

    async def _run_one(
        self,
        place: int,
        common: Common,
        listener: socket.socket,
        on_connection: Callable[[socket.socket, bytes], None],
    ) -> str:
        """One front from its start to its end; how it was lost."""
        if self._is_leaving:
            return "exit"
        try:
            child = await FrontChild.spawn(listener)
        except OSError:
            _LOGGER.exception("front_not_started")
            return "exit"
        handle = FrontHandle(child, common, on_connection, clock=self._clock)
        handle.send(
            begin_with(self._settings, max_connections=self._max_connections, keys=common.keys.held)
        )
        self._handles[place] = handle
        self._start_bringing_up(handle)
        try:
            return await handle.run(
                start_seconds=self._settings.start_timeout_seconds,
                hang_seconds=self._settings.hang_seconds,
                figures_seconds=_FIGURES_SECONDS,
            )
        finally:
            del self._handles[place]
            self._past = added([self._past, only_totals(handle.figures)])

    def _number(self, deployment: Deployment) -> int:
        number = next(self._numbers)
        self.generations[number] = deployment
        return number

    def _start_bringing_up(self, handle: FrontHandle) -> asyncio.Task[None]:
        task = asyncio.create_task(self._bring_up(handle), name="front-follower")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _bring_up(self, handle: FrontHandle) -> None:
        """Have a front serve the latest deployment, once it has read that."""
        while self._latest is not None:
            number, deployment = self._latest
            if not await handle.deploy(number, deployment):
                return
            if self._latest[0] == number:
                await handle.serve(number, self._kept)
                return

    async def _ask_again(self) -> None:
        """Bring up fronts that could not read the latest deployment: what was wrong may be over."""
        while True:
            await asyncio.sleep(_AGAIN_SECONDS)
            for handle in self._handles.values():
                if self._latest is not None and handle.has_failed(self._latest[0]):
                    self._start_bringing_up(handle)

    def _families(self) -> Sequence[Family]:
        return added([self._past, *(handle.figures for handle in self._handles.values())])

    async def _ask_figures(self) -> None:
        replies = [asyncio.ensure_future(handle.ask_figures()) for handle in self._handles.values()]
        if replies:
            await asyncio.wait(replies, timeout=_FIGURES_SECONDS)
