"""Deployments of a front: what the owner has opened, read here a second time for its text.

Owns which of them this process serves. A deployment is prepared when the owner says what it is
of, and served when the owner says so. One whose files are not what the owner has read is not
served, nor one beside which the owner keeps an earlier one that is not served here: then this
process has nothing to translate with, and passes every connection on until the next one, or until
the owner has it read this one again and it can. Engines are the owner's; so is everything that
changes deployments.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from model.errors import DragomanError
from service.errors import conflict
from service.fronts.link import Link, RemoteEngines, engines_of
from service.fronts.messages import Deploy, Place
from service.models.checkpoints.discovery import (
    Checkpoints,
    FaultyCheckpoint,
    TextCheckpoint,
    read_again,
)
from service.models.deployments.deployment import Deployment
from service.models.deployments.holding import Held
from service.models.deployments.registry import Routes
from service.models.deployments.reports import report_pairs
from service.models.deployments.rollout import segment_cache
from service.models.translating.segment_search import SegmentsFinished

if TYPE_CHECKING:
    from service.front import Front

_LOGGER = logging.getLogger("dragoman.fronts")


class NothingOnDemand:
    """Loads on demand, of which there are none: there is one front where there are any."""

    def note_use(self, name: str) -> None:
        """Return: nothing is unloaded for being used least."""

    async def load_all(self, names: Sequence[str], held: Held) -> None:
        """Return: what is served is in memory."""


class Following:
    """Deployments of the owner, as a front serves them.

    Args:
        front: Whose they are.
        link: To the owner.
        on_finished: Called with the segments of every request that were translated.

    Attributes:
        routes: Which deployment has which checkpoint.
        on_demand: Nothing.
    """

    def __init__(
        self, front: "Front", link: Link, *, on_finished: SegmentsFinished | None = None
    ) -> None:
        settings = front.settings
        self.routes = Routes(preferred=settings.preferred, pivot=settings.pivot_language)
        self.on_demand = NothingOnDemand()
        self._metrics = front.metrics
        self._text_thread = front.text_thread
        self._read_statistics = front.detection.read_statistics
        self._link = link
        self._on_finished = on_finished
        self._cache = cache = segment_cache(settings)
        self._metrics.watch_cache(lambda: 0 if cache is None else cache.num_bytes)
        self._prepared: dict[int, Deployment] = {}
        self._generation = 0  # that was told to be served last
        self._first: asyncio.Future[Deployment] = asyncio.get_running_loop().create_future()
        self.is_serving = False

    def __repr__(self) -> str:
        return f"<Following {self.routes!r} is_serving={self.is_serving}>"

    async def prepare(self, message: Deploy) -> bool:
        """Read what the next deployment is of; whether it is what the owner has read."""
        try:
            found = await asyncio.to_thread(self._read, message)
        except DragomanError as error:
            _LOGGER.error("front_cannot_follow", extra={"fields": {"reason": str(error)}})  # noqa: TRY400  # it is foreseen
            return False
        except Exception:
            _LOGGER.exception("front_cannot_follow")
            return False
        engines = RemoteEngines(
            self._link,
            message.generation,
            message.ready,
            max_request_segments=message.max_request_segments,
        )
        deployment = Deployment(
            found,
            engines,
            text_thread=self._text_thread,
            on_finished=self._on_finished,
            left_out=frozenset(message.left_out),
            cache=self._cache,
            on_looked_up=self._metrics.segments.looked_up,
        )
        if message.generation >= self._generation:  # another one may be served since
            self._prepared[message.generation] = deployment
        return True

    def serve(self, generation: int, kept: Collection[int] = ()) -> None:
        """Serve what was prepared under this number, or nothing.

        The owner may tell the same number again: it does not know yet that it is served.

        Args:
            generation: The number.
            kept: Of earlier deployments that the owner still serves for what this one could not
                load. Where one of them is not served here, as this process began later or could
                not read it, nothing is; no other one is kept, as its engines are lost.
        """
        if self.is_serving and generation == self._generation:
            return
        self._generation = generation
        deployment = self._prepared.pop(generation, None)
        self._prepared = {n: later for n, later in self._prepared.items() if n > generation}
        engines = [engines_of(one) for one in self.routes.deployments]
        if deployment is None or not {one.generation for one in engines}.issuperset(kept):
            self.is_serving = False
            return
        for one in engines:
            one.is_ready = one.generation in kept
        self.routes.take(deployment)
        if self._cache is not None:
            self._cache.clear()
        report_pairs(self._metrics, [one.manifest for one in self.routes.checkpoints])
        self.is_serving = True
        if not self._first.done():
            self._first.set_result(deployment)

    async def open(self) -> Deployment:
        """The first deployment, once the owner has one."""
        return await asyncio.shield(self._first)

    async def begin(self, deployment: Deployment) -> None:
        """Return: `serve` has begun."""

    async def reload(self, before: Callable[[], Awaitable[object]] | None = None) -> None:  # noqa: ARG002
        """Refuse: deployments are the owner's.

        Raises:
            RequestError: Always.
        """
        raise conflict("another process reloads", code="reload_running")

    async def wait_turn(self) -> bool:
        """Return: it is never this process's."""
        return True

    async def set_loaded(self, name: str, *, is_loaded: bool) -> None:  # noqa: ARG002
        """Refuse likewise.

        Raises:
            RequestError: Always.
        """
        await self.reload()

    def abandon(self) -> None:
        """Return: there is nothing to abandon."""

    async def close(self) -> None:
        """Return: the engines are the owner's."""

    async def stop_retiring(self) -> None:
        """Return: so are those that are left."""

    def _read(self, message: Deploy) -> Checkpoints:
        found = Checkpoints(
            usable=_read_all(message.usable),
            unloaded=_read_all(message.unloaded),
            faulty=tuple(
                FaultyCheckpoint(directory=Path(one.directory), reason=one.reason)
                for one in message.faulty
            ),
        )
        languages: Collection[str] = found.languages
        self._read_statistics(languages)
        return found


def _read_all(places: Sequence[Place]) -> tuple[TextCheckpoint, ...]:
    return tuple(read_again(Path(one.directory), one.fingerprint) for one in places)
