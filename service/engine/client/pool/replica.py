"""Replica: one place of a pool, with the engine that is there and its supervisor.

Owns its first start, which may be tried again, and what is told of it. Later starts are
`service.engine.client.supervisor`'s, what it gets to do `service.engine.client.pool.choice`'s.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from service.engine.client.client import EngineClient, LossReason
from service.engine.client.pool.choice import Load
from service.engine.client.supervisor import RestartBudget, Supervisor
from service.engine.errors import EngineStartError
from service.engine.messages import EngineCounters

_LOGGER = logging.getLogger(__name__)

_ABSENT = Load(is_ready=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """Rules by which the engines of a pool are kept running.

    Attributes:
        make_budget: Makes a replica's budget of restarts.
        on_lost: Called once for every engine that is lost.
        on_outdated: Called when an engine does not find the checkpoints that the first one had;
            whether something else has taken the place of the pool.
        clock: Seconds, monotonic.
    """

    make_budget: Callable[[], RestartBudget]
    on_lost: Callable[[LossReason], None]
    clock: Callable[[], float]
    on_outdated: Callable[[], Awaitable[bool]] | None = None


class Replica:
    """Place of a pool: one engine, and after it the next ones.

    Args:
        place: Which of the pool's it is.
        start_engine: Starts an engine there.
        keeping: How it is kept running.
        on_given_up: Called when no other engine will be started here.
    """

    def __init__(
        self,
        place: int,
        *,
        start_engine: Callable[[], Awaitable[EngineClient]],
        keeping: Keeping,
        on_given_up: Callable[[], None],
    ) -> None:
        self.place = place
        self._start_engine = start_engine
        self._keeping = keeping
        self._on_given_up = on_given_up
        self._budget = keeping.make_budget()
        self._supervisor: Supervisor | None = None
        self._has_failed = False

    def __repr__(self) -> str:
        return f"<Replica {self.place} {self._supervisor or 'without an engine'}>"

    @property
    def supervisor(self) -> Supervisor:
        """Of its engine, which was started."""
        assert self._supervisor is not None
        return self._supervisor

    @property
    def engine(self) -> EngineClient | None:
        """The engine that accepts segments now; None where none does."""
        if self._supervisor is None or not self._supervisor.engine.is_ready:
            return None
        return self._supervisor.engine

    @property
    def is_ready(self) -> bool:
        """Whether segments are accepted."""
        return self.engine is not None

    @property
    def is_given_up(self) -> bool:
        """Whether no engine is there, and none will be started."""
        return self._has_failed or (self._supervisor is not None and self._supervisor.is_exhausted)

    @property
    def process_id(self) -> int | None:
        """Its process; None while there is none."""
        return None if self._supervisor is None else self._supervisor.process_id

    @property
    def start_seconds(self) -> float | None:
        """Time its latest engine took until it was warm; None before the first."""
        return None if self._supervisor is None else self._supervisor.start_seconds

    @property
    def num_threads(self) -> int | None:
        """Processor threads of its latest engine; None before the first."""
        return None if self._supervisor is None else self._supervisor.ready.num_threads

    @property
    def num_pending(self) -> int:
        """Segments that it has and has not answered."""
        return 0 if self._supervisor is None else self._supervisor.num_pending

    @property
    def num_row_steps(self) -> int:
        """The work of these."""
        return 0 if self._supervisor is None else self._supervisor.engine.num_row_steps

    @property
    def counters(self) -> EngineCounters:
        """The totals of all its engines so far, and the gauges of the one that is there."""
        return EngineCounters() if self._supervisor is None else self._supervisor.counters

    def load(self, *, silent_seconds: float) -> Load:
        """What it has to do.

        Args:
            silent_seconds: Time without a word after which something may be wrong with it.
        """
        engine = self.engine
        if engine is None:
            return _ABSENT
        return Load(
            num_rows=engine.num_rows,
            num_row_steps=engine.num_row_steps,
            is_silent=engine.silent_seconds > silent_seconds,
        )

    async def start(self) -> None:
        """Start its first engine.

        Raises:
            EngineStartError: It did not become ready.
        """
        self._supervisor = await Supervisor.start(
            self._start_engine,
            budget=self._budget,
            on_lost=self._keeping.on_lost,
            clock=self._keeping.clock,
            on_given_up=self._on_given_up,
            on_outdated=self._keeping.on_outdated,
        )

    async def start_patiently(self) -> None:
        """Start its first engine, as often as its budget allows."""
        num_failed = 0
        while True:
            try:
                await self.start()
            except EngineStartError as error:
                fields = {"replica": self.place, "reason": str(error)}
                _LOGGER.error("replica_start_failed", extra={"fields": fields})  # noqa: TRY400  # it is foreseen
                outdated = self._keeping.on_outdated
                if error.at_fault and outdated is not None and await outdated():
                    return
                num_failed += 1
                delay = self._budget.next_delay(now=self._keeping.clock())
                if delay is None or num_failed >= self._budget.max_failed_starts:
                    break
                await asyncio.sleep(delay)
            else:
                return
        self._has_failed = True
        self._on_given_up()

    def retire(self) -> None:
        """Finish what is pending, and start no other engine when this one is lost."""
        if self._supervisor is not None:
            self._supervisor.retire()

    async def close(self) -> None:
        """End the engine; pending segments fail."""
        if self._supervisor is not None:
            await self._supervisor.close()
