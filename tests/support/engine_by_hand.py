"""An engine whose loop is turned by hand: both ends of the socket are in the test's thread."""

import socket
from dataclasses import dataclass

from model.config import SearchConfig
from model.request import DecodeRequest
from service.engine.messages import (
    Configure,
    EngineCounters,
    EngineMessage,
    FrontMessage,
    Ready,
    Submit,
    SubmitSegment,
    encode_frame,
    engine_messages,
)
from service.engine.worker.channel import EngineChannel
from service.engine.worker.process import Engine, start
from service.priority import Priority


class Front:
    """The other end of an engine's socket, spoken to by hand."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._reader = engine_messages()

    def say(self, *messages: FrontMessage) -> None:
        self.connection.sendall(b"".join(map(encode_frame, messages)))

    def hear(self) -> list[EngineMessage]:
        """What has been said by now."""
        try:
            return self._reader.feed(self.connection.recv(1 << 20, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return []


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Pair:
    """A warm engine and its front."""

    front: Front
    engine: Engine
    clock: Clock

    def turn(self, *messages: FrontMessage) -> list[EngineMessage]:
        """Say something, let the engine take one turn, and hear what it says."""
        self.front.say(*messages)
        self.engine.turn()
        return self.front.hear()

    def run_out(self) -> list[EngineMessage]:
        """All that the engine says until it has nothing left to do."""
        heard: list[EngineMessage] = []
        while not (heard and is_idle(heard)):
            self.engine.turn()
            heard += self.front.hear()
        return heard


def is_idle(messages: list[EngineMessage]) -> bool:
    counters = [message for message in messages if isinstance(message, EngineCounters)]
    return bool(counters) and counters[-1].num_waiting + counters[-1].num_running == 0


def warm_pair(ends: tuple[Front, EngineChannel], configure: Configure) -> Pair:
    front, channel = ends
    clock = Clock()
    front.say(configure)
    engine = start(channel, clock=clock)
    [ready] = front.hear()
    assert isinstance(ready, Ready)
    return Pair(front, engine, clock)


def of(kind: type, messages: list[EngineMessage]) -> list[EngineMessage]:
    return [message for message in messages if isinstance(message, kind)]


def segment(
    segment_id: int,
    *,
    beam_size: int = 2,
    max_length: int = 5,
    priority: Priority = "interactive",
    source_ids: tuple[int, ...] | None = None,
) -> SubmitSegment:
    return SubmitSegment(
        segment_id=segment_id,
        request=DecodeRequest(
            source_ids=source_ids or (*range(10, 15 + segment_id % 7), 1),
            prefix_ids=(0,),
            search=SearchConfig(beam_size=beam_size, max_length=max_length),
        ),
        priority=priority,
    )


def submit(*segments: SubmitSegment) -> Submit:
    return Submit(segments=segments)
