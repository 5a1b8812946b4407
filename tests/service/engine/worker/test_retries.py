"""What becomes of segments when a session raises: real sessions, and one thing that breaks them."""

from collections import Counter
from collections.abc import Callable
from functools import cache, partial

import pytest
import torch
from msgspec import structs

from model.config import SearchConfig
from model.decode.session import DecodeRequest, DecodingSession, SessionLimits
from model.nn.transformer import Transformer
from service.engine.messages import Failed, Finished, SubmitSegment
from service.engine.worker.headroom import MIN_ROWS, RECOVERY_SECONDS
from service.engine.worker.lane import Lane
from service.engine.worker.runner import Runner
from service.engine.worker.scheduler import Scheduler
from service.engine.worker.totals import Totals
from service.priority import Priority
from support.tiny_checkpoint import TINY_TOKENS, tiny_transformer

LIMITS = SessionLimits(max_rows=64, max_slots=32, max_source_length=32, max_target_length=32)
POISON = 77
OUT_OF_VOCABULARY = 1_000_000
EOS = TINY_TOKENS.eos_id
LONG = SearchConfig(beam_size=2, max_length=30)


@cache
def network() -> Transformer:
    torch.set_num_threads(1)
    return tiny_transformer()


class FragileSession(DecodingSession):
    """A session that breaks in some step while a source holds the poison, or rows are too many."""

    poison_after = 2
    max_sound_rows = LIMITS.max_rows
    error: type[Exception] = RuntimeError
    tries: Counter[int]

    def __init__(self) -> None:
        super().__init__(network(), tokens=TINY_TOKENS, limits=LIMITS)
        self._poisonous: dict[int, int] = {}

    def admit(self, requests: list[DecodeRequest]) -> list[int]:
        self.tries.update(request.source_ids[0] for request in requests)
        slot_ids = super().admit(requests)
        for slot_id, request in zip(slot_ids, requests, strict=True):
            if POISON in request.source_ids:
                self._poisonous[slot_id] = self.poison_after
        return slot_ids

    def release(self, slot_id: int) -> None:
        self._poisonous.pop(slot_id, None)
        super().release(slot_id)

    def step(self):
        if self.num_rows > self.max_sound_rows:
            raise self.error("too many rows")
        for slot_id in self._poisonous:
            self._poisonous[slot_id] -= 1
            if self._poisonous[slot_id] < 0:
                raise self.error("poison")
        return super().step()


def fragile(**attributes: object) -> Callable[[], FragileSession]:
    return type("Fragile", (FragileSession,), {"tries": Counter(), **attributes})


def segment(
    number: int, *, poison: bool = False, priority: Priority = "interactive", **changes: object
) -> SubmitSegment:
    """Its source begins with a token of its own, by which its tries are counted."""
    values: dict[str, object] = {
        "source_ids": (100 + number, POISON if poison else 20, 12, 1),
        "prefix_ids": (0,),
        "search": SearchConfig(beam_size=2, max_length=6),
    }
    request = DecodeRequest(**(values | changes))
    return SubmitSegment(segment_id=number, request=request, priority=priority)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def runner_of(open_session, clock=None) -> Runner:
    return Runner(open_session, totals=Totals(), clock=clock or Clock())


def lane_of(open_session) -> Lane:
    totals = Totals()
    return Lane(
        Scheduler(max_rows=LIMITS.max_rows, max_slots=LIMITS.max_slots, reserved_share=0.25),
        Runner(open_session, totals=totals, clock=Clock()),
        totals=totals,
        max_rows=LIMITS.max_rows,
        max_slots=LIMITS.max_slots,
    )


def run_out(runner: Runner) -> dict[int, Finished | Failed]:
    answers = []
    while not runner.is_idle:
        answers += runner.step()
        runner.check_integrity()
    assert len(answers) == len({answer.segment_id for answer in answers})
    return {answer.segment_id: answer for answer in answers}


def alone(one: SubmitSegment) -> Finished:
    runner = runner_of(
        lambda: DecodingSession(tiny_transformer(), tokens=TINY_TOKENS, limits=LIMITS)
    )
    runner.accept([one])
    runner.admit([one.segment_id])
    [answer] = run_out(runner).values()
    return answer


@pytest.mark.parametrize("poisonous", [{5}, {0, 15}, {3, 4, 11}])
def test_a_poisonous_segment_fails_alone_and_the_others_get_their_results(poisonous):
    open_session = fragile()
    runner = runner_of(open_session)
    segments = [segment(number, poison=number in poisonous) for number in range(16)]
    runner.accept(segments)
    runner.admit(range(16))
    answers = run_out(runner)
    assert {number for number, word in answers.items() if isinstance(word, Failed)} == poisonous
    assert all(answers[number].message.endswith(": RuntimeError") for number in poisonous)
    for number in set(range(16)) - poisonous:
        [got], [wanted] = answers[number].hypotheses, alone(segments[number]).hypotheses
        assert got.token_ids == wanted.token_ids
        assert got.score == pytest.approx(wanted.score, abs=1e-4)
    assert max(open_session.tries.values()) <= 5  # log2(16) + 1
    assert (runner.free_rows, runner.free_slots) == (LIMITS.max_rows, LIMITS.max_slots)


def test_nobody_joins_while_segments_are_tried_again():
    runner = runner_of(fragile())
    runner.accept([segment(number, poison=number == 1) for number in range(4)])
    runner.admit(range(4))
    while not runner.num_retries_of("interactive"):
        runner.step()
    assert runner.free_rows == 0
    assert runner.num_retries_of("interactive") == 4
    assert runner.num_retries_of("bulk") == 0
    assert len(run_out(runner)) == 4
    assert runner.free_rows == LIMITS.max_rows


@pytest.mark.parametrize("waits_meanwhile", [True, False])
def test_newcomers_join_each_other_once_all_that_was_tried_again_has_ended(waits_meanwhile: bool):
    lane = lane_of(fragile())
    turn = partial(lane.turn, max_token_budget=1024, keeps_others_waiting=False)
    lane.accept([segment(number, poison=number == 1) for number in range(4)])
    turn()
    while not lane.counters().num_waiting:  # until they are to be tried again
        turn()
    first, second = (segment(number, search=LONG, suppressed_ids=(EOS,)) for number in (8, 9))
    if waits_meanwhile:
        lane.accept([first])
    answers: list[object] = []
    while len(answers) < 4:  # then nothing runs, and an idle lane has no turn
        answers += turn()
    if not waits_meanwhile:
        lane.accept([first])
    turn()
    lane.accept([second])
    turn()
    assert lane.counters().num_slots == 2


def test_nobody_joins_the_last_of_those_that_are_tried_again_either():
    runner = runner_of(fragile())
    runner.accept([segment(number, poison=number == 1) for number in range(4)])
    runner.admit(range(4))
    while not runner.num_retries_of("interactive"):
        runner.step()
    found = []
    while not runner.is_idle:
        found.append((runner.num_retries_of("interactive"), runner.free_rows))
        runner.step()
    assert {free_rows for _, free_rows in found} == {0}
    assert {num_retries for num_retries, _ in found} >= {0, 2, 4}


def test_a_segment_that_is_cancelled_is_not_tried_again():
    open_session = fragile()
    runner = runner_of(open_session)
    runner.accept([segment(number, poison=True) for number in range(4)])
    runner.admit(range(4))
    while not runner.num_retries_of("interactive"):
        runner.step()
    for number in range(3):
        runner.cancel(number)
    assert runner.num_retries_of("interactive") == 1
    assert list(run_out(runner)) == [3]
    assert [open_session.tries[100 + number] for number in range(3)] == [1, 1, 1]


def test_when_all_that_was_to_be_tried_again_is_cancelled_newcomers_are_served():
    runner = runner_of(fragile())
    runner.accept([segment(number, poison=True) for number in range(4)])
    runner.admit(range(4))
    while not runner.num_retries_of("interactive"):
        runner.step()
    for number in range(4):
        runner.cancel(number)
    assert runner.is_idle
    runner.accept([segment(9)])
    runner.step()
    assert runner.free_rows == LIMITS.max_rows
    runner.admit([9])
    assert isinstance(run_out(runner)[9], Finished)


def test_a_batch_that_cannot_be_encoded_is_split_and_what_ran_goes_on():
    runner = runner_of(fragile())
    strange = segment(3, source_ids=(OUT_OF_VOCABULARY, 1))
    runner.accept([segment(1), segment(2), strange])
    runner.admit([1])
    runner.step()
    assert runner.admit([2, 3]) == []
    runner.check_integrity()
    answers = run_out(runner)
    assert [type(answers[number]) for number in (1, 2, 3)] == [Finished, Finished, Failed]


def test_a_failure_says_what_broke_and_quotes_nothing():
    runner = runner_of(fragile())
    runner.accept([segment(1, source_ids=(OUT_OF_VOCABULARY, 1))])
    [failure] = runner.admit([1])
    assert (failure.code, failure.message) == (
        "engine_error",
        "the engine gave up segment 1: IndexError",
    )


def test_more_than_fits_is_done_in_pieces():
    runner = runner_of(fragile())
    wide = SearchConfig(beam_size=32, max_length=3)
    runner.accept([segment(number, search=wide) for number in range(3)])
    assert runner.admit(range(3)) == []
    assert {type(word) for word in run_out(runner).values()} == {Finished}


class NoMemoryOnTheHostError(RuntimeError):
    """What torch says of a CPU."""

    def __init__(self, message: str) -> None:
        super().__init__(f"DefaultCPUAllocator: can't allocate memory: {message}")


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError, NoMemoryOnTheHostError])
def test_when_memory_runs_out_fewer_rows_run_for_a_while(error):
    clock = Clock()
    runner = runner_of(fragile(max_sound_rows=40, error=error), clock)
    runner.accept([segment(number) for number in range(32)])
    runner.admit(range(32))
    answers = run_out(runner)
    assert {type(word) for word in answers.values()} == {Finished}
    assert runner.free_rows == 32
    runner.accept([segment(99)])
    runner.admit([99])
    assert (runner.num_rows, runner.free_rows) == (2, 30)  # what runs takes of the fewer rows
    clock.now = RECOVERY_SECONDS
    assert runner.free_rows == LIMITS.max_rows - 2
    assert set(run_out(runner)) == {99}
    assert runner.free_rows == LIMITS.max_rows


def test_the_widest_beam_always_has_room():
    runner = runner_of(fragile(max_sound_rows=0, error=MemoryError))
    runner.accept([segment(number) for number in range(4)])
    runner.admit(range(4))
    assert {type(word) for word in run_out(runner).values()} == {Failed}
    assert runner.free_rows == MIN_ROWS


def test_a_newcomer_for_which_memory_is_short_is_tried_again_when_the_others_have_left():
    class Tight(FragileSession):
        def admit(self, requests):
            if self.num_slots:
                raise MemoryError("no room beside another")
            return super().admit(requests)

    runner = runner_of(type("Counted", (Tight,), {"tries": Counter()}))
    runner.accept([segment(1), segment(2)])
    runner.admit([1])
    runner.step()
    assert runner.admit([2]) == []
    assert {type(word) for word in run_out(runner).values()} == {Finished}


def test_after_memory_ran_out_bulk_goes_on_in_the_rows_that_are_left():
    lane = lane_of(fragile(max_sound_rows=20, error=MemoryError))
    lane.accept([segment(number, priority="bulk") for number in range(40)])
    answers = []
    for _ in range(400):
        answers += lane.turn(max_token_budget=1024, keeps_others_waiting=False)
    assert lane.is_idle
    assert {type(word) for word in answers} == {Finished}
    assert len(answers) == 40


def test_a_watched_segment_that_is_tried_again_tells_its_tokens_from_the_beginning():
    runner = runner_of(fragile(poison_after=3))
    search = SearchConfig(beam_size=1, max_length=12)
    one = structs.replace(segment(1, search=search), is_watched=True)
    runner.accept([one, segment(2, poison=True)])
    runner.admit([1, 2])
    starts, told, answers = [], [], []
    while not runner.is_idle:
        answers += runner.step()
        for written in runner.written():
            starts.append(written.start)
            told[written.start :] = written.token_ids
        runner.check_integrity()
    assert starts[:4] == [0, 1, 2, 0]
    assert starts.count(0) == 2
    [found] = [answer for answer in answers if isinstance(answer, Finished)]
    assert tuple(told) == found.hypotheses[0].token_ids == alone(one).hypotheses[0].token_ids
