"""The loop of a warm engine, turned by hand."""

import itertools

import msgspec
import pytest

from service.engine.errors import FrontGoneError, ProtocolError
from service.engine.messages import (
    MAX_FRAME_BYTES,
    Cancel,
    Cancelled,
    EngineCounters,
    Failed,
    Finished,
    Shutdown,
    Written,
)
from support.engine_by_hand import Pair, is_idle, of, segment, submit, warm_pair


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


def test_tokens_are_told_of_watched_segments_and_of_no_other(pair):
    one = segment(1, beam_size=1, max_length=9)
    heard = pair.turn(submit(msgspec.structs.replace(one, is_watched=True), segment(2)))
    heard += pair.run_out()
    written = of(Written, heard)
    assert {message.segment_id for message in written} == {1}
    [finished] = [word for word in of(Finished, heard) if word.segment_id == 1]
    tokens = [token for message in written for token in message.token_ids]
    assert tuple(tokens) == finished.hypotheses[0].token_ids
    assert heard.index(written[-1]) < heard.index(finished)
