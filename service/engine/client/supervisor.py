"""Supervisor of the engine process: restarts it, and gives up after too many restarts in a window.

Owns when another engine is started and when that is no use any more. What a lost engine is, and
what becomes of its segments, is `service.engine.client.client`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Self

from service.engine.client.client import EngineClient, LossReason
from service.engine.client.interface import Engine
from service.engine.client.submission import OnWritten, SegmentBatch, SegmentJob
from service.engine.counters import only_totals, summed
from service.engine.errors import EngineStartError
from service.engine.messages import EngineCounters, Ready

_LOGGER = logging.getLogger(__name__)

_LEAVE_SECONDS = 5.0
_FIRST_DELAY_SECONDS = 0.5
_MAX_DELAY_SECONDS = 10.0

_Outcome = Literal["restarted", "replaced", "failed"]
"""There is another engine; something else has taken this supervisor's place; neither."""


class RestartBudget:
    """Budget of restarts within a window, with growing delays.

    The first restart of a window does not wait; every further one waits twice as long as the one
    before. Reads no clock.

    Args:
        max_restarts: Restarts within a window, at most; and starts in a row that may fail, however
            long each takes.
        window_seconds: How long a restart counts.
    """

    def __init__(self, *, max_restarts: int, window_seconds: float) -> None:
        self._max_restarts = max_restarts
        self._window_seconds = window_seconds
        self._restarts: deque[float] = deque()

    @property
    def max_failed_starts(self) -> int:
        """Starts in a row that may fail."""
        return self._max_restarts

    def next_delay(self, *, now: float) -> float | None:
        """Take one restart: the seconds to wait before it; None when there is none left."""
        while self._restarts and now - self._restarts[0] >= self._window_seconds:
            self._restarts.popleft()
        num_before = len(self._restarts)
        if num_before >= self._max_restarts:
            return None
        self._restarts.append(now)
        if num_before == 0:
            return 0.0
        return min(_FIRST_DELAY_SECONDS * 2.0 ** (num_before - 1), _MAX_DELAY_SECONDS)


class Supervisor(Engine):
    """Supervisor of one engine at a time.

    Made by `start`. Work is accepted while an engine is warm and refused at once between two of
    them.

    Args:
        engine: The first engine.
        start_engine: Makes the next ones.
        budget: How often.
        on_lost: Called once for every engine that is lost, before another one is started.
        clock: Seconds, monotonic.
        on_given_up: Called when one is lost and no other one will be started.
        on_outdated: Called when the next one does not find the checkpoints that the lost one had;
            whether something else has taken the place of this supervisor.
    """

    def __init__(
        self,
        engine: EngineClient,
        *,
        start_engine: Callable[[], Awaitable[EngineClient]],
        budget: RestartBudget,
        on_lost: Callable[[LossReason], None],
        clock: Callable[[], float],
        on_given_up: Callable[[], None] = lambda: None,
        on_outdated: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self._engine = engine
        self._start_engine = start_engine
        self._budget = budget
        self._on_lost = on_lost
        self._clock = clock
        self._on_given_up = on_given_up
        self._on_outdated = on_outdated
        self._past = EngineCounters()  # totals of the engines before this one
        self._is_exhausted = False
        self._is_retired = False
        self._keeper = asyncio.create_task(self._keep(), name="engine-keeper")

    @classmethod
    async def start(
        cls,
        start_engine: Callable[[], Awaitable[EngineClient]],
        *,
        budget: RestartBudget,
        on_lost: Callable[[LossReason], None],
        clock: Callable[[], float],
        on_given_up: Callable[[], None] = lambda: None,
        on_outdated: Callable[[], Awaitable[bool]] | None = None,
    ) -> Self:
        """Start the first engine.

        Raises:
            EngineStartError: It did not become ready; the first one is not tried twice.
        """
        engine = await start_engine()
        return cls(
            engine,
            start_engine=start_engine,
            budget=budget,
            on_lost=on_lost,
            clock=clock,
            on_given_up=on_given_up,
            on_outdated=on_outdated,
        )

    def __repr__(self) -> str:
        state = "exhausted" if self._is_exhausted else "retired" if self._is_retired else "keeping"
        return f"<Supervisor {state} {self._engine!r}>"

    @property
    def engine(self) -> EngineClient:
        """The latest engine, which may be lost."""
        return self._engine

    @property
    def is_ready(self) -> bool:
        """As of `Engine`."""
        return self._engine.is_ready

    @property
    def is_exhausted(self) -> bool:
        """Whether the engine is lost and no other one will be started."""
        return self._is_exhausted

    @property
    def ready(self) -> Ready:
        """The latest engine's Ready message."""
        return self._engine.ready

    @property
    def start_seconds(self) -> float:
        """Time the latest engine took, from the start of its process until it was warm."""
        return self._engine.start_seconds

    @property
    def process_id(self) -> int | None:
        """The engine's process; None while there is none."""
        return self._engine.process_id if self._engine.is_alive else None

    @property
    def num_pending(self) -> int:
        """As of `Engine`; of those before the latest one nothing is pending."""
        return self._engine.num_pending

    @property
    def counters(self) -> EngineCounters:
        """The totals of all engines so far, and the gauges of the one that is there."""
        latest = self._engine.counters
        return summed([self._past, latest if self._engine.is_alive else only_totals(latest)])

    def submit(
        self, jobs: Sequence[SegmentJob], *, client: int = 0, on_written: OnWritten | None = None
    ) -> SegmentBatch:
        """As of `Engine`, by the latest one."""
        return self._engine.submit(jobs, client=client, on_written=on_written)

    def retire(self) -> None:
        """Finish what is pending, and start no other engine when this one is lost."""
        self._is_retired = True

    async def close(self) -> None:
        """As of `Engine`."""
        self._is_retired = True
        self._keeper.cancel()
        await asyncio.wait([self._keeper])
        await self._engine.close()

    async def _keep(self) -> None:
        """Replace the engine as often as it is lost, until the budget is used up."""
        try:
            while True:
                await self._engine.wait_lost()
                reason = self._engine.loss_reason
                if reason is None or self._is_retired:
                    return
                self._on_lost(reason)
                # A killed process is gone within moments; one that is not must not delay the next.
                await self._engine.wait_left(timeout_seconds=_LEAVE_SECONDS)
                outcome = await self._restart()
                if outcome == "replaced":
                    self._is_retired = True
                    return
                if outcome == "failed":
                    break
        except Exception:
            _LOGGER.exception("engine_keeper_failed")
        self._is_exhausted = True
        _LOGGER.error("engine_given_up")
        self._on_given_up()

    async def _restart(self) -> _Outcome:
        """Start another engine, at most as often as the budget allows, unless it is retired."""
        lost_at = self._clock()
        num_failed = 0
        while (delay := self._budget.next_delay(now=self._clock())) is not None:
            await asyncio.sleep(delay)
            if self._is_retired:
                return "replaced"
            try:
                engine = await self._start_engine()
            except EngineStartError as error:
                _LOGGER.error("engine_restart_failed", extra={"fields": {"reason": str(error)}})  # noqa: TRY400  # it is foreseen
                if self._is_retired or (error.at_fault and await self._is_outdated()):
                    return "replaced"
                num_failed += 1
                if num_failed >= self._budget.max_failed_starts:
                    return "failed"  # slow failures would never use up the budget of a window
                continue
            self._past = summed([self._past, only_totals(self._engine.counters)])
            self._engine = engine
            seconds = round(self._clock() - lost_at, 3)
            _LOGGER.warning("engine_restarted", extra={"fields": {"seconds": seconds}})
            return "restarted"
        return "failed"

    async def _is_outdated(self) -> bool:
        """Whether something else has taken this one's place, as its files are others now."""
        return self._on_outdated is not None and await self._on_outdated()
