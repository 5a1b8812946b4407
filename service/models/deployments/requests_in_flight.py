"""Requests for translation that are in work: how many there may be, and the translators they hold.

Owns the room that requests share, the waits for checkpoints that are loaded on demand, and that a
deployment stays while a request uses it. Whether any request is accepted now is
`service.front`'s; segments have limits of their own in `service.engine.client`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from types import TracebackType

from service.engine.client.room import Room
from service.errors import RequestError, overloaded, unavailable
from service.models.deployments.deploying import Deploying
from service.models.deployments.deployment import Deployment, InFlight
from service.models.deployments.holding import Held
from service.models.routes.routing import Route
from service.models.translating.several_routes import checkpoints_of, translator_of
from service.models.translating.two_hops import Translator
from service.priority import Priority
from service.settings import Settings
from service.timeouts import expire

Claim = Callable[[Mapping[str, Deployment], Priority], AbstractAsyncContextManager[None]]
"""A place among the requests of several processes, kept until it is left: by the deployments of a
request's checkpoints, and its class."""


class RequestsInFlight:
    """The requests of one process that are in work.

    Args:
        rollout: The deployments that translate.
        settings: Of the server.
        check_ready: Raises a RequestError, a 503, where no request is accepted now.
        claim: Where other processes have requests too, what counts all of them; what is counted
            here is then a part of it.
    """

    def __init__(
        self,
        rollout: Deploying,
        settings: Settings,
        *,
        check_ready: Callable[[], None],
        claim: Claim | None = None,
    ) -> None:
        self._rollout = rollout
        self._check_ready = check_ready
        self._claim = claim
        self._load_seconds = settings.load_seconds
        self._loads: set[asyncio.Timeout] = set()  # waits for what is being loaded
        self._in_flight = InFlight()
        self._room = Room(settings.max_requests, reserved_share=settings.reserved_share)

    def __repr__(self) -> str:
        return f"<RequestsInFlight {self.num}>"

    @property
    def num(self) -> int:
        """How many there are."""
        return self._in_flight.num

    async def wait_idle(self) -> None:
        """Return once there is none."""
        await self._in_flight.wait_idle()

    def abandon_loads(self) -> None:
        """End all waits for checkpoints that are being loaded."""
        for wait in self._loads:
            expire(wait)

    def check_room(self, priority: Priority | None = None, checkpoints: Sequence[str] = ()) -> None:
        """Return if there is room for one more translation request.

        The handlers ask this first of all: a refusal must not wait for the text thread, which
        has most to do just then.

        Args:
            priority: Its class, once it is known: a class that has filled its part is refused,
                and the other is not.
            checkpoints: Those that its routes go through, once they are known: likewise.

        Raises:
            RequestError: A 503 when none is accepted, a 429 when too many are in flight.
            QueueFullError: Too many segments wait already.
        """
        self._check_ready()
        self._rollout.routes.check_open(priority, checkpoints)
        excess = self._room.excess(1, priority, owner=self._owner(checkpoints))
        if excess is None:
            return
        num = excess.value - 1
        of = {"class": f"{priority} ", "owner": "such ", "whole": ""}[excess.of]
        raise overloaded(
            f"Slowdown: {num} {of}requests are in work; the limit is {excess.limit}",
            value=num,
            limit=excess.limit,
            seconds=1.0,
        )

    def _owner(self, checkpoints: Sequence[str]) -> str | None:
        """Whose a request is, where checkpoints share the room: the first one's."""
        return checkpoints[0] if checkpoints and len(self._rollout.routes.table.names) > 1 else None

    @contextmanager
    def translator(
        self, route: Route | Sequence[Route], priority: Priority, held: Held | None = None
    ) -> Iterator[Translator]:
        """The translator of a request that is in flight until the block is left.

        It stays as it is, whatever is loaded meanwhile.

        Args:
            route: Of all texts, or one of each.
            priority: The class of the request.
            held: What it has got from a load, which is left after the block.

        Raises:
            RequestError: A 503 when there is none, a 429 when too many requests are in flight.
            QueueFullError: Too many segments wait already.
        """
        translator, place = self._accept(route, priority, held)
        with place:
            yield translator

    def accepted(
        self, route: Route | Sequence[Route], priority: Priority, held: Held | None = None
    ) -> AbstractAsyncContextManager[Translator]:
        """The same, once whoever counts the requests of all processes has a place for it too.

        Raises:
            RequestError: As of `translator`.
            QueueFullError: Likewise.
        """
        if self._claim is None:
            return _Accepted(*self._accept(route, priority, held))
        return self._claimed(self._claim, route, priority)  # nothing is loaded on demand there

    @asynccontextmanager
    async def _claimed(
        self, claim: Claim, route: Route | Sequence[Route], priority: Priority
    ) -> AsyncIterator[Translator]:
        with self.translator(route, priority) as translator:
            names = checkpoints_of([route] if isinstance(route, Route) else route)
            deployments = {name: self._deployment(name, None) for name in names}
            async with claim(deployments, priority):
                yield translator

    def _accept(
        self, route: Route | Sequence[Route], priority: Priority, held: Held | None
    ) -> "tuple[Translator, _Place]":
        """The translator of a request, and its place, which is not taken yet."""
        routes = [route] if isinstance(route, Route) else route
        names = checkpoints_of(routes)
        self.check_room(priority, names)
        deployments = {name: self._deployment(name, held) for name in names}
        translator = translator_of(routes, lambda name: deployments[name].translator(name))
        return translator, self.holding(deployments, priority)

    def holding(self, deployments: Mapping[str, Deployment], priority: Priority) -> "_Place":
        """A place for a request until it is left; whether there is room was asked before.

        Args:
            deployments: Of the checkpoints that it goes through, which stay until then.
            priority: Its class.
        """
        counts = [self._in_flight, *[one.in_flight for one in deployments.values()]]
        return _Place(self._room, counts, priority, self._owner(list(deployments)))

    def _deployment(self, name: str, held: Held | None) -> Deployment:
        """What a request goes through: the deployment that it holds, or the one that serves."""
        deployment = None if held is None else held.find(name)
        if deployment is None:
            deployment = self._rollout.routes.find(name)
        if deployment is None:
            raise replaced()
        self._rollout.on_demand.note_use(name)
        return deployment

    def needs_loading(self, *routes: Route) -> bool:
        """Whether a checkpoint of some routes has to be loaded first."""
        return any(
            self._rollout.routes.loadable(name) is not None for name in checkpoints_of(routes)
        )

    async def load(self, held: Held, *routes: Route) -> None:
        """Load the checkpoints of some routes that are not in memory.

        Args:
            held: What gets them: others may be loaded in their place before the request resumes.
            routes: Of the request.

        Raises:
            RequestError: A 503: it takes too long, there is no memory for them, they cannot be
                loaded, or the server leaves.
        """
        seconds = self._load_seconds
        wait = asyncio.timeout(seconds)
        try:
            async with wait:
                self._loads.add(wait)
                await self._rollout.on_demand.load_all(checkpoints_of(routes), held)
        except TimeoutError:
            self._check_ready()
            raise unavailable(
                f"the model is still being loaded after {seconds:g} seconds", code="loading"
            ) from None
        finally:
            self._loads.discard(wait)


class _Place:
    """Place of a request, taken while it is entered.

    Every request has one, so it is no generator's context manager.
    """

    __slots__ = ("_counts", "_owner", "_priority", "_room")

    def __init__(
        self, room: Room, counts: Sequence[InFlight], priority: Priority, owner: str | None
    ) -> None:
        self._room = room
        self._counts = counts
        self._priority = priority
        self._owner = owner

    def __enter__(self) -> None:
        self._room.take(1, self._priority, owner=self._owner)
        for count in self._counts:
            count.enter()

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for count in self._counts:
            count.leave()
        self._room.leave(1, self._priority, owner=self._owner)


class _Accepted(AbstractAsyncContextManager[Translator]):
    """A translator and the place of its request, where nobody else has to be asked."""

    def __init__(self, translator: Translator, place: _Place) -> None:
        self._translator = translator
        self._place = place

    async def __aenter__(self) -> Translator:
        self._place.__enter__()
        return self._translator

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._place.__exit__(error_type, error, traceback)


def replaced() -> RequestError:
    """A 503: what the request was read for is served no more."""
    return unavailable("the checkpoints were just replaced", code="reloaded")
