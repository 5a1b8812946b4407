import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
import torch

from model.config import SearchConfig
from model.decode.session import DecodeRequest, DecodingSession, SessionLimits
from model.loading import load_for_decoding
from model.native import kernels
from service.engine.messages import Cancelled, Failed, Finished, SubmitSegment
from service.engine.worker.pacing import MIN_TOKEN_BUDGET
from service.engine.worker.runner import Runner
from service.engine.worker.totals import Totals
from support.tiny_checkpoint import TINY_TOKENS, tiny_transformer

LIMITS = SessionLimits(max_rows=16, max_slots=4, max_source_length=32, max_target_length=32)
OUT_OF_VOCABULARY = 1_000_000


def segment(
    segment_id: int,
    *,
    source_ids: tuple[int, ...] = (10, 11, 12, 1),
    prefix_ids: tuple[int, ...] = (0,),
    beam_size: int = 2,
    max_length: int = 6,
) -> SubmitSegment:
    return SubmitSegment(
        segment_id=segment_id,
        request=DecodeRequest(
            source_ids=source_ids,
            prefix_ids=prefix_ids,
            search=SearchConfig(beam_size=beam_size, max_length=max_length),
        ),
    )


def open_session() -> DecodingSession:
    return DecodingSession(tiny_transformer(), tokens=TINY_TOKENS, limits=LIMITS)


def ticking() -> Callable[[], float]:
    """A clock that is one second later every time it is read."""
    ticks = itertools.count()
    return lambda: float(next(ticks))


@pytest.fixture
def totals() -> Totals:
    return Totals()


@pytest.fixture
def runner(totals: Totals) -> Runner:
    return Runner(open_session, totals=totals, clock=ticking())


def run_out(runner: Runner) -> list[Finished | Failed]:
    answers: list[Finished | Failed] = []
    while not runner.is_idle:
        answers += runner.step()
        runner.check_integrity()
    return answers


def test_segments_get_what_the_session_gives_each_of_them_alone(runner):
    segments = [segment(1), segment(2, source_ids=(20, 1), beam_size=3), segment(3, max_length=9)]
    runner.accept(segments)
    runner.admit([1])
    answers = runner.step()
    runner.admit([2, 3])
    answers += run_out(runner)
    for answer in answers:
        alone = Runner(open_session, totals=Totals(), clock=ticking())
        alone.accept([segments[answer.segment_id - 1]])
        alone.admit([answer.segment_id])
        [expected] = run_out(alone)
        [got], [wanted] = answer.hypotheses, expected.hypotheses
        assert got.token_ids == wanted.token_ids
        assert got.score == pytest.approx(wanted.score, abs=1e-4)
        assert got.is_truncated == wanted.is_truncated
        assert len(got.token_log_probs) == len(got.token_ids) + 1
    assert sorted(answer.segment_id for answer in answers) == [1, 2, 3]


def test_timings_tell_waiting_from_decoding(totals):
    now = [100.0]
    runner = Runner(open_session, totals=totals, clock=lambda: now[0])
    runner.accept([segment(1, max_length=3)])
    now[0] = 103.0
    runner.admit([1])
    answers = []
    while not runner.is_idle:
        now[0] += 2.0
        answers += runner.step()
    [finished] = answers
    assert finished.timings.queue_seconds == 3.0
    assert finished.timings.first_step_seconds == 5.0
    assert finished.timings.num_steps == 3
    assert finished.timings.decode_seconds == 6.0
    assert finished.timings.arrived_at_seconds == 100.0


def test_timings_tell_encoding_from_steps(totals):
    now = [0.0]

    class SlowSession(DecodingSession):
        def admit(self, requests):
            now[0] += 0.5
            return super().admit(requests)

    session = SlowSession(tiny_transformer(), tokens=TINY_TOKENS, limits=LIMITS)
    runner = Runner(lambda: session, totals=totals, clock=lambda: now[0])
    runner.accept([segment(1, max_length=3), segment(2, max_length=3)])
    runner.admit([1, 2])
    now[0] += 1.0
    for finished in run_out(runner):
        assert finished.timings.encode_seconds == 0.5
        assert finished.timings.decode_seconds == 1.5


def test_encoding_and_steps_are_measured_for_the_pacing():
    now = [0.0]

    class SlowSession(DecodingSession):
        def admit(self, requests):
            now[0] += 0.5
            return super().admit(requests)

        def step(self):
            now[0] += 0.1
            return super().step()

    runner = Runner(
        lambda: SlowSession(tiny_transformer(), tokens=TINY_TOKENS, limits=LIMITS),
        totals=Totals(),
        clock=lambda: now[0],
    )
    runner.accept([segment(1, max_length=3), segment(2, source_ids=(*range(10, 89), 1)[-30:])])
    assert runner.pacing.token_budget(ceiling=9999) == 9999
    runner.admit([1, 2])
    run_out(runner)
    # 60 padded tokens took 0.5 s, and two steps take 0.2 s: 24 tokens, which is below the floor.
    assert runner.pacing.token_budget(ceiling=20) == 20
    assert runner.pacing.token_budget(ceiling=9999) == MIN_TOKEN_BUDGET
    assert repr(runner.pacing) == "<Pacing 60 tokens in 0.5000 s, a step in 0.1000 s>"


def test_steps_are_counted_from_the_segments_own_first(runner):
    runner.accept([segment(1, max_length=8), segment(2, max_length=2)])
    runner.admit([1])
    runner.step()
    runner.step()
    runner.admit([2])
    answers = {answer.segment_id: answer for answer in run_out(runner)}
    assert answers[1].timings.num_steps == 8
    assert answers[2].timings.num_steps == 2


def test_totals_count_every_segment_and_every_token_with_its_end(runner, totals):
    runner.accept([segment(1), segment(2)])
    runner.admit([1, 2])
    answers = run_out(runner)
    assert totals.num_received == totals.num_finished == 2
    assert totals.num_target_tokens == sum(
        len(answer.hypotheses[0].token_ids) + 1 for answer in answers
    )


def test_all_that_were_admitted_before_a_step_have_their_first_step_in_it(totals):
    now = [0.0]
    runner = Runner(open_session, totals=totals, clock=lambda: now[0])
    runner.accept([segment(1, max_length=3), segment(2, max_length=3)])
    runner.admit([1])
    runner.admit([2])
    now[0] = 5.0
    answers = runner.step()
    now[0] = 7.0
    answers += run_out(runner)
    assert [answer.timings.first_step_seconds for answer in answers] == [5.0, 5.0]


def test_what_ran_beside_one_that_cannot_be_encoded_gets_its_result(runner):
    runner.accept([segment(1), segment(2, source_ids=(OUT_OF_VOCABULARY, 1))])
    runner.admit([1])
    runner.step()
    [failure] = runner.admit([2])
    assert (failure.segment_id, type(failure)) == (2, Failed)
    [finished] = run_out(runner)
    assert (finished.segment_id, type(finished)) == (1, Finished)


def test_a_waiting_segment_that_is_cancelled_has_its_last_word(runner, totals):
    runner.accept([segment(1)])
    assert runner.cancel(1) == [Cancelled(segment_id=1)]
    assert runner.is_idle
    assert (totals.num_received, totals.num_cancelled) == (1, 1)


def test_a_running_segment_that_is_cancelled_leaves_its_rows_at_once(runner):
    runner.accept([segment(1), segment(2)])
    runner.admit([1, 2])
    runner.step()
    assert runner.cancel(1) == [Cancelled(segment_id=1)]
    assert (runner.num_slots, runner.num_rows) == (1, 2)
    runner.check_integrity()
    assert [answer.segment_id for answer in run_out(runner)] == [2]
    assert (runner.free_slots, runner.free_rows) == (LIMITS.max_slots, LIMITS.max_rows)


def test_cancelling_what_has_had_its_last_word_does_nothing(runner, totals):
    runner.accept([segment(1, max_length=1)])
    runner.admit([1])
    run_out(runner)
    assert runner.cancel(1) == []
    assert runner.cancel(99) == []
    assert totals.num_cancelled == 0


def test_a_segment_without_a_finite_score_fails_and_the_log_says_why(caplog):
    def open_broken_session() -> DecodingSession:
        transformer = tiny_transformer()
        with torch.no_grad():
            transformer.output_bias.fill_(float("nan"))
        return DecodingSession(transformer, tokens=TINY_TOKENS, limits=LIMITS)

    runner = Runner(open_broken_session, totals=Totals(), clock=ticking())
    runner.accept([segment(1)])
    runner.admit([1])
    [failure] = run_out(runner)
    assert failure.code == "engine_error"
    assert "no finite score" in failure.message
    [record] = caplog.records
    assert record.getMessage() == "segment_failed"
    assert record.fields == {"segment_id": 1, "reason": "no finite score"}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_hypotheses_with_scores_that_are_not_finite_are_worth_nothing(number):
    class OverflowingSession(DecodingSession):
        def step(self):
            return [
                replace(sentence, hypotheses=tuple(map(self._overflown, sentence.hypotheses)))
                for sentence in super().step()
            ]

        def _overflown(self, hypothesis):
            return msgspec.structs.replace(hypothesis, score=number)

    session = OverflowingSession(tiny_transformer(), tokens=TINY_TOKENS, limits=LIMITS)
    runner = Runner(lambda: session, totals=Totals(), clock=ticking())
    runner.accept([segment(1)])
    runner.admit([1])
    [failure] = run_out(runner)
    assert failure.message == "the engine gave up segment 1: no finite score"


@pytest.mark.parametrize(
    ("compute_type", "num_encoded_tokens"),
    [
        pytest.param(
            "int8",
            20,
            marks=pytest.mark.skipif(kernels.find_problem() is not None, reason="no kernels here"),
        ),
        ("float32", 27),
    ],
)
def test_padding_is_counted_where_there_is_any_and_only_there(
    checkpoint_path, totals, compute_type, num_encoded_tokens
):
    runnable = load_for_decoding(checkpoint_path, compute_type=compute_type, num_threads=1)
    session = DecodingSession(runnable.network, tokens=runnable.manifest.tokens, limits=LIMITS)
    runner = Runner(lambda: session, totals=totals, clock=ticking())
    runner.warm_up(
        [DecodeRequest(source_ids=(10, 1), prefix_ids=(0,), search=SearchConfig(max_length=3))]
    )
    lengths = (4, 9, 7)
    runner.accept(
        [segment(number, source_ids=(10,) * length) for number, length in enumerate(lengths)]
    )
    runner.admit([0, 1, 2])
    counted = totals.counters(
        num_waiting=0, num_waiting_bulk=0, num_rows=0, num_slots=0, max_rows=1, max_slots=1
    )
    assert counted.num_source_tokens == 20
    assert counted.num_padded_source_tokens == num_encoded_tokens


def watched(segment_id: int, **changes: Any) -> SubmitSegment:
    return msgspec.structs.replace(segment(segment_id, beam_size=1, **changes), is_watched=True)


def test_tokens_of_watched_segments_are_told_as_they_come_and_each_once(runner):
    first = watched(1, max_length=9)
    second = watched(2, max_length=12, source_ids=(20, 14, 1))
    runner.accept([first, second, segment(3, max_length=12)])
    runner.admit([1, 3])
    assert runner.written() == []
    told: dict[int, list[int]] = {1: [], 2: []}
    finished = {}
    while not runner.is_idle:
        finished |= {answer.segment_id: answer for answer in runner.step()}
        for written in runner.written():
            assert written.start == len(told[written.segment_id])
            assert written.segment_id not in finished
            told[written.segment_id] += written.token_ids
        assert runner.written() == []
        if len(told[1]) == 2:
            runner.admit([2])
    for number in (1, 2):
        assert tuple(told[number]) == finished[number].hypotheses[0].token_ids
        assert told[number]
    runner.check_integrity()


def test_a_watched_segment_that_is_cancelled_is_told_no_more(runner):
    runner.accept([watched(1, max_length=20), watched(2, max_length=20)])
    runner.admit([1, 2])
    runner.step()
    assert {written.segment_id for written in runner.written()} == {1, 2}
    runner.step()
    runner.cancel(1)
    assert [written.segment_id for written in runner.written()] == [2]
    runner.check_integrity()
