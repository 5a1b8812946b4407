"""The loop itself, turned by hand: both ends of the socket are in this thread."""

import itertools
import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pytest
import torch

from model.config import SearchConfig
from model.request import DecodeRequest
from service.engine.errors import FrontGoneError, ProtocolError
from service.engine.messages import (
    MAX_FRAME_BYTES,
    PROTOCOL_VERSION,
    Cancel,
    Cancelled,
    Configure,
    EngineCounters,
    EngineMessage,
    Failed,
    Finished,
    FrontMessage,
    Ready,
    Shutdown,
    StartFailed,
    Submit,
    SubmitSegment,
    encode_frame,
    engine_messages,
)
from service.engine.worker.channel import EngineChannel
from service.engine.worker.process import Engine, serve, start
from service.engine.worker.scheduler import Priority


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


@pytest.fixture
def ends() -> Iterator[tuple[Front, EngineChannel]]:
    root = logging.getLogger()
    level = root.level  # an engine sets it for its whole process
    ours, theirs = socket.socketpair()
    with ours, EngineChannel(theirs) as channel:
        yield Front(ours), channel
    root.setLevel(level)


def warm_pair(ends: tuple[Front, EngineChannel], configure: Configure) -> Pair:
    front, channel = ends
    clock = Clock()
    front.say(configure)
    engine = start(channel, clock=clock)
    [ready] = front.hear()
    assert isinstance(ready, Ready)
    return Pair(front, engine, clock)


@pytest.fixture
def pair(ends: tuple[Front, EngineChannel], configure: Configure) -> Pair:
    """With counters at every turn."""
    return warm_pair(ends, configure)


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


def test_every_segment_gets_one_last_word(pair):
    heard = pair.turn(submit(*(segment(number) for number in range(40))))
    heard += pair.run_out()
    assert sorted(word.segment_id for word in of(Finished, heard)) == list(range(40))


def test_the_last_figures_come_before_the_last_words(pair):
    heard = pair.turn(submit(segment(1, max_length=1)))
    assert [type(message) for message in heard] == [EngineCounters, Finished]
    assert is_idle(heard)
    assert heard[0].num_finished == 1


def test_totals_never_go_down_and_always_add_up(pair):
    heard = pair.turn(submit(*(segment(number, max_length=9) for number in range(30))))
    heard += pair.turn(Cancel(segment_ids=(0, 3, 29, 777)))
    heard += pair.run_out()
    counters = of(EngineCounters, heard)
    gauges = {"num_running", "num_rows", "num_slots", "max_rows", "max_slots"}
    gauges |= {"num_waiting", "num_waiting_bulk"}
    for before, after in itertools.pairwise(counters):
        for name in set(EngineCounters.__struct_fields__) - gauges - {"rows_per_step"}:
            assert getattr(before, name) <= getattr(after, name)
    for one in counters:
        answered = one.num_finished + one.num_cancelled + one.num_failed
        assert one.num_received == answered + one.num_waiting + one.num_running
        assert sum(one.rows_per_step) == one.num_steps
        assert one.num_rows <= one.max_rows == 32
        assert one.num_slots <= one.max_slots == 16
    assert max(one.num_running for one in counters) == 16
    last = counters[-1]
    assert (last.num_received, last.num_finished, last.num_cancelled) == (30, 27, 3)
    assert last.num_source_tokens <= last.num_padded_source_tokens


def test_running_segments_that_are_cancelled_leave_before_the_next_step(pair):
    [running] = pair.turn(submit(segment(1, max_length=60), segment(2, max_length=60)))
    assert (running.num_running, running.num_rows, running.num_steps) == (2, 4, 1)
    idle, *words = pair.turn(Cancel(segment_ids=(1, 2)))
    assert words == [Cancelled(segment_id=1), Cancelled(segment_id=2)]
    assert is_idle([idle])
    assert (idle.num_rows, idle.num_slots, idle.num_cancelled, idle.num_steps) == (0, 0, 2, 1)


def test_segments_that_are_cancelled_with_their_arrival_are_never_encoded(pair):
    idle, *words = pair.turn(submit(segment(1), segment(2)), Cancel(segment_ids=(2, 1)))
    assert words == [Cancelled(segment_id=2), Cancelled(segment_id=1)]
    assert is_idle([idle])
    assert idle.num_admitted == 0


def test_cancelling_the_unknown_is_answered_by_nothing(pair):
    assert pair.turn(Cancel(segment_ids=(5,))) == []


def test_a_newcomer_joins_segments_that_already_run(pair):
    pair.turn(submit(segment(1, max_length=60)))
    [running] = pair.turn(submit(segment(2, max_length=2)))
    assert running.num_running == 2
    _, finished = pair.turn()
    assert (finished.segment_id, finished.timings.num_steps) == (2, 2)


def test_encoding_is_spread_over_turns_so_that_running_segments_go_on(pair):
    # Sixteen sources of 10 tokens; the budget of a turn is 256 padded tokens, made to be 40.
    pair.engine._configure = msgspec.structs.replace(pair.engine._configure, admit_token_budget=40)
    assert running_by_turn(pair, num_turns=4) == [4, 8, 12, 16]


def running_by_turn(pair: Pair, *, num_turns: int) -> list[int]:
    """Sixteen segments with sources of 10 tokens arrive; how many run after each turn."""
    many = [segment(number, max_length=60, source_ids=(*range(10, 19), 1)) for number in range(16)]
    messages = [[submit(*many)], *([] for _ in range(num_turns - 1))]
    return [of(EngineCounters, pair.turn(*said))[0].num_running for said in messages]


def test_encoding_that_was_slow_is_done_in_smaller_pieces_while_something_runs(pair):
    pair.turn(submit(segment(99, max_length=60)))
    pacing = pair.engine._lanes[0]._runner.pacing
    for _ in range(100):
        pacing.encoded(1000, seconds=1.0)
        pacing.stepped(seconds=0.041)  # two steps are the time of 82 tokens
    assert running_by_turn(pair, num_turns=1) == [1 + 8]


def test_where_nothing_runs_the_whole_budget_may_be_encoded(pair):
    pacing = pair.engine._lanes[0]._runner.pacing
    for _ in range(100):
        pacing.encoded(1000, seconds=1.0)
        pacing.stepped(seconds=0.04)
    assert running_by_turn(pair, num_turns=1) == [16]


def test_an_interactive_segment_has_a_place_while_bulk_fills_its_own(pair):
    many = [segment(number, max_length=60, priority="bulk") for number in range(40)]
    [full] = pair.turn(submit(*many))
    assert (full.num_running, full.num_waiting, full.num_waiting_bulk) == (12, 28, 28)
    [joined] = pair.turn(submit(segment(99, max_length=60)))
    assert (joined.num_running, joined.num_waiting, joined.num_waiting_bulk) == (13, 28, 28)


def test_the_reserve_is_free_again_for_the_next_interactive_segment(pair):
    bulk = [segment(number, max_length=60, priority="bulk") for number in range(40)]
    pair.turn(submit(*bulk))
    last_words = []
    for number in range(100, 110):
        last_words += pair.turn(submit(segment(number, max_length=1)))
    last_words += pair.turn(submit(segment(110, max_length=60)))
    pair.turn(Cancel(segment_ids=(110,)))
    last_words += pair.turn(submit(segment(111, max_length=1)))
    finished = of(Finished, last_words)
    assert [word.segment_id for word in finished] == [*range(100, 110), 111]
    assert {word.timings.priority for word in finished} == {"interactive"}


def test_a_segments_last_word_says_in_which_class_it_waited(pair):
    heard = pair.turn(submit(segment(1, max_length=1, priority="bulk")))
    assert [word.timings.priority for word in of(Finished, heard)] == ["bulk"]


def test_a_wide_beam_gets_in_between_narrow_ones(pair):
    narrow = [segment(number, beam_size=1, max_length=20) for number in range(60)]
    wide = segment(99, beam_size=32, max_length=5)
    heard = pair.turn(submit(*narrow[:20], wide, *narrow[20:])) + pair.run_out()
    order = [word.segment_id for word in of(Finished, heard)]
    assert order.index(99) <= 20 + 16  # its elders, and those that may pass it


def test_a_batch_that_fails_does_not_stop_the_loop(pair):
    poison = segment(1, source_ids=(1_000_000, 1))
    counters, failure = pair.turn(submit(poison))
    assert isinstance(failure, Failed)
    assert (failure.segment_id, failure.code) == (1, "engine_error")
    assert counters.num_failed == 1
    heard = pair.turn(submit(segment(2))) + pair.run_out()
    assert [word.segment_id for word in of(Finished, heard)] == [2]


def test_a_busy_engine_reports_no_more_often_than_it_should(ends, configure):
    pair = warm_pair(ends, msgspec.structs.replace(configure, counters_interval_seconds=0.25))
    assert pair.turn(submit(segment(1, max_length=20))) == []
    pair.clock.now = 0.2
    assert pair.turn() == []
    pair.clock.now = 0.25
    assert len(of(EngineCounters, pair.turn())) == 1
    assert pair.turn() == []
    pair.clock.now = 0.5
    assert len(of(EngineCounters, pair.turn())) == 1
    assert len(of(EngineCounters, pair.run_out())) == 1  # the last one, once it is idle


def test_an_idle_engine_says_now_and_then_that_it_is_there(ends, configure):
    pair = warm_pair(ends, msgspec.structs.replace(configure, heartbeat_seconds=0.01))
    assert pair.turn() == []  # by its own clock no time has passed
    pair.clock.now = 0.01
    assert [type(message) for message in pair.turn()] == [EngineCounters]
    assert pair.turn() == []


def test_every_checkpoint_has_its_own_rows_and_its_turn(ends, configure):
    both = msgspec.structs.replace(
        configure, checkpoint_paths=configure.checkpoint_paths * 2, max_slots=4, max_rows=8
    )
    pair = warm_pair(ends, both)
    first = [segment(number, max_length=9) for number in range(30)]
    second = [
        msgspec.structs.replace(segment(100 + number, max_length=9), checkpoint=1)
        for number in range(3)
    ]
    pair.turn(submit(*first, *second))
    counters = of(EngineCounters, pair.turn())[0]
    assert (counters.num_running, counters.max_slots, counters.max_rows) == (4 + 3, 8, 16)
    order = [word.segment_id for word in of(Finished, pair.run_out())]
    assert sorted(order) == [*range(30), 100, 101, 102]
    assert set(order[:7]) >= {100, 101, 102}  # they did not wait for the 30 of the other


def test_a_running_segment_of_any_checkpoint_can_be_cancelled(ends, configure):
    both = msgspec.structs.replace(configure, checkpoint_paths=configure.checkpoint_paths * 2)
    pair = warm_pair(ends, both)
    pair.turn(submit(msgspec.structs.replace(segment(1, max_length=60), checkpoint=1)))
    idle, *words = pair.turn(Cancel(segment_ids=(1,)))
    assert words == [Cancelled(segment_id=1)]
    assert is_idle([idle])


@pytest.mark.parametrize("number", [-1, 1])
def test_a_segment_for_a_checkpoint_that_is_not_there_is_a_protocol_error(pair, number):
    with pytest.raises(ProtocolError, match=f"checkpoint {number}; there are 1"):
        pair.turn(submit(msgspec.structs.replace(segment(1), checkpoint=number)))


def test_without_a_checkpoint_there_is_nothing_to_serve(ends, configure):
    none = msgspec.structs.replace(configure, checkpoint_paths=())
    assert "must name at least 1" in start_failure(ends, none)


def test_shutdown_ends_the_loop_whatever_runs(pair):
    pair.front.say(submit(segment(1, max_length=60)), Shutdown())
    pair.engine.run()


def test_the_loop_ends_when_the_front_has_gone(pair):
    pair.front.connection.close()
    with pytest.raises(FrontGoneError):
        pair.engine.run()


def test_the_loop_ends_in_the_midst_of_work_when_the_front_has_gone(pair):
    pair.turn(submit(*(segment(number, max_length=60) for number in range(40))))
    pair.front.connection.close()
    with pytest.raises(FrontGoneError):
        pair.engine.run()


def test_a_second_configuration_is_a_protocol_error(pair, configure):
    with pytest.raises(ProtocolError, match="only ever the first"):
        pair.turn(configure)


@pytest.mark.parametrize(
    "data", [(MAX_FRAME_BYTES + 1).to_bytes(4, "big"), b"\x00\x00\x00\x01\xc1"]
)
def test_what_is_no_message_is_a_protocol_error(pair, data):
    pair.front.connection.sendall(data)
    with pytest.raises(ProtocolError):
        pair.engine.run()


def test_a_front_that_goes_before_the_engine_is_warm_ends_it_in_order(ends, configure):
    front, channel = ends
    front.say(configure)
    front.connection.close()
    assert serve(channel, clock=Clock()) == 0


def test_a_front_that_goes_without_a_word_ends_the_engine_in_order(ends):
    front, channel = ends
    front.connection.close()
    assert serve(channel, clock=Clock()) == 0


def start_failure(ends: tuple[Front, EngineChannel], *messages: FrontMessage) -> str:
    front, channel = ends
    front.say(*messages)
    assert serve(channel, clock=Clock()) == 1
    [failure] = front.hear()
    assert isinstance(failure, StartFailed)
    return failure.message


def test_a_front_of_another_version_is_told_so(ends, configure):
    newer = msgspec.structs.replace(configure, protocol_version=PROTOCOL_VERSION + 1)
    assert start_failure(ends, newer) == (
        f"the front speaks protocol {PROTOCOL_VERSION + 1}; the engine speaks {PROTOCOL_VERSION}"
    )


def test_the_first_message_must_be_the_configuration(ends, configure):
    assert "must be Configure" in start_failure(ends, Cancel(segment_ids=(1,)))


def test_nothing_may_follow_the_configuration_before_its_answer(ends, configure):
    assert "must be Configure" in start_failure(ends, configure, submit(segment(1)))


def test_a_first_message_that_cannot_be_read_is_explained(ends):
    payload = msgspec.msgpack.encode({"type": "configure", "checkpoint_paths": ["x"]})
    ends[0].connection.sendall(len(payload).to_bytes(4, "big") + payload)
    assert "num_threads" in start_failure(ends)


def test_a_checkpoint_that_is_not_there_is_named_in_the_answer(ends, configure, tmp_path):
    missing = tmp_path / "no-such-checkpoint"
    lost = msgspec.structs.replace(configure, checkpoint_paths=(str(missing),))
    assert start_failure(ends, lost) == f"{missing}: no such checkpoint directory"


def test_the_engine_logs_from_the_level_it_is_told(ends, configure):
    warm_pair(ends, msgspec.structs.replace(configure, log_level="debug"))
    assert logging.getLogger().level == logging.DEBUG


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_named_in_the_answer(ends, configure):
    elsewhere = msgspec.structs.replace(configure, device="cuda")
    message = start_failure(ends, elsewhere)
    assert message == "device is 'cuda', but torch finds no CUDA device"


@pytest.mark.parametrize("name", ["num_threads", "max_rows", "max_slots", "admit_token_budget"])
def test_a_limit_that_allows_nothing_is_named_in_the_answer(ends, configure, name):
    nothing = msgspec.structs.replace(configure, **{name: 0})
    assert start_failure(ends, nothing) == f"{name} is 0; it must be at least 1"


@pytest.mark.parametrize("share", [-0.25, 1.0, float("nan")])
def test_a_reserve_that_leaves_bulk_nothing_is_named_in_the_answer(ends, configure, share):
    strange = msgspec.structs.replace(configure, reserved_share=share)
    expected = f"reserved_share is {share:g}; it must be at least 0 and below 1"
    assert start_failure(ends, strange) == expected
