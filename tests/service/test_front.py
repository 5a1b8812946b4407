"""Reloads, asked of a front with real engines by whoever is allowed to."""

import asyncio
import os
import shutil
import signal
import threading
from pathlib import Path

import httpx
import pytest

from service.errors import RequestError
from service.phase import Phase
from support.damaged_checkpoints import WEIGHTS_FILE, set_scales
from support.served_front import QUERY, Served
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint


def test_a_reload_answers_with_what_is_served_and_only_one_runs_at_a_time(tmp_path: Path) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))

    async def scenario() -> None:
        served = Served(checkpoint)
        async with served.client() as client:
            before = await served.translate(client)
            write_tiny_checkpoint(checkpoint, name="newer", pairs=(EN_ZH,), seed=6)
            replies = await asyncio.gather(*[client.post("/open/admin/reload") for _ in range(3)])
            assert sorted(reply.status_code for reply in replies) == [200, 409, 409]
            for reply in replies:
                if reply.status_code == 200:
                    assert reply.json() == {"checkpoints": ["newer"], "faulty": []}
                else:
                    assert reply.json()["code"] == "reload_running"
            assert await served.translate(client) != before

    asyncio.run(scenario())


def _num_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _damages(checkpoint: Path) -> list[Path]:
    """Copies of a checkpoint, each with one file gone, cut or changed."""
    copies = []
    for file in sorted(checkpoint.iterdir()):
        for damage in ("gone", "empty", "cut", "changed"):
            copy = checkpoint.parent / f"{damage}-{file.name}"
            shutil.copytree(checkpoint, copy)
            data = bytearray(file.read_bytes())
            if damage == "gone":
                (copy / file.name).unlink()
                copies.append(copy)
                continue
            if damage == "changed":
                data[len(data) // 2] ^= 1
            size = {"empty": 0, "cut": len(data) // 2 - 1, "changed": len(data)}[damage]
            (copy / file.name).write_bytes(data[:size])
            copies.append(copy)
    return copies


def test_every_damage_is_refused_while_the_old_checkpoint_serves_on(tmp_path: Path) -> None:
    original = write_tiny_checkpoint(tmp_path / "original", pairs=(EN_ZH,))
    link = tmp_path / "served"
    link.symlink_to(original)

    async def scenario() -> None:
        served = Served(link)
        async with served.client() as client:
            before = await served.translate(client)
            num_tasks = len(asyncio.all_tasks())
            num_files = _num_files()
            for damaged in _damages(original):
                link.unlink()
                link.symlink_to(damaged)
                reply = await client.post("/open/admin/reload")
                assert (reply.status_code, reply.json()["code"]) == (409, "reload_failed"), damaged
                assert served.front.phase is Phase.READY
                assert await served.translate(client) == before
            assert len(asyncio.all_tasks()) == num_tasks
            assert _num_files() == num_files

    asyncio.run(scenario())


def test_weights_that_overflow_are_refused_while_the_old_checkpoint_serves_on(
    tmp_path: Path,
) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,), quantise=True)

    async def scenario() -> None:
        served = Served(checkpoint)
        async with served.client() as client:
            before = await served.translate(client)
            for scale in (1e36, 3e38):
                set_scales(checkpoint, scale)
                reply = await client.post("/open/admin/reload")
                assert (reply.status_code, reply.json()["code"]) == (409, "reload_failed")
                assert str(checkpoint / WEIGHTS_FILE) in reply.json()["error"]
                assert (await client.get("/readyz")).status_code == 200
                assert await served.translate(client) == before

    asyncio.run(scenario())


def test_a_full_queue_refuses_before_the_text_is_touched(tmp_path: Path) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))

    async def scenario() -> None:
        served = Served(checkpoint, max_pending_segments=1)
        async with served.client() as client:
            engine = served.front._served.supervisor.process_id
            assert engine is not None
            os.kill(engine, signal.SIGSTOP)
            first = asyncio.create_task(served.translate(client))
            while not served.front._served.supervisor.num_pending:  # noqa: ASYNC110  # no event
                await asyncio.sleep(0.01)
            is_free = threading.Event()
            served.front.text_thread.submit(is_free.wait)
            refused = await client.post("/translate", json=QUERY)
            is_free.set()
            os.kill(engine, signal.SIGCONT)
            assert (refused.status_code, refused.json()["limit"]) == (429, 1)
            assert int(refused.headers["retry-after"]) >= 1
            assert await first == await served.translate(client)

    asyncio.run(scenario())


def test_as_many_requests_as_the_limit_are_in_work_and_one_that_ends_makes_room(
    tmp_path: Path,
) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))

    async def scenario() -> None:
        served = Served(checkpoint, max_requests=2)
        async with served.client() as client:
            front = served.front
            with front.translator(EN_ZH, "interactive"):
                front.check_room()
                with front.translator(EN_ZH, "interactive"):
                    for refused in (
                        front.check_room,
                        front.translator(EN_ZH, "interactive").__enter__,
                    ):
                        with pytest.raises(
                            RequestError, match=r"2 requests .* limit is 2"
                        ) as caught:
                            refused()
                        problem = caught.value.problem
                        assert (problem.status, problem.value, problem.limit) == (429, 2, 2)
                    reply = await client.post("/translate", json=QUERY)
                    assert (reply.status_code, reply.json()["limit"]) == (429, 2)
                assert await served.translate(client)
            with front.translator(EN_ZH, "interactive"), front.translator(EN_ZH, "interactive"):
                assert (await client.post("/translate", json=QUERY)).status_code == 429
            assert await served.translate(client)

    asyncio.run(scenario())


def test_there_is_nothing_to_reload_before_the_start_and_while_draining(tmp_path: Path) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))

    async def scenario() -> None:
        served = Served(checkpoint)
        transport = httpx.ASGITransport(app=served.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            reply = await client.post("/open/admin/reload")
            assert (reply.status_code, reply.json()["code"]) == (503, "booting")
        async with served.client() as client:
            reloading = asyncio.create_task(client.post("/open/admin/reload"))
            while not served.front._rollout.is_opening:  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0)
            assert await served.front.drain()
            reply = await reloading
            assert (reply.status_code, reply.json()["code"]) == (503, "draining")
            reply = await client.post("/open/admin/reload")
            assert (reply.status_code, reply.json()["code"]) == (503, "draining")

    asyncio.run(scenario())
