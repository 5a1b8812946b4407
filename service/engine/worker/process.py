"""Loop of the engine process, which `service.engine.worker.__main__` starts.

Owns the loop, which reads like one sentence: receive what has come, give a checkpoint's lane its
turn (plan which segments join, admit them, step), send what is finished. Whose turn it is says
`service.engine.worker.sharing`. One thread does all of
it and owns the networks. The process ends when the front closes the socket; what else may end it is
`service.engine.lifetime`.
"""

import gc
import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import assert_never

from model.errors import DragomanError, one_line
from service.engine.counters import summed
from service.engine.errors import CheckpointsError, FrontGoneError, ProtocolError
from service.engine.messages import (
    PROTOCOL_VERSION,
    Cancel,
    Configure,
    EngineMessage,
    Failed,
    Finished,
    FrontMessage,
    Shutdown,
    StartFailed,
    Submit,
    SubmitSegment,
    Written,
)
from service.engine.worker.channel import EngineChannel
from service.engine.worker.lane import Lane
from service.engine.worker.loading import load_lanes
from service.engine.worker.sharing import LaneTurns
from service.logs import configure_logging

_LOGGER = logging.getLogger(__name__)


class Engine:
    """Loop over one channel and the lanes, one for each checkpoint."""

    def __init__(
        self,
        channel: EngineChannel,
        lanes: Sequence[Lane],
        configure: Configure,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._channel = channel
        self._lanes = lanes
        self._turns = LaneTurns(len(lanes))
        self._configure = configure
        self._clock = clock
        self._counted_at = clock()
        self._is_serving = True

    @property
    def is_idle(self) -> bool:
        """Whether no segment waits or runs."""
        return all(lane.is_idle for lane in self._lanes)

    def run(self) -> None:
        """Serve until the front sends Shutdown.

        Raises:
            FrontGoneError: The front left without a word.
            ProtocolError: The front sent what it must not.
        """
        while self._is_serving:
            self.turn()

    def turn(self) -> None:
        """One turn of the loop; waits for a message only when there is nothing to do."""
        wait_seconds = self._configure.heartbeat_seconds if self.is_idle else 0.0
        answers = self._take(self._channel.receive(wait_seconds=wait_seconds))
        number = self._turns.next(n for n, lane in enumerate(self._lanes) if not lane.is_idle)
        if number is not None:
            answers += self._turn_of(number)
        self._channel.send(self._with_counters(answers))

    def _turn_of(self, number: int) -> list[Written | Finished | Failed]:
        lane, started = self._lanes[number], self._clock()
        share = lane.share
        answers = lane.turn(
            max_token_budget=self._configure.admit_token_budget,
            keeps_others_waiting=any(other.is_running for other in self._lanes),
        )
        self._turns.charge(number, self._clock() - started, share=share)
        return answers

    def _take(self, messages: Sequence[FrontMessage]) -> list[EngineMessage]:
        answers: list[EngineMessage] = []
        for message in messages:
            match message:
                case Submit(segments=segments):
                    self._accept(segments)
                case Cancel(segment_ids=segment_ids):
                    for segment_id in segment_ids:
                        for lane in self._lanes:
                            answers += lane.cancel(segment_id)
                case Shutdown():
                    self._is_serving = False
                case Configure():
                    raise ProtocolError("Configure is only ever the first message")
                case _:
                    assert_never(message)
        return answers

    def _accept(self, segments: Sequence[SubmitSegment]) -> None:
        for number, group in groupby(segments, key=attrgetter("checkpoint")):
            if not 0 <= number < len(self._lanes):
                raise ProtocolError(
                    f"a segment is for checkpoint {number}; there are {len(self._lanes)}"
                )
            self._lanes[number].accept(list(group))

    def _with_counters(self, answers: list[EngineMessage]) -> list[EngineMessage]:
        """Put the counters before the answers when they are due.

        One is due when the last work is done, and now and then in any case: the front takes an
        engine that says nothing for one that hangs. It goes first so that a front that has heard
        every answer has the final figures too.
        """
        now = self._clock()
        is_idle = self.is_idle
        interval = (
            self._configure.heartbeat_seconds
            if is_idle
            else self._configure.counters_interval_seconds
        )
        is_due = now - self._counted_at >= interval or (is_idle and answers)
        if not is_due:
            return answers
        self._counted_at = now
        return [summed([lane.counters() for lane in self._lanes]), *answers]


def start(channel: EngineChannel, *, clock: Callable[[], float]) -> Engine:
    """Read the configuration, load, warm up and say Ready.

    Raises:
        DragomanError: The engine cannot serve.
    """
    match channel.receive(wait_seconds=None):
        case [Configure() as configure]:
            pass
        case _:
            raise ProtocolError("the first message must be Configure, and wait for its answer")
    if configure.protocol_version != PROTOCOL_VERSION:
        raise ProtocolError(
            f"the front speaks protocol {configure.protocol_version}; the engine speaks"
            f" {PROTOCOL_VERSION}"
        )
    logging.getLogger().setLevel(configure.log_level.upper())
    if configure.processors is not None:
        _stay_on(configure.processors)
    lanes, ready = load_lanes(configure, clock=clock)
    channel.send([ready])
    return Engine(channel, lanes, configure, clock=clock)


def _stay_on(processors: Sequence[int]) -> None:
    """Run on these processors alone, as do threads that are started from now on.

    It is for speed alone: where the system refuses, it is logged.
    """
    try:
        os.sched_setaffinity(0, processors)
    except (OSError, AttributeError) as error:
        fields = {"processors": list(processors), "reason": str(error)}
        _LOGGER.warning("processors_not_taken", extra={"fields": fields})


def serve(channel: EngineChannel, *, clock: Callable[[], float]) -> int:
    """Start, run until the front leaves, and return the process's exit status."""
    try:
        engine = _start_or_explain(channel, clock=clock)
        if engine is None:
            return 1
        gc.freeze()  # what is there now stays; garbage is looked for among what comes
        engine.run()
    except FrontGoneError:
        _LOGGER.info("front_gone")
    except Exception:
        _LOGGER.exception("engine_failed")
        return 1
    return 0


def _start_or_explain(channel: EngineChannel, *, clock: Callable[[], float]) -> Engine | None:
    try:
        return start(channel, clock=clock)
    except FrontGoneError:
        raise
    except CheckpointsError as error:
        shortages = tuple(
            (place, shortage.needed_bytes, shortage.free_bytes)
            for place, shortage in error.shortages.items()
        )
        at_fault = tuple(error.at_fault.items())
        channel.send([StartFailed(message=str(error), at_fault=at_fault, shortages=shortages)])
    except DragomanError as error:
        channel.send([StartFailed(message=one_line(str(error)))])
    except Exception as error:
        _LOGGER.exception("start_failed")
        channel.send([StartFailed(message=one_line(f"{type(error).__name__}: {error}"))])
    return None


def run(descriptor: int) -> int:
    """Serve the front at the other end of the socket `descriptor`; the process's exit status."""
    configure_logging("info")  # until the configuration says otherwise
    with EngineChannel(socket.socket(fileno=descriptor)) as channel:
        return serve(channel, clock=time.monotonic)
