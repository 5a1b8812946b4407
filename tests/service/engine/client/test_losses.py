"""The front's side of engines that die, hang, talk nonsense, drain and leave."""

import asyncio
import logging
import os
import select
import signal
import subprocess
import sys

import msgspec
import pytest
import uvloop

from model.system.cores import usable_cores
from service.cores import engine_threads
from service.engine.client.client import EngineClient
from service.engine.client.segment_room import SegmentRoom
from service.engine.client.submission import SegmentBatch
from service.engine.errors import EngineClosedError, EngineUnavailableError
from support.engine_jobs import (
    assert_idle,
    job,
    settled,
)


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
        async with await EngineClient.start(configure, room=SegmentRoom(10_000)) as engine:
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
        client = await EngineClient.start(configure, room=SegmentRoom(8), hang_seconds=1.0)
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
        client = await EngineClient.start(often, room=SegmentRoom(8), hang_seconds=1.0)
        async with client as engine:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2.0):
                    await engine.wait_lost()

    with asyncio.Runner() as runner:
        runner.run(scenario())


def test_an_engine_that_talks_nonsense_is_given_up(run, own_engine, caplog):
    async def scenario() -> None:
        batch = own_engine.submit([job(max_length=60)])
        own_engine._link._stream._frames.feed(
            b"\x00\x00\x00\x01"
        )  # the next byte makes a bad frame
        with pytest.raises(EngineUnavailableError):
            await batch.results()

    run(scenario())
    assert own_engine.loss_reason == "protocol"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_what_is_sent_to_a_whole_group_is_the_fronts_alone(run, engine, number):
    assert os.getsid(engine.process_id) == engine.process_id
    os.kill(engine.process_id, number)
    run(settled(engine))
    assert engine.is_alive


def test_an_engine_that_is_closed_when_all_is_answered_refuses_newcomers_and_leaves_quietly(
    configure, caplog
):
    caplog.set_level(logging.INFO)

    async def scenario() -> int:
        async with await EngineClient.start(configure, room=SegmentRoom(8)) as engine:
            with engine.submit([job(number, max_length=20) for number in range(8)]) as batch:
                assert len(await batch.results()) == 8
            await settled(engine)
            assert_idle(engine)
            await engine.close()
            assert not engine.is_ready
            with pytest.raises(EngineClosedError):
                engine.submit([job()])
        return engine.process_id

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # what the server runs on
        process_id = runner.run(scenario())
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
    [record] = [record for record in caplog.records if record.name.startswith("service")]
    assert (record.getMessage(), record.levelno) == ("engine_left", logging.INFO)
    assert record.fields == {"reason": "closed", "exit_status": 0}


def test_closing_fails_what_is_pending_and_ends_an_engine_that_does_not_answer(run, own_engine):
    engine = own_engine

    async def scenario() -> None:
        os.kill(engine.process_id, signal.SIGSTOP)  # deaf to Shutdown
        batch = engine.submit([job(max_length=60)] * 8)
        await asyncio.sleep(0)
        await engine.close(grace_seconds=0.05)
        with pytest.raises(EngineClosedError):
            await batch.results()
        assert not engine.is_alive
        with pytest.raises(EngineClosedError):
            engine.submit([job()])
        await engine.close()

    run(scenario())
    with pytest.raises(ProcessLookupError):
        os.kill(engine.process_id, 0)


FRONT = """
import asyncio, sys
from service.engine.client.client import EngineClient
from service.engine.client.segment_room import SegmentRoom
from service.engine.messages import Configure

async def main():
    configure = Configure(checkpoint_paths=(sys.argv[1],), num_threads=1, device="cpu")
    engine = await EngineClient.start(configure, room=SegmentRoom(8))
    assert "torch" not in sys.modules
    print(engine.process_id, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("stopped", ["nobody", "front", "engine"])
def test_a_front_that_is_killed_leaves_no_orphan_and_never_imported_torch(checkpoint_path, stopped):
    with subprocess.Popen(
        [sys.executable, "-c", FRONT, str(checkpoint_path)], stdout=subprocess.PIPE, text=True
    ) as front:
        try:
            engine_id = int(front.stdout.readline())
            engine = os.pidfd_open(engine_id)
            if stopped != "nobody":
                os.kill({"front": front.pid, "engine": engine_id}[stopped], signal.SIGSTOP)
        finally:
            front.kill()
    try:
        has_left, _, _ = select.select([engine], [], [], 30)
        assert has_left
    finally:
        signal.pidfd_send_signal(engine, signal.SIGKILL) if not has_left else None
        os.close(engine)


def test_the_engine_gets_all_cores_but_one(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert engine_threads(usable_cores(tmp_path)) == 7
    assert engine_threads(usable_cores(tmp_path), num_fronts=2) == 5, (
        "a core for each front and their owner"
    )
    assert engine_threads(usable_cores(tmp_path), num_fronts=9) == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert engine_threads(usable_cores(tmp_path)) == 1
