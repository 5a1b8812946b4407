import asyncio
import dataclasses
import itertools

import pytest

from model.config import SearchConfig
from model.decode.session import DecodeRequest, DecodingSession, SessionLimits
from model.errors import InputError
from service.engine.client import submission
from service.engine.client.client import EngineClient
from service.engine.client.segment_room import SegmentRoom
from service.engine.client.submission import SegmentBatch, SegmentJob, Watch
from service.engine.errors import QueueFullError, SegmentFailedError
from service.engine.messages import Finished
from service.priority import Priority
from support.engine_jobs import (
    assert_idle,
    job,
    long_running,
    poison,
    settled,
    stopped,
)


def test_concurrent_requests_get_what_each_of_them_gets_alone(run, engine, checkpoint):
    jobs = [
        job(number, beam_size=1 + number % 5, max_length=3 + number % 20) for number in range(60)
    ]

    async def request(mine: list[SegmentJob]) -> list[Finished]:
        with engine.submit(mine) as batch:
            return await batch.results()

    async def scenario() -> list[list[Finished]]:
        return await asyncio.gather(*(request(jobs[at : at + 4]) for at in range(0, 60, 4)))

    answers = [finished for part in run(scenario()) for finished in part]
    limits = SessionLimits(max_rows=8, max_slots=1, max_source_length=64, max_target_length=65)
    session = DecodingSession(checkpoint.network, tokens=checkpoint.manifest.tokens, limits=limits)
    for one, answer in zip(jobs, answers, strict=True):
        session.admit([one.request])
        alone = []
        while not session.is_idle:
            alone += session.step()
        [expected], [got] = alone[0].hypotheses, answer.hypotheses
        assert got.score == pytest.approx(expected.score, abs=1e-4)
        assert got.token_ids == expected.token_ids
        assert got.is_truncated == expected.is_truncated
    assert_idle(engine)


def test_answers_come_in_the_order_of_the_jobs_whichever_ends_first(run, engine):
    async def scenario() -> list[Finished]:
        with engine.submit([job(0, max_length=40), job(1, max_length=1)]) as batch:
            return await batch.results()

    answers = run(scenario())
    assert [len(answer.hypotheses[0].token_log_probs) for answer in answers] == [40, 1]


def test_as_many_hypotheses_come_as_were_asked_for(run, engine):
    async def scenario() -> list[Finished]:
        with engine.submit([job(beam_size=4, num_hypotheses=3, max_length=10)]) as batch:
            return await batch.results()

    [answer] = run(scenario())
    scores = [hypothesis.score for hypothesis in answer.hypotheses]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)


def test_no_jobs_are_answered_at_once(run, engine):
    async def scenario() -> list[Finished]:
        with engine.submit([]) as batch:
            assert len(batch) == 0
            return await batch.results()

    assert run(scenario()) == []


def test_more_jobs_than_one_message_carries_are_all_answered(run, engine, monkeypatch):
    monkeypatch.setattr(submission, "_SEGMENTS_PER_SUBMIT", 7)

    async def scenario() -> list[Finished]:
        with engine.submit([job(number % 9, max_length=2) for number in range(50)]) as batch:
            return await batch.results()

    assert len(run(scenario())) == 50


def test_leaving_the_batch_cancels_it_and_the_figures_return_to_zero(run, engine):
    async def scenario() -> None:
        num_cancelled = engine.counters.num_cancelled
        with await long_running(engine) as batch:
            pass
        assert batch.num_pending == 0
        await settled(engine)
        assert_idle(engine)
        assert engine.counters.num_cancelled > num_cancelled

    run(scenario())


def test_a_caller_that_is_cancelled_takes_its_work_with_it(run, engine):
    async def request(has_started: asyncio.Event) -> None:
        with await long_running(engine) as batch:
            has_started.set()
            await batch.results()

    async def scenario() -> None:
        num_cancelled = engine.counters.num_cancelled
        has_started = asyncio.Event()
        caller = asyncio.create_task(request(has_started))
        await has_started.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await settled(engine)
        assert_idle(engine)
        assert engine.counters.num_cancelled > num_cancelled

    run(scenario())


def test_a_cancelled_segment_is_pending_until_the_engine_has_dropped_it(run, engine):
    async def scenario() -> None:
        with stopped(engine):
            engine.submit([job(), job()]).cancel()
            assert engine.num_pending == 2
        await settled(engine)
        assert_idle(engine)

    run(scenario())


def test_cancelling_a_finished_batch_does_nothing(run, engine):
    async def scenario() -> None:
        num_cancelled = engine.counters.num_cancelled
        with engine.submit([job()]) as batch:
            await batch.results()
            batch.cancel()
        batch.cancel()
        await settled(engine)
        assert engine.counters.num_cancelled == num_cancelled

    run(scenario())


def test_a_waiting_caller_hears_that_its_batch_was_cancelled(run, engine):
    async def scenario() -> None:
        batch = engine.submit([job(max_length=60)])
        waiting = asyncio.create_task(batch.results())
        await asyncio.sleep(0)
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await settled(engine)

    run(scenario())


def test_a_segment_that_breaks_the_network_fails_and_the_next_ones_are_served(run, engine, caplog):
    async def scenario() -> None:
        with (
            engine.submit([job(), poison()]) as batch,
            pytest.raises(SegmentFailedError, match="IndexError") as failure,
        ):
            await batch.results()
        assert failure.value.code == "engine_error"
        await settled(engine)
        assert_idle(engine)

    run(scenario())
    assert engine.is_ready
    assert not caplog.records  # nobody is told of an error that its caller has seen


class Heard:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.received: list[SegmentJob] = []
        self.finished: list[tuple[SegmentJob, Finished]] = []
        self.cancelled: list[SegmentJob] = []
        self.failed: list[SegmentJob] = []

    def segment_received(self, job: SegmentJob) -> None:
        self.received.append(job)

    def segment_finished(self, job: SegmentJob, finished: Finished) -> None:
        self.finished.append((job, finished))

    def segment_cancelled(self, job: SegmentJob) -> None:
        self.cancelled.append(job)

    def segment_failed(self, job: SegmentJob) -> None:
        self.failed.append(job)


def test_the_start_is_all_of_it_process_and_imports_included(run, configure):
    async def scenario() -> EngineClient:
        return await EngineClient.start(
            configure, room=SegmentRoom(8), clock=itertools.count(step=100.0).__next__
        )

    client = run(scenario())
    try:
        # Loading and warm-up are measured by the engine's own clock, and are some seconds at most.
        assert client.ready.load_seconds + client.ready.warmup_seconds < 100.0
        assert client.start_seconds == 100.0
    finally:
        run(client.close())


def test_every_segment_is_observed_with_its_last_word(run, engine, monkeypatch):
    heard = Heard()
    monkeypatch.setattr(engine._pending, "_observer", heard)
    good, bad, unwanted = job(max_length=4), poison(), job(max_length=60)

    async def scenario() -> None:
        with engine.submit([good]) as batch:
            await batch.results()
        with engine.submit([bad]) as batch, pytest.raises(SegmentFailedError):
            await batch.results()
        with stopped(engine):  # it hears of both at once
            engine.submit([unwanted]).cancel()
        await settled(engine)

    run(scenario())
    assert heard.received[:3] == [good, bad, unwanted]  # the one after them waited for the rest
    assert [one for one, _ in heard.finished] == [good, *heard.received[3:]]
    assert heard.failed == [bad]
    assert heard.cancelled == [unwanted]


def test_timings_of_every_finished_segment_are_passed_on(run, engine, monkeypatch):
    observer = Heard()
    monkeypatch.setattr(engine._pending, "_observer", observer)

    async def scenario() -> None:
        with engine.submit([job(max_length=4), job(max_length=9)]) as batch:
            await batch.results()

    run(scenario())
    heard = [finished.timings for _, finished in observer.finished]
    assert sorted(timings.num_steps for timings in heard) == [4, 9]
    for timings in heard:
        assert 0 <= timings.queue_seconds <= timings.first_step_seconds
        assert timings.decode_seconds > 0


def asking(*, source_ids: tuple[int, ...], prefix_ids: tuple[int, ...]) -> SegmentJob:
    search = SearchConfig(max_length=9)
    return SegmentJob(
        request=DecodeRequest(source_ids=source_ids, prefix_ids=prefix_ids, search=search)
    )


@pytest.mark.parametrize(
    ("unfit", "complaint"),
    [
        (asking(source_ids=(), prefix_ids=(0,)), "0 source tokens"),
        (asking(source_ids=(1,) * 65, prefix_ids=(0,)), "65 source tokens; from 1 to 64"),
        (job(beam_size=33), "33 beams; from 1 to 32"),
        (job(max_length=65), "65 target tokens; from 1 to 64"),
        (asking(source_ids=(1,), prefix_ids=(0, 7)), "2 prefix tokens; from 1 to 1"),
    ],
)
def test_a_job_that_could_never_run_is_refused_with_its_companions(engine, unfit, complaint):
    with pytest.raises(InputError, match=complaint):
        engine.submit([job(), unfit])
    assert engine.num_pending == 0


def test_more_jobs_than_may_ever_be_pending_are_refused_for_good(engine):
    with pytest.raises(InputError, match="201 segments; the limit is 200"):
        engine.submit([job()] * 201)


def test_a_class_that_has_filled_its_part_of_the_queue_leaves_room_for_the_other(run, configure):
    def jobs(number: int, priority: Priority) -> list[SegmentJob]:
        return [dataclasses.replace(job(max_length=1), priority=priority)] * number

    async def scenario() -> None:
        room = SegmentRoom(40, reserved_share=0.25)
        async with await EngineClient.start(configure, room=room) as engine:
            with stopped(engine):
                bulk = engine.submit(jobs(30, "bulk"), client=1)
                with pytest.raises(QueueFullError) as refusal:
                    engine.submit(jobs(1, "bulk"), client=1)
                assert (refusal.value.value, refusal.value.limit) == (31, 30)
                with pytest.raises(QueueFullError):
                    room.check_open("bulk")
                room.check_open("interactive")
                interactive = engine.submit(jobs(10, "interactive"), client=2)
                with pytest.raises(QueueFullError) as refusal:
                    engine.submit(jobs(1, "interactive"), client=2)
                assert (refusal.value.value, refusal.value.limit) == (41, 40)
            with pytest.raises(InputError, match="31 segments; the limit is 30"):
                engine.submit(jobs(31, "interactive"))
            assert len(await bulk.results()) + len(await interactive.results()) == 40
            room.check_open("bulk")

    run(scenario())


def test_a_full_queue_refuses_all_or_nothing_and_says_when_to_come_back(run, engine, room):
    async def scenario() -> None:
        with stopped(engine):
            first = engine.submit([job(max_length=1)] * 190)
            with pytest.raises(QueueFullError) as refusal:
                engine.submit([job()] * 11)
            assert (refusal.value.value, refusal.value.limit) == (201, 200)
            assert 1.0 <= refusal.value.retry_after_seconds <= 30.0
            assert engine.num_pending == 190
            with pytest.raises(QueueFullError) as refusal:
                room.check_open()  # the rest is for those who are let in already
            assert (refusal.value.value, refusal.value.limit) == (191, 190)
            second = engine.submit([job(max_length=1)] * 10)
        assert len(await first.results()) == 190
        assert len(await second.results()) == 10
        room.check_open()

    run(scenario())
    assert_idle(engine)


class Told:
    """What is told of the segments of a submission."""

    def __init__(self) -> None:
        self.tokens: dict[int, list[int]] = {}
        self.starts: dict[int, list[int]] = {}

    def __call__(self, place: int, start: int, token_ids: tuple[int, ...]) -> None:
        self.starts.setdefault(place, []).append(start)
        self.tokens.setdefault(place, [])[start:] = token_ids


def test_of_watched_segments_each_request_is_told_the_tokens_of_its_own(run, engine):
    async def request(numbers: range) -> None:
        told = Told()
        jobs = [job(number, beam_size=1, max_length=12) for number in numbers]
        with engine.submit(jobs, on_written=told) as batch:
            answers = await batch.results()
        assert told.tokens == {
            place: list(answer.hypotheses[0].token_ids) for place, answer in enumerate(answers)
        }
        assert {tuple(starts) for starts in told.starts.values()} == {
            tuple(range(len(tokens))) for tokens in told.tokens.values()
        }

    async def unwatched() -> list[Finished]:
        with engine.submit([job(number, beam_size=1) for number in range(9)]) as batch:
            return await batch.results()

    async def scenario() -> None:
        requests = (request(range(at, at + 7)) for at in (0, 7, 14))
        await asyncio.gather(*requests, unwatched())

    run(scenario())
    assert_idle(engine)


def test_a_batch_that_was_left_tells_nothing_of_segments_that_were_finished_before(run):
    async def scenario() -> None:
        told = Told()
        watch = Watch(told)
        (on_tokens,) = watch.of_segments([7]).values()
        answer = asyncio.get_running_loop().create_future()
        answer.set_result(None)
        with SegmentBatch({7: answer}, cancel=lambda _: None, watch=watch):
            on_tokens(0, (5,))
        on_tokens(1, (6,))  # it had come with the answer, and its turn is only now
        assert told.tokens == {0: [5]}

    run(scenario())
    assert Watch(None).of_segments([7]) == {}


def test_leaving_a_watched_batch_ends_what_is_told(run, engine):
    async def scenario() -> None:
        told = Told()
        jobs = [job(number, beam_size=1, max_length=60) for number in range(60)]
        with engine.submit(jobs, on_written=told):
            while not told.tokens:  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0)
        num_told = sum(map(len, told.starts.values()))
        await settled(engine)
        assert sum(map(len, told.starts.values())) == num_told

    run(scenario())
    assert_idle(engine)
