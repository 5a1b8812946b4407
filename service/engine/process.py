"""The engine's process: `python -m service.engine.process --fd N`.

Owns the loop, which reads like one sentence: receive what has come, plan who joins, admit
them, step, send what is finished. One thread does all of it and owns the network. The
process ends when the front closes the socket, so a front that was killed leaves no orphan.
"""

import argparse
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import assert_never

from model.errors import ConfigError, DragomanError
from service.engine.channel import EngineChannel
from service.engine.errors import FrontGoneError, ProtocolError
from service.engine.messages import (
    PROTOCOL_VERSION,
    Cancel,
    Configure,
    EngineMessage,
    Failed,
    Finished,
    FrontMessage,
    Ready,
    Shutdown,
    Snapshot,
    StartFailed,
    Submit,
)
from service.engine.runner import Runner, load_runner
from service.engine.scheduler import Scheduler, WaitingSegment
from service.engine.totals import Totals
from service.logs import configure_logging

logger = logging.getLogger(__name__)


class Engine:
    """The loop over one channel, one queue and one runner."""

    def __init__(
        self,
        channel: EngineChannel,
        scheduler: Scheduler,
        runner: Runner,
        *,
        ready: Ready,
        totals: Totals,
        max_token_budget: int,
        snapshot_interval_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._channel = channel
        self._scheduler = scheduler
        self._runner = runner
        self._ready = ready
        self._totals = totals
        self._max_token_budget = max_token_budget
        self._snapshot_interval_seconds = snapshot_interval_seconds
        self._clock = clock
        self._snapshot_at = clock()
        self._is_serving = True

    def run(self) -> None:
        """Serve until the front says Shutdown.

        Raises:
            FrontGoneError: The front left without a word.
            ProtocolError: The front sent what it must not.
        """
        while self._is_serving:
            self.turn()

    def turn(self) -> None:
        """One turn of the loop; waits for a message only when there is nothing to do."""
        answers = self._take(self._channel.receive(is_blocking=self._runner.is_idle))
        answers += self._released(self._runner.admit(self._plan()))
        answers += self._released(self._runner.step())
        self._channel.send(self._with_snapshot(answers))

    def _take(self, messages: Sequence[FrontMessage]) -> list[EngineMessage]:
        answers: list[EngineMessage] = []
        for message in messages:
            match message:
                case Submit(segments=segments):
                    self._runner.accept(segments)
                    self._scheduler.add(
                        WaitingSegment(
                            segment_id=segment.segment_id,
                            num_source_tokens=len(segment.source_ids),
                            num_rows=segment.search.beam_size,
                            priority=segment.priority,
                        )
                        for segment in segments
                    )
                case Cancel(segment_ids=segment_ids):
                    for segment_id in segment_ids:
                        self._scheduler.cancel(segment_id)
                        answers += self._runner.cancel(segment_id)
                case Shutdown():
                    self._is_serving = False
                case Configure():
                    raise ProtocolError("Configure is only ever the first message")
                case _:
                    assert_never(message)
        return answers

    def _plan(self) -> list[int]:
        if not self._scheduler.num_waiting:
            return []
        return self._scheduler.plan(
            free_rows=self._runner.free_rows,
            free_slots=self._runner.free_slots,
            token_budget=self._token_budget(),
        )

    def _token_budget(self) -> int:
        """What may be encoded now; where nothing runs, it keeps nobody waiting."""
        if self._runner.num_slots == 0:
            return self._max_token_budget
        return self._runner.pacing.token_budget(ceiling=self._max_token_budget)

    def _released(self, answers: Sequence[Finished | Failed]) -> Sequence[Finished | Failed]:
        """The last words, of which the scheduler has heard too."""
        for answer in answers:
            self._scheduler.release(answer.segment_id)
        return answers

    def _with_snapshot(self, answers: list[EngineMessage]) -> list[EngineMessage]:
        """Put a snapshot before the answers when one is due.

        One is due when the last work is done, and now and then while there is some. It goes
        first so that a front that has heard every answer has the final figures too.
        """
        now = self._clock()
        is_overdue = now - self._snapshot_at >= self._snapshot_interval_seconds
        is_due = bool(answers) if self._runner.is_idle else is_overdue
        if not is_due:
            return answers
        self._snapshot_at = now
        return [self._snapshot(), *answers]

    def _snapshot(self) -> Snapshot:
        self._runner.check_integrity()
        return self._totals.snapshot(
            num_waiting=self._scheduler.num_waiting,
            num_waiting_bulk=self._scheduler.num_waiting_of("bulk"),
            num_rows=self._runner.num_rows,
            num_slots=self._runner.num_slots,
            max_rows=self._ready.max_rows,
            max_slots=self._ready.max_slots,
        )


def start(channel: EngineChannel, *, clock: Callable[[], float]) -> Engine:
    """Read the configuration, load, warm up and say Ready.

    Raises:
        DragomanError: The engine cannot serve.
    """
    match channel.receive(is_blocking=True):
        case [Configure() as configure]:
            pass
        case _:
            raise ProtocolError("the first message must be Configure, and wait for its answer")
    if configure.protocol_version != PROTOCOL_VERSION:
        raise ProtocolError(
            f"the front speaks protocol {configure.protocol_version}; the engine speaks"
            f" {PROTOCOL_VERSION}"
        )
    if not 0.0 <= configure.reserved_share < 1.0:
        raise ConfigError(
            f"reserved_share is {configure.reserved_share:g}; it must be at least 0 and below 1"
        )
    logging.getLogger().setLevel(configure.log_level.upper())
    totals = Totals()
    runner, ready = load_runner(configure, totals=totals, clock=clock)
    channel.send([ready])
    return Engine(
        channel,
        Scheduler(
            max_rows=ready.max_rows,
            max_slots=ready.max_slots,
            reserved_share=configure.reserved_share,
        ),
        runner,
        ready=ready,
        totals=totals,
        max_token_budget=configure.admit_token_budget,
        snapshot_interval_seconds=configure.snapshot_interval_seconds,
        clock=clock,
    )


def serve(channel: EngineChannel, *, clock: Callable[[], float]) -> int:
    """Start, run until the front leaves, and return the process's exit status."""
    try:
        engine = _start_or_explain(channel, clock=clock)
        if engine is None:
            return 1
        engine.run()
    except FrontGoneError:
        logger.info("front_gone")
    except Exception:
        logger.exception("engine_failed")
        return 1
    return 0


def _start_or_explain(channel: EngineChannel, *, clock: Callable[[], float]) -> Engine | None:
    try:
        return start(channel, clock=clock)
    except FrontGoneError:
        raise
    except DragomanError as error:
        channel.send([StartFailed(message=str(error))])
    except Exception as error:
        logger.exception("start_failed")
        channel.send([StartFailed(message=f"{type(error).__name__}: {error}")])
    return None


def main() -> int:
    """Serve the front at the other end of the socket `--fd`."""
    parser = argparse.ArgumentParser(description="The engine; started by `dragoman serve`.")
    parser.add_argument("--fd", type=int, required=True, help="the engine's end of the socket")
    arguments = parser.parse_args()
    configure_logging("info")  # until the configuration says otherwise
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with EngineChannel(socket.socket(fileno=arguments.fd)) as channel:
        return serve(channel, clock=time.monotonic)


if __name__ == "__main__":
    sys.exit(main())
