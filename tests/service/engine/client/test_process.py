import asyncio
import os
import signal

import msgspec
import pytest

from service.engine.client import process
from service.engine.client.process import EngineLink, engine_environment, start_engine
from service.engine.errors import EngineStartError

START = process._start_process


@pytest.fixture(autouse=True)
def real_start(monkeypatch):
    monkeypatch.setattr(process, "_start_process", START)


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def test_openmp_is_told_to_sleep_and_nothing_else_changes():
    environment = engine_environment({"PATH": "/bin", "OMP_NUM_THREADS": "9"}, num_threads=2)
    assert environment["OMP_NUM_THREADS"] == "2"
    assert environment["OMP_WAIT_POLICY"] == "passive"
    assert environment["GOMP_SPINCOUNT"] == "0"
    assert environment["PATH"] == "/bin"


def test_a_checkpoint_that_cannot_be_loaded_is_named_and_no_process_is_left(
    run, configure, tmp_path, monkeypatch
):
    missing = tmp_path / "no-such-checkpoint"
    spawned = watch_spawns(monkeypatch)
    with pytest.raises(EngineStartError, match="no-such-checkpoint: no such"):
        run(
            start_engine(
                msgspec.structs.replace(configure, checkpoint_paths=(str(missing),)),
                timeout_seconds=60,
            )
        )
    [link] = spawned
    assert link.exit_status is not None
    assert not is_running(link.process_id)


def test_an_engine_that_is_not_ready_in_time_is_ended(run, configure, monkeypatch):
    spawned = watch_spawns(monkeypatch)
    with pytest.raises(EngineStartError, match=r"not ready after 0\.01 seconds"):
        run(start_engine(configure, timeout_seconds=0.01))
    [link] = spawned
    assert link.exit_status == -signal.SIGKILL


def test_an_engine_that_dies_before_it_is_ready_is_reported_with_its_status(
    run, configure, monkeypatch
):
    spawned = watch_spawns(monkeypatch, then=EngineLink.kill)
    with pytest.raises(EngineStartError, match="left with status -9 before it was ready"):
        run(start_engine(configure, timeout_seconds=60))
    assert len(spawned) == 1


def test_a_start_that_is_cancelled_leaves_no_process(run, configure, monkeypatch):
    async def scenario() -> list[EngineLink]:
        is_spawned = asyncio.Event()
        spawned = watch_spawns(monkeypatch, then=lambda _: is_spawned.set())
        starting = asyncio.create_task(start_engine(configure, timeout_seconds=60))
        await is_spawned.wait()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        return spawned

    spawned = run(scenario())
    assert spawned[0].exit_status == -signal.SIGKILL


def test_an_interpreter_that_cannot_be_started_is_a_start_error(run, configure, monkeypatch):
    monkeypatch.setattr("sys.executable", "/no/such/python")
    with pytest.raises(EngineStartError, match="cannot be started"):
        run(start_engine(configure, timeout_seconds=60))


def watch_spawns(monkeypatch, *, then=None) -> list[EngineLink]:
    """Collects the links that are spawned; the real thing runs."""
    spawned: list[EngineLink] = []
    spawn = EngineLink.spawn

    async def watched(*, num_threads: int, visible_device: str | None) -> EngineLink:
        link = await spawn(num_threads=num_threads, visible_device=visible_device)
        spawned.append(link)
        if then is not None:
            then(link)
        return link

    monkeypatch.setattr(EngineLink, "spawn", watched)
    return spawned
