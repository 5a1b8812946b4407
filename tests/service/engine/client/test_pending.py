"""Pending segments, without an engine."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from itertools import count

import pytest

from model.config import SearchConfig
from model.errors import InputError
from model.request import DecodeRequest
from service.engine.client.pending import PendingSegments, fail_all
from service.engine.client.segment_room import SegmentRoom
from service.engine.client.submission import SegmentJob
from service.engine.errors import EngineUnavailableError, QueueFullError, SegmentFailedError
from service.engine.messages import Cancelled, Failed, Finished, SegmentTimings, Written

JOB = SegmentJob(
    request=DecodeRequest(
        source_ids=(5, 2), prefix_ids=(1,), search=SearchConfig(beam_size=1, max_length=4)
    )
)
FINISHED = Finished(
    segment_id=1,
    hypotheses=(),
    timings=SegmentTimings(
        queue_seconds=0.0, first_step_seconds=0.0, decode_seconds=0.0, num_steps=1
    ),
)


class Heard:
    """An observer that writes down what it hears."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def segment_received(self, _job: SegmentJob) -> None:
        self.words.append("received")

    def segment_finished(self, _job: SegmentJob, _finished: Finished) -> None:
        self.words.append("finished")

    def segment_cancelled(self, _job: SegmentJob) -> None:
        self.words.append("cancelled")

    def segment_failed(self, _job: SegmentJob) -> None:
        self.words.append("failed")


def _with(
    scenario: Callable[[PendingSegments, SegmentRoom, Heard], Awaitable[None]],
    limit: int = 8,
    reserved_share: float = 0.0,
    num_checkpoints: int = 1,
) -> None:
    async def run() -> None:
        heard = Heard()
        room = SegmentRoom(
            limit,
            reserved_share=reserved_share,
            num_checkpoints=num_checkpoints,
            clock=lambda: 0.0,
        )
        await scenario(PendingSegments(room, observer=heard), room, heard)

    asyncio.run(run())


def test_the_last_word_answers_a_segment_and_makes_room() -> None:
    async def scenario(pending: PendingSegments, room: SegmentRoom, heard: Heard) -> None:
        answers = pending.add({1: JOB, 2: JOB, 3: JOB})
        answers[3].cancel()
        assert (len(pending), 2 in pending, 4 in pending) == (3, True, False)
        pending.settle(FINISHED)
        pending.settle(Failed(segment_id=2, code="engine_error", message="boom"))
        pending.settle(Cancelled(segment_id=3))
        assert answers[1].result() is FINISHED
        with pytest.raises(SegmentFailedError, match="boom"):
            answers[2].result()
        assert heard.words == ["received"] * 3 + ["finished", "failed", "cancelled"]
        assert len(pending) == 0
        room.check([JOB] * 8)

    _with(scenario)


def test_a_word_on_a_segment_that_is_not_pending_is_ignored() -> None:
    async def scenario(pending: PendingSegments, room: SegmentRoom, heard: Heard) -> None:
        pending.settle(FINISHED)
        assert (len(pending), heard.words) == (0, [])

    _with(scenario)


def test_a_lost_engine_answers_all_that_is_pending_with_an_error() -> None:
    async def scenario(pending: PendingSegments, room: SegmentRoom, _heard: Heard) -> None:
        answers = pending.add({1: JOB, 2: JOB})
        answers[2].cancel()
        fail_all(pending.take_all().values(), partial(EngineUnavailableError, "gone"))
        with pytest.raises(EngineUnavailableError, match="gone"):
            answers[1].result()
        assert answers[2].cancelled()
        assert len(pending) == 0
        room.check([JOB] * 8)

    _with(scenario)


def test_what_could_never_be_pending_is_no_question_of_now() -> None:
    async def scenario(pending: PendingSegments, room: SegmentRoom, _heard: Heard) -> None:
        with pytest.raises(InputError, match="there are 7 segments; the limit is 6"):
            room.check([JOB] * 7)
        pending.add(dict.fromkeys(range(4), JOB))
        with pytest.raises(QueueFullError) as caught:
            room.check([JOB] * 3)
        assert (caught.value.value, caught.value.limit) == (7, 6)

    _with(scenario, reserved_share=0.25)


def test_a_request_whose_segments_are_not_known_is_let_in_while_some_room_is_left() -> None:
    async def scenario(pending: PendingSegments, room: SegmentRoom, _heard: Heard) -> None:
        pending.add(dict.fromkeys(range(95), JOB))
        with pytest.raises(QueueFullError):
            room.check_open()
        room.check([JOB] * 5)

    _with(scenario, limit=100)


def test_a_flood_for_one_checkpoint_leaves_room_to_another() -> None:
    first, second = (replace(JOB, checkpoint=place, priority="bulk") for place in (0, 1))

    async def scenario(pending: PendingSegments, room: SegmentRoom, _heard: Heard) -> None:
        numbers = count(1)
        pending.add({next(numbers): job for job in [first] * 3 + [JOB] * 3})
        with pytest.raises(QueueFullError) as caught:
            room.check([first])
        assert (caught.value.value, caught.value.limit) == (7, 6)
        with pytest.raises(QueueFullError):
            room.check_open("bulk", checkpoint=0)
        room.check_open("bulk", checkpoint=1)
        room.check([second] * 2)
        pending.settle(Cancelled(segment_id=1))
        room.check([first])
        fail_all(pending.take_all().values(), partial(EngineUnavailableError, "gone"))
        room.check([first] * 6)

    _with(scenario, reserved_share=0.25, num_checkpoints=2)


def test_a_checkpoint_alone_has_all_places() -> None:
    async def scenario(pending: PendingSegments, room: SegmentRoom, _heard: Heard) -> None:
        bulk = replace(JOB, priority="bulk")
        pending.add({1: bulk, 2: bulk, 3: bulk, 4: bulk, 5: JOB, 6: JOB, 7: JOB})
        room.check([JOB])

    _with(scenario, reserved_share=0.25)


def test_tokens_are_told_to_whoever_watches_that_segment_and_before_its_answer() -> None:
    async def scenario(pending: PendingSegments, _room: SegmentRoom, _heard: Heard) -> None:
        told: list[tuple[str, int, tuple[int, ...]]] = []
        answers = pending.add(
            {1: JOB, 2: JOB, 3: JOB},
            watched={1: partial(_note, told, "one"), 2: partial(_note, told, "two")},
        )
        answers[1].add_done_callback(lambda _: told.append(("answer", 0, ())))
        answers[2].cancel()
        for number in (1, 2, 3, 4):
            pending.tell(Written(segment_id=number, start=0, token_ids=(5, number)))
        pending.settle(FINISHED)
        assert told == []
        await asyncio.sleep(0)
        assert told == [("one", 0, (5, 1)), ("answer", 0, ())]

    _with(scenario)


def test_who_leaves_is_not_told_what_had_come_by_then() -> None:
    async def scenario(pending: PendingSegments, _room: SegmentRoom, _heard: Heard) -> None:
        told: list[tuple[str, int, tuple[int, ...]]] = []
        answers = pending.add({1: JOB}, watched={1: partial(_note, told, "one")})
        for start in (0, 1):  # in one message or two, before anybody is told
            pending.tell(Written(segment_id=1, start=start, token_ids=(5,)))
        answers[1].cancel()
        await asyncio.sleep(0)
        assert told == []

    _with(scenario)


def test_an_error_of_whoever_watches_is_not_the_engines() -> None:
    async def scenario(pending: PendingSegments, _room: SegmentRoom, _heard: Heard) -> None:
        failures: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
        answers = pending.add({1: JOB}, watched={1: _fail})
        pending.tell(Written(segment_id=1, start=0, token_ids=(5,)))
        pending.settle(FINISHED)
        await asyncio.sleep(0)
        assert answers[1].result() is FINISHED
        assert [str(failure) for failure in failures] == ["it cannot be read"]

    _with(scenario)


def _note(
    told: list[tuple[str, int, tuple[int, ...]]], name: str, start: int, token_ids: tuple[int, ...]
) -> None:
    told.append((name, start, token_ids))


def _fail(_start: int, _token_ids: tuple[int, ...]) -> None:
    raise ValueError("it cannot be read")
