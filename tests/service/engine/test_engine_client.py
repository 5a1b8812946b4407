import asyncio
import contextlib
import logging
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest
import uvloop

from model.config import SearchConfig
from model.decode.session import DecodeRequest, DecodingSession, SessionLimits
from model.errors import InputError
from service.engine import batch as batch_file
from service.engine import client as client_file
from service.engine.batch import SegmentBatch, SegmentJob
from service.engine.client import EngineClient, default_num_threads
from service.engine.errors import EngineUnavailableError, QueueFullError, SegmentFailedError
from service.engine.messages import Finished, SegmentTimings

OUT_OF_VOCABULARY = 1_000_000


def job(
    number: int = 0, *, beam_size: int = 2, max_length: int = 6, num_hypotheses: int = 1
) -> SegmentJob:
    return SegmentJob(
        source_ids=(*range(10 + number, 14 + number + number % 9), 1),
        prefix_ids=(0,),
        search=SearchConfig(
            beam_size=beam_size, max_length=max_length, num_hypotheses=num_hypotheses
        ),
    )


def poison() -> SegmentJob:
    return SegmentJob(
        source_ids=(OUT_OF_VOCABULARY, 1), prefix_ids=(0,), search=SearchConfig(max_length=5)
    )


async def settled(engine: EngineClient) -> None:
    """Everything sent so far has been dealt with: a later segment has had its answer."""
    with engine.submit([job(max_length=1)]) as batch:
        await batch.results()


async def long_running(engine: EngineClient) -> SegmentBatch:
    """A batch of which a part is being decoded and a part waits, for some seconds to come."""
    first = engine.submit([job(max_length=1)])
    batch = engine.submit([job(number, max_length=60) for number in range(190)])
    await first.results()
    assert batch.num_pending > 0
    return batch


def assert_idle(engine: EngineClient) -> None:
    snapshot = engine.snapshot
    assert engine.num_pending == 0
    assert (snapshot.num_waiting, snapshot.num_running) == (0, 0)
    assert (snapshot.num_rows, snapshot.num_slots) == (0, 0)
    answered = snapshot.num_finished + snapshot.num_cancelled + snapshot.num_failed
    assert snapshot.num_received == answered


@contextlib.contextmanager
def stopped(engine: EngineClient) -> Iterator[None]:
    """The engine holds still, so that what is pending stays pending."""
    os.kill(engine.process_id, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(engine.process_id, signal.SIGCONT)


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
        session.admit(
            [DecodeRequest(source_ids=one.source_ids, prefix_ids=one.prefix_ids, search=one.search)]
        )
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
    monkeypatch.setattr(batch_file, "_SEGMENTS_PER_SUBMIT", 7)

    async def scenario() -> list[Finished]:
        with engine.submit([job(number % 9, max_length=2) for number in range(50)]) as batch:
            return await batch.results()

    assert len(run(scenario())) == 50


def test_leaving_the_batch_cancels_it_and_the_figures_return_to_zero(run, engine):
    async def scenario() -> None:
        num_cancelled = engine.snapshot.num_cancelled
        with await long_running(engine) as batch:
            pass
        assert batch.num_pending == 0
        await settled(engine)
        assert_idle(engine)
        assert engine.snapshot.num_cancelled > num_cancelled

    run(scenario())


def test_a_caller_that_is_cancelled_takes_its_work_with_it(run, engine):
    async def request(has_started: asyncio.Event) -> None:
        with await long_running(engine) as batch:
            has_started.set()
            await batch.results()

    async def scenario() -> None:
        num_cancelled = engine.snapshot.num_cancelled
        has_started = asyncio.Event()
        caller = asyncio.create_task(request(has_started))
        await has_started.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await settled(engine)
        assert_idle(engine)
        assert engine.snapshot.num_cancelled > num_cancelled

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
        num_cancelled = engine.snapshot.num_cancelled
        with engine.submit([job()]) as batch:
            await batch.results()
            batch.cancel()
        batch.cancel()
        await settled(engine)
        assert engine.snapshot.num_cancelled == num_cancelled

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


def test_timings_of_every_finished_segment_are_passed_on(run, engine, monkeypatch):
    heard: list[SegmentTimings] = []
    monkeypatch.setattr(engine, "_on_finished", heard.append)

    async def scenario() -> None:
        with engine.submit([job(max_length=4), job(max_length=9)]) as batch:
            await batch.results()

    run(scenario())
    assert sorted(timings.num_steps for timings in heard) == [4, 9]
    for timings in heard:
        assert 0 <= timings.queue_seconds <= timings.first_step_seconds
        assert timings.decode_seconds > 0


@pytest.mark.parametrize(
    ("unfit", "complaint"),
    [
        (SegmentJob(source_ids=(), prefix_ids=(0,), search=SearchConfig()), "0 source tokens"),
        (
            SegmentJob(source_ids=(1,) * 65, prefix_ids=(0,), search=SearchConfig(max_length=9)),
            "65 source tokens; from 1 to 64",
        ),
        (job(beam_size=33), "33 beams; from 1 to 32"),
        (job(max_length=65), "65 target tokens; from 1 to 64"),
        (
            SegmentJob(source_ids=(1,), prefix_ids=(0, 7), search=SearchConfig(max_length=9)),
            "2 prefix tokens; from 1 to 1",
        ),
    ],
)
def test_a_job_that_could_never_run_is_refused_with_its_companions(engine, unfit, complaint):
    with pytest.raises(InputError, match=complaint):
        engine.submit([job(), unfit])
    assert engine.num_pending == 0


def test_more_jobs_than_may_ever_be_pending_are_refused_for_good(engine):
    with pytest.raises(InputError, match="201 segments; the limit is 200"):
        engine.submit([job()] * 201)


def test_a_full_queue_refuses_all_or_nothing_and_says_when_to_come_back(run, engine):
    async def scenario() -> None:
        with stopped(engine):
            first = engine.submit([job(max_length=1)] * 190)
            with pytest.raises(QueueFullError) as refusal:
                engine.submit([job()] * 11)
            assert (refusal.value.value, refusal.value.limit) == (201, 200)
            assert 1.0 <= refusal.value.retry_after_seconds <= 30.0
            assert engine.num_pending == 190
            second = engine.submit([job(max_length=1)] * 10)
        assert len(await first.results()) == 190
        assert len(await second.results()) == 10

    run(scenario())
    assert_idle(engine)


def test_an_engine_that_is_killed_fails_what_is_pending_at_once(run, own_engine, caplog):
    engine = own_engine

    async def scenario() -> None:
        await settled(engine)
        os.kill(engine.process_id, signal.SIGSTOP)  # so that nothing is answered before the end
        batches = [engine.submit([job(max_length=60)] * 2) for _ in range(3)]
        waiting = [asyncio.create_task(batch.results()) for batch in batches]
        await asyncio.sleep(0)
        os.kill(engine.process_id, signal.SIGKILL)
        for outcome in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(outcome, EngineUnavailableError)
        await engine.wait_lost()
        assert not engine.is_alive
        assert not engine.is_ready
        assert engine.num_pending == 0
        with pytest.raises(EngineUnavailableError, match="gone"):
            engine.submit([job()])
        batches[0].cancel()
        assert await engine.drain(timeout_seconds=1)
        await engine.close()

    run(scenario())
    assert engine.loss_reason == "exit"
    [record] = [record for record in caplog.records if record.name.startswith("service")]
    assert (record.getMessage(), record.levelno) == ("engine_lost", logging.ERROR)
    assert record.fields == {"reason": "exit", "num_pending": 6}


async def knock(engine: EngineClient, batches: list[SegmentBatch]) -> None:
    """Submit and cancel in every turn of the event loop, until that is refused."""
    while True:
        batches.append(engine.submit([job()]))
        engine.submit([job()]).cancel()
        await asyncio.sleep(0)


def test_whatever_the_moment_an_engine_that_dies_is_unavailable_and_nothing_else(configure):
    async def scenario() -> None:
        async with await EngineClient.start(configure, max_pending_segments=10_000) as engine:
            await settled(engine)
            process = os.pidfd_open(engine.process_id)
            os.kill(engine.process_id, signal.SIGKILL)
            select.select([process], [], [])  # it is gone for sure
            os.close(process)
            batches: list[SegmentBatch] = []
            with pytest.raises(EngineUnavailableError):
                await knock(engine, batches)
            for batch in batches:
                with pytest.raises(EngineUnavailableError):
                    await batch.results()
            assert engine.num_pending == 0

    for loop_factory in (uvloop.new_event_loop, asyncio.new_event_loop):
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(scenario())


@pytest.mark.parametrize("num_jobs", [0, 4])
def test_an_engine_that_holds_still_is_given_up_and_killed(configure, num_jobs):
    async def scenario() -> int:
        client = await EngineClient.start(configure, max_pending_segments=8, hang_seconds=1.0)
        async with client as engine:
            await settled(engine)
            os.kill(engine.process_id, signal.SIGSTOP)
            batch = engine.submit([job(max_length=60)] * num_jobs)
            await engine.wait_lost()
            assert engine.loss_reason == "hang"
            if num_jobs:
                with pytest.raises(EngineUnavailableError, match="gone"):
                    await batch.results()
        return engine.process_id

    with asyncio.Runner() as runner:
        process_id = runner.run(scenario())
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


def test_an_idle_engine_is_not_given_up(configure):
    often = msgspec.structs.replace(configure, heartbeat_seconds=0.1)

    async def scenario() -> None:
        client = await EngineClient.start(often, max_pending_segments=8, hang_seconds=1.0)
        async with client as engine:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2.0):
                    await engine.wait_lost()

    with asyncio.Runner() as runner:
        runner.run(scenario())


def test_an_engine_that_talks_nonsense_is_given_up(run, own_engine, caplog):
    async def scenario() -> None:
        batch = own_engine.submit([job(max_length=60)])
        own_engine._link._frames.feed(b"\x00\x00\x00\x01")  # the next byte makes a bad frame
        with pytest.raises(EngineUnavailableError):
            await batch.results()

    run(scenario())
    assert own_engine.loss_reason == "protocol"


def test_ctrl_c_is_the_fronts_alone(run, engine):
    assert os.getsid(engine.process_id) == engine.process_id
    os.kill(engine.process_id, signal.SIGINT)
    run(settled(engine))
    assert engine.is_alive


def test_draining_refuses_newcomers_lets_the_accepted_finish_and_closes_quietly(configure, caplog):
    caplog.set_level(logging.INFO)

    async def scenario() -> int:
        async with await EngineClient.start(configure, max_pending_segments=8) as engine:
            with engine.submit([job(number, max_length=20) for number in range(8)]) as batch:
                with stopped(engine):
                    assert not await engine.drain(timeout_seconds=0.01)
                assert engine.is_draining
                assert engine.is_alive
                with pytest.raises(EngineUnavailableError, match="draining"):
                    engine.submit([job()])
                assert await engine.drain(timeout_seconds=60)
                assert_idle(engine)
                assert len(await batch.results()) == 8
        return engine.process_id

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # what the server runs on
        process_id = runner.run(scenario())
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
    [record] = [record for record in caplog.records if record.name.startswith("service")]
    assert (record.getMessage(), record.levelno) == ("engine_left", logging.INFO)
    assert record.fields == {"reason": "closed", "exit_status": 0}


def test_closing_fails_what_is_pending_and_ends_an_engine_that_does_not_answer(
    run, own_engine, monkeypatch
):
    monkeypatch.setattr(client_file, "_TERMINATE_SECONDS", 0.05)
    engine = own_engine

    async def scenario() -> None:
        batch = engine.submit([job(max_length=60)] * 8)
        await asyncio.sleep(0)
        os.kill(engine.process_id, signal.SIGSTOP)  # deaf to Shutdown and to SIGTERM
        await engine.close(grace_seconds=0.05)
        with pytest.raises(EngineUnavailableError, match="closed"):
            await batch.results()
        assert not engine.is_alive
        with pytest.raises(EngineUnavailableError):
            engine.submit([job()])
        await engine.close()

    run(scenario())
    with pytest.raises(ProcessLookupError):
        os.kill(engine.process_id, 0)


FRONT = """
import asyncio, sys
from service.engine.client import EngineClient
from service.engine.messages import Configure

async def main():
    configure = Configure(checkpoint_paths=(sys.argv[1],), num_threads=1, device="cpu")
    engine = await EngineClient.start(configure, max_pending_segments=8)
    assert "torch" not in sys.modules
    print(engine.process_id, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_front_that_is_killed_leaves_no_orphan_and_never_imported_torch(checkpoint_path):
    with subprocess.Popen(
        [sys.executable, "-c", FRONT, str(checkpoint_path)], stdout=subprocess.PIPE, text=True
    ) as front:
        try:
            engine = os.pidfd_open(int(front.stdout.readline()))
        finally:
            front.kill()
    try:
        has_left, _, _ = select.select([engine], [], [], 30)
        assert has_left
    finally:
        os.close(engine)


def test_the_engine_gets_all_cores_but_one(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert default_num_threads() == 7
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert default_num_threads() == 1
