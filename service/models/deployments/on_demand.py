"""Loading of checkpoints on demand: by their first request, each in an engine of its own.

Owns one load at a time, the waiting for it, and that others are evicted so that it fits: an engine
that is retired finishes what began on it, and its memory goes back with its process. Loads are in
the order in which they were asked for. A load is of all checkpoints of a request, and who waits has
them before the next one evicts any: two that do not fit together are each used once, in turn, and
nobody holds one of them while he waits for another. Which are
loaded on demand is said by the latest deployment (`service.models.deployments.registry`); which are
evicted is `service.models.checkpoints.residency`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence

from model.errors import DragomanError
from service.errors import RequestError, unavailable
from service.models.checkpoints.discovery import Checkpoints, NoneUsableError, TextCheckpoint
from service.models.checkpoints.residency import counted_bytes, leaving, left_for_others
from service.models.deployments.deployment import Deployment
from service.models.deployments.holding import Held
from service.models.deployments.registry import Routes
from service.telemetry.residency_metrics import ResidencyMetrics

_LOGGER = logging.getLogger("dragoman")


class _Load:
    """Checkpoints that are to be in memory at one time, and who waits for that.

    Attributes:
        names: Of the checkpoints.
        waiting: What the deployments are given to.
        done: Has a result once they were given, or the exception of the load.
    """

    __slots__ = ("done", "names", "waiting")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.waiting: set[Held] = set()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class OnDemandLoader:
    """Loader of the checkpoints that are loaded by their first request.

    Args:
        routes: Which are in memory, and which are not.
        budget: Bytes that all weights and engines may take; None where all are always loaded.
        num_replicas: Engines of the checkpoints that are always loaded.
        open_one: A deployment of one checkpoint.
        retire: Ends a deployment after its last request.
        metrics: Where loads and evictions are counted.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        routes: Routes,
        *,
        budget: int | None,
        num_replicas: int = 1,
        open_one: Callable[[TextCheckpoint], Awaitable[Deployment]],
        retire: Callable[[Deployment], asyncio.Task[None]],
        metrics: ResidencyMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._routes = routes
        self._budget = budget
        self._num_replicas = num_replicas
        self._open_one = open_one
        self._retire = retire
        self._metrics = metrics
        self._clock = clock
        self._used: dict[str, float] = {}
        self._queue: dict[tuple[str, ...], _Load] = {}  # the first one is being loaded
        self._runner: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<OnDemandLoader loading={list(self._queue)}>"

    def note_use(self, name: str) -> None:
        """A request uses a checkpoint now."""
        if self._budget is not None:
            self._used[name] = self._clock()

    async def load_all(self, names: Sequence[str], held: Held) -> None:
        """Load those of some checkpoints that are not in memory; none is evicted for another.

        The load goes on without waiters.

        Args:
            names: Of the checkpoints.
            held: What gets the deployments of all of them, before any can be evicted.

        Raises:
            RequestError: A 503: there is no memory for them, or one cannot be loaded.
        """
        if not self._missing(names):
            held.give(self._found(names))
            return
        load = self._queued(tuple(names))
        load.waiting.add(held)
        try:
            await asyncio.shield(load.done)
        finally:
            load.waiting.discard(held)

    def budget_beside(self, found: Checkpoints, left_out: Collection[str]) -> int | None:
        """Bytes for a next deployment beside what stays of those on demand; None without a budget.

        Args:
            found: What the next one is of.
            left_out: Names of checkpoints that it leaves out.
        """
        if self._budget is None:
            return None
        kept = self._routes.kept(
            found.faulty, {*left_out, *(one.manifest.name for one in found.usable)}
        )
        sizes = [
            [one.entry.num_weight_bytes for one in kept[name].checkpoints]
            for name in self._routes.loaded_on_demand
            if name in kept
        ]
        return max(0, self._budget - counted_bytes(sizes))

    async def close(self) -> None:
        """End the load that is running, and the waits for all."""
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)
        for load in self._queue.values():
            load.done.cancel()
        self._queue.clear()

    def _missing(self, names: Sequence[str]) -> list[str]:
        """Those of some checkpoints that have to be loaded."""
        return [name for name in names if self._routes.loadable(name) is not None]

    def _found(self, names: Sequence[str]) -> dict[str, Deployment]:
        """The deployments of some checkpoints; a reload may have taken one away."""
        found = {name: self._routes.find(name) for name in names}
        return {name: one for name, one in found.items() if one is not None}

    def _queued(self, names: tuple[str, ...]) -> _Load:
        """The load of some checkpoints, behind those that were asked for before."""
        load = self._queue.get(names)
        if load is None:
            load = self._queue[names] = _Load(names)
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run(), name="load")
        return load

    async def _run(self) -> None:
        """Load what is asked for until nothing is."""
        while self._queue:
            load = next(iter(self._queue.values()))
            try:
                while missing := self._missing(load.names):
                    await self._load(missing[0], kept=load.names)
            except Exception as error:
                del self._queue[load.names]
                load.done.set_exception(error)
                load.done.exception()  # those that wait have it; that none does is no fault
            self._hand_over()

    def _hand_over(self) -> None:
        """Give what is in memory to all who wait for nothing else."""
        for load in list(self._queue.values()):
            if self._missing(load.names):
                continue
            del self._queue[load.names]
            for held in load.waiting:
                held.give(self._found(load.names))
            load.done.set_result(None)

    async def _load(self, name: str, kept: Sequence[str]) -> None:
        checkpoint = self._routes.loadable(name)
        if checkpoint is None:
            return
        await self._make_room(checkpoint, kept)
        started = self._clock()
        try:
            deployment = await self._open_one(checkpoint)
        except DragomanError as error:
            raise self._refusal(name, error) from error
        if self._routes.loadable(name) is not checkpoint:  # replaced meanwhile
            self._retire(deployment)
            return
        self._routes.add(name, deployment)
        self.note_use(name)
        seconds = self._clock() - started
        self._metrics.loaded(name, seconds=seconds)
        fields = {"checkpoint": name, "seconds": round(seconds, 3)}
        _LOGGER.info("checkpoint_loaded", extra={"fields": fields})

    def _refusal(self, name: str, error: DragomanError) -> RequestError:
        """How a load that failed is answered: without paths, which are in the log."""
        fields = {"checkpoint": name, "reason": str(error)}
        _LOGGER.error("checkpoint_load_failed", extra={"fields": fields})
        faulty = error.faulty if isinstance(error, NoneUsableError) else ()
        shortage = next((fault.shortage for fault in faulty if fault.shortage is not None), None)
        if shortage is None:
            self._metrics.not_loaded(name, "failure")
            return unavailable(f"model {name} cannot be loaded now", code="load_failed")
        self._metrics.not_loaded(name, "no_memory")
        free = "not so many" if shortage.free_bytes is None else shortage.free_bytes
        return unavailable(
            f"there is no memory for model {name}: it needs at least {shortage.needed_bytes} bytes,"
            f" and {free} are free",
            code="no_memory",
        )

    async def _make_room(self, checkpoint: TextCheckpoint, kept: Sequence[str]) -> None:
        """Evict the least recently used until it fits, and wait until their memory is free."""
        latest = self._routes.latest
        if self._budget is None or latest is None:
            return
        size = checkpoint.entry.num_weight_bytes
        resident = [one.entry.num_weight_bytes for one in latest.checkpoints]
        left = left_for_others(resident, budget=self._budget, num_engines=self._num_replicas)
        sizes = {entry.name: entry.num_weight_bytes for entry in self._routes.entries}
        others = {name: sizes[name] for name in self._routes.loaded_on_demand}
        evicted = leaving(size, others, used=self._used, kept=kept, budget=left)
        if evicted is None:
            name = checkpoint.entry.name
            reason = (
                f"there is no memory for model {name}: its weights have {size} bytes,"
                f" and {left} are left for them and an engine"
            )
            self._metrics.not_loaded(name, "no_memory")
            fields = {"checkpoint": name, "reason": reason}
            _LOGGER.error("checkpoint_load_failed", extra={"fields": fields})
            raise unavailable(reason, code="no_memory")
        on_demand = self._routes.loaded_on_demand
        retiring = []
        for name in evicted:
            self._routes.remove(on_demand[name])
            retiring.append(self._retire(on_demand[name]))
            self._metrics.unloaded(name, "evicted")
            _LOGGER.info("checkpoint_evicted", extra={"fields": {"checkpoint": name}})
        if retiring:
            await asyncio.wait(retiring)
