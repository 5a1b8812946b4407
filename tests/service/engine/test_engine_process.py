"""The loop itself, over a real socket, in a thread of this process."""

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec
import pytest
import torch

from model.config import SearchConfig
from service.engine.channel import EngineChannel
from service.engine.messages import (
    MAX_FRAME_BYTES,
    Cancel,
    Cancelled,
    Configure,
    EngineMessage,
    Finished,
    FrontMessage,
    Ready,
    Shutdown,
    Snapshot,
    StartFailed,
    Submit,
    SubmitSegment,
    encode_frame,
    engine_messages,
)
from service.engine.process import serve


@dataclass
class Front:
    """The other end of an engine's socket, spoken to by hand."""

    connection: socket.socket
    thread: threading.Thread
    exit_status: list[int]
    heard: list[EngineMessage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reader = engine_messages()

    def say(self, *messages: FrontMessage) -> None:
        self.connection.sendall(b"".join(map(encode_frame, messages)))

    def hear(self) -> EngineMessage:
        while not self.heard:
            data = self.connection.recv(65536)
            assert data, "the engine has left"
            self.heard += self._reader.feed(data)
        return self.heard.pop(0)

    def hear_until(self, is_last: Callable[[EngineMessage], bool]) -> list[EngineMessage]:
        messages = [self.hear()]
        while not is_last(messages[-1]):
            messages.append(self.hear())
        return messages

    def left_with(self) -> int:
        self.thread.join(timeout=30)
        assert not self.thread.is_alive()
        return self.exit_status[0]


@pytest.fixture
def front() -> Iterator[Front]:
    ours, theirs = socket.socketpair()
    exit_status: list[int] = []

    def work() -> None:
        with EngineChannel(theirs) as channel:
            exit_status.append(serve(channel, clock=time.monotonic))

    thread = threading.Thread(target=work)
    ours.settimeout(30)
    thread.start()
    with ours:
        yield Front(ours, thread, exit_status)
    thread.join(timeout=30)
    assert not thread.is_alive()


@pytest.fixture
def warm(front: Front, configure: Configure) -> Front:
    front.say(configure)
    assert isinstance(front.hear(), Ready)
    return front


def segment(segment_id: int, *, beam_size: int = 2, max_length: int = 5) -> SubmitSegment:
    return SubmitSegment(
        segment_id=segment_id,
        source_ids=(*range(10, 15 + segment_id % 7), 1),
        prefix_ids=(0,),
        search=SearchConfig(beam_size=beam_size, max_length=max_length),
    )


def is_idle(message: EngineMessage) -> bool:
    return isinstance(message, Snapshot) and message.num_waiting + message.num_running == 0


def test_every_segment_gets_one_last_word_and_the_figures_come_before_it(warm):
    warm.say(Submit(segments=tuple(segment(number) for number in range(40))))
    messages = warm.hear_until(is_idle)
    last_words = [message for message in messages if isinstance(message, Finished)]
    num_missing = messages[-1].num_finished - len(last_words)
    last_words += [warm.hear() for _ in range(num_missing)]
    assert num_missing > 0
    assert sorted(word.segment_id for word in last_words) == list(range(40))


def test_totals_never_go_down_and_always_add_up(warm):
    warm.say(
        Submit(segments=tuple(segment(number, max_length=9) for number in range(30))),
        Cancel(segment_ids=(0, 3, 29, 777)),
    )
    snapshots = [message for message in warm.hear_until(is_idle) if isinstance(message, Snapshot)]
    gauges = {"num_waiting", "num_running", "num_rows", "num_slots", "max_rows", "max_slots"}
    for before, after in itertools.pairwise(snapshots):
        for name in set(Snapshot.__struct_fields__) - gauges - {"rows_per_step"}:
            assert getattr(before, name) <= getattr(after, name)
    for snapshot in snapshots:
        answered = snapshot.num_finished + snapshot.num_cancelled + snapshot.num_failed
        assert snapshot.num_received == answered + snapshot.num_waiting + snapshot.num_running
        assert sum(snapshot.rows_per_step) == snapshot.num_steps
        assert snapshot.num_rows <= snapshot.max_rows == 32
        assert snapshot.num_slots <= snapshot.max_slots == 16
    assert max(snapshot.num_running for snapshot in snapshots) > 1
    last = snapshots[-1]
    assert (last.num_received, last.num_finished, last.num_cancelled) == (30, 27, 3)
    assert last.num_source_tokens <= last.num_padded_source_tokens


def test_a_cancelled_segment_is_gone_one_step_later(warm):
    warm.say(Submit(segments=(segment(1, max_length=60), segment(2, max_length=60))))
    running = warm.hear_until(lambda message: isinstance(message, Snapshot))[-1]
    assert running.num_running == 2
    warm.say(Cancel(segment_ids=(1, 2)))
    idle = warm.hear_until(is_idle)[-1]
    assert {warm.hear().segment_id, warm.hear().segment_id} == {1, 2}
    assert (idle.num_rows, idle.num_slots, idle.num_cancelled) == (0, 0, 2)
    assert idle.num_steps < 60


def test_a_newcomer_joins_segments_that_already_run(warm):
    warm.say(Submit(segments=(segment(1, max_length=60),)))
    warm.hear_until(lambda message: isinstance(message, Snapshot))
    warm.say(Submit(segments=(segment(2, max_length=2),)))
    answers = [warm.hear_until(lambda message: isinstance(message, Finished))[-1]]
    answers.append(warm.hear_until(lambda message: isinstance(message, Finished))[-1])
    assert [answer.segment_id for answer in answers] == [2, 1]


def test_a_wide_beam_gets_in_between_narrow_ones(warm):
    narrow = [segment(number, beam_size=1, max_length=20) for number in range(60)]
    wide = segment(99, beam_size=32, max_length=5)
    warm.say(Submit(segments=(*narrow[:20], wide, *narrow[20:])))
    order = [
        message.segment_id for message in warm.hear_until(is_idle) if isinstance(message, Finished)
    ]
    assert order.index(99) <= 20 + 16  # its elders, and those that may pass it


def test_cancelling_the_unknown_is_answered_by_nothing(warm):
    warm.say(Cancel(segment_ids=(5,)), Submit(segments=(segment(1),)))
    messages = warm.hear_until(lambda message: isinstance(message, Finished))
    assert not [message for message in messages if isinstance(message, Cancelled)]


def test_the_engine_leaves_when_it_is_told_to(warm):
    warm.say(Submit(segments=(segment(1, max_length=60),)), Shutdown())
    assert warm.left_with() == 0


def test_the_engine_leaves_when_the_front_has_gone(warm):
    warm.connection.close()
    assert warm.left_with() == 0


def test_the_engine_leaves_in_the_midst_of_work_when_the_front_has_gone(warm):
    warm.say(Submit(segments=tuple(segment(number, max_length=60) for number in range(40))))
    warm.hear()
    warm.connection.close()
    assert warm.left_with() == 0


def test_the_engine_leaves_when_the_front_goes_before_it_is_warm(front, configure):
    front.say(configure)
    front.connection.close()
    assert front.left_with() == 0


def test_a_second_configuration_ends_the_engine(warm, configure):
    warm.say(configure)
    assert warm.left_with() == 1


@pytest.mark.parametrize(
    "data", [(MAX_FRAME_BYTES + 1).to_bytes(4, "big"), b"\x00\x00\x00\x01\xc1"]
)
def test_what_is_no_message_ends_the_engine(warm, data):
    warm.connection.sendall(data)
    assert warm.left_with() == 1


def start_failure(front: Front) -> str:
    failure = front.hear()
    assert isinstance(failure, StartFailed)
    assert front.left_with() == 1
    return failure.message


def test_a_front_of_another_version_is_told_so(front, configure):
    front.say(msgspec.structs.replace(configure, protocol_version=2))
    assert start_failure(front) == "the front speaks protocol 2; the engine speaks 1"


def test_the_first_message_must_be_the_configuration(front):
    front.say(Cancel(segment_ids=(1,)))
    assert "first message must be Configure" in start_failure(front)


def test_a_first_message_that_cannot_be_read_is_explained(front):
    payload = msgspec.msgpack.encode({"type": "configure", "checkpoint_path": "x"})
    front.connection.sendall(len(payload).to_bytes(4, "big") + payload)
    assert "num_threads" in start_failure(front)


def test_a_checkpoint_that_is_not_there_is_named_in_the_answer(front, configure, tmp_path):
    missing = tmp_path / "no-such-checkpoint"
    front.say(msgspec.structs.replace(configure, checkpoint_path=str(missing)))
    assert start_failure(front) == f"{missing}: no such checkpoint directory"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_named_in_the_answer(front, configure):
    front.say(msgspec.structs.replace(configure, device="cuda"))
    assert start_failure(front) == "device is 'cuda', but torch finds no CUDA device"


def test_limits_that_make_no_session_are_explained(front, configure):
    front.say(msgspec.structs.replace(configure, max_rows=-1))
    assert start_failure(front) == "max_rows is -1; it must be at least 1"
