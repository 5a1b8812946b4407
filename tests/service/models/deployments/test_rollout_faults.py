"""One faulty checkpoint among several: at the start, at a reload, and when the engine is lost."""

import asyncio
import logging
import os
from pathlib import Path

import httpx
import pytest

from model.native import kernels
from service.engine.messages import LoadedCheckpoint
from service.models.deployments.registry import Routes
from service.phase import Phase
from support.served_front import BACK, QUERY, Served
from support.tiny_checkpoint import EN_ZH, ZH_EN, write_tiny_checkpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two checkpoints, one each way."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    _write(folder, seed=5)
    return folder


def _write(folder: Path, *, seed: int) -> None:
    write_tiny_checkpoint(folder / "a", name="there", pairs=(EN_ZH,), seed=seed)
    write_tiny_checkpoint(folder / "b", name="back", pairs=(ZH_EN,), seed=seed + 10)


def _damage(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


async def _status(client: httpx.AsyncClient, query: dict[str, str]) -> int:
    return (await client.post("/translate", json=query)).status_code


@pytest.mark.parametrize(
    "file", ["model.safetensors", "config.json"], ids=["found by the engine", "found by the front"]
)
def test_a_faulty_checkpoint_stops_no_other_at_the_start_and_is_told(
    folder: Path, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    _damage(folder / "b" / file)

    async def scenario() -> None:
        served = Served(folder)
        async with served.client() as client:
            assert await _status(client, QUERY) == 200
            assert await _status(client, BACK) == 400
            health = (await client.get("/v1/health")).json()
            assert [one["name"] for one in health["checkpoints"]] == ["there"]
            [fault] = health["faulty"]
            assert (fault["directory"], fault["is_served"]) == ("b", False)
            assert fault["reason"].startswith(f"b/{file}: ")
            assert str(folder) not in fault["reason"]
            assert served.sample("checkpoint_loaded", directory="a") == 1
            assert served.sample("checkpoint_loaded", directory="b") == 0
            assert served.sample("reload_successful", kind="checkpoints") == 0
            assert served.sample("ready_timestamp_seconds") > 0

    asyncio.run(scenario())
    [record] = [one for one in caplog.records if one.getMessage() == "checkpoint_refused"]
    assert (record.levelno, record.__dict__["fields"]["directory"]) == (logging.ERROR, "b")


def test_a_reload_takes_the_good_ones_and_keeps_of_the_faulty_what_is_in_memory(
    folder: Path,
) -> None:
    link = folder.with_name("served")
    link.symlink_to(folder)
    other = folder.with_name("other")

    async def scenario() -> None:
        served = Served(link)
        async with served.client() as client:
            before = [await served.translate(client, query) for query in (QUERY, BACK)]
            other.mkdir()
            _write(other, seed=6)
            _damage(other / "b" / "model.safetensors")
            link.unlink()
            link.symlink_to(other)
            reply = (await client.post("/open/admin/reload")).json()
            assert sorted(reply["checkpoints"]) == ["back", "there"]
            [fault] = reply["faulty"]
            assert (fault["directory"], fault["is_served"]) == ("b", True)
            after = [await served.translate(client, query) for query in (QUERY, BACK)]
            assert after[0] != before[0]
            assert after[1] == before[1]
            counts = {
                one: served.sample("reloads_total", kind="checkpoints", result=one)
                for one in ("success", "partial", "failure")
            }
            assert counts == {"success": 0, "partial": 1, "failure": 0}
            # Faulty again: what is in memory stays there, and the engine between them goes.
            await client.post("/open/admin/reload")
            assert await served.translate(client, BACK) == before[1]
            # Mended: nothing of the first load is left.
            write_tiny_checkpoint(other / "b", name="back", pairs=(ZH_EN,), seed=16)
            reply = (await client.post("/open/admin/reload")).json()
            assert (reply["checkpoints"], reply["faulty"]) == (["there", "back"], [])
            last = [await served.translate(client, query) for query in (QUERY, BACK)]
            assert last[0] == after[0]
            assert last[1] != before[1]
            assert served.sample("reload_successful", kind="checkpoints") == 1
            await asyncio.gather(*served.front._rollout._retiring.values())
            assert len(served.front._rollout.deployments) == 1

    asyncio.run(scenario())


def test_an_engine_that_does_not_find_its_files_again_is_replaced_by_one_for_the_others(
    folder: Path,
) -> None:
    """As after a reload that failed: what is on the disk is not what was loaded."""

    async def scenario() -> None:
        served = Served(folder)
        async with served.client() as client:
            before = await served.translate(client)
            _write(folder, seed=6)
            _damage(folder / "b" / "config.json")
            await served.lose_engine()
            assert served.front.phase is Phase.READY
            assert await served.translate(client) != before
            assert await _status(client, BACK) == 400
            [fault] = (await client.get("/v1/health")).json()["faulty"]
            assert (fault["directory"], fault["is_served"]) == ("b", False)
            assert (await client.get("/livez")).status_code == 200

    asyncio.run(scenario())


def test_a_last_good_version_whose_engine_is_given_up_is_not_served_any_more(
    folder: Path,
) -> None:
    async def scenario() -> None:
        served = Served(folder, max_restarts=0)
        async with served.client() as client:
            _damage(folder / "b" / "config.json")
            old = served.front._served
            assert (await client.post("/open/admin/reload")).status_code == 200
            assert await _status(client, BACK) == 200
            old.pool.replicas[0].supervisor.engine._link.kill()
            while old in served.front.deployments:  # noqa: ASYNC110  # there is no event
                await asyncio.sleep(0.01)
            assert (await _status(client, BACK), await _status(client, QUERY)) == (400, 200)
            [fault] = (await client.get("/v1/health")).json()["faulty"]
            assert (fault["directory"], fault["is_served"]) == ("b", False)

    asyncio.run(scenario())


def test_an_engine_whose_files_are_all_faulty_is_given_up(folder: Path) -> None:
    async def scenario() -> None:
        served = Served(folder, max_restarts=1)
        async with served.client() as client:
            for name in ("a", "b"):
                _damage(folder / name / "model.safetensors")
                _damage(folder / name / "checksums.sha256")
            await served.lose_engine()
            assert served.front.phase is Phase.LOST
            assert (await client.get("/livez")).status_code == 503
            assert served.sample("reloads_total", kind="checkpoints", result="failure") == 1

    asyncio.run(scenario())


def test_the_engine_is_down_and_was_never_ready_from_the_first_scrape_on(folder: Path) -> None:
    served = Served(folder)
    assert served.sample("engine_up") == 0
    assert served.sample("ready_timestamp_seconds") == 0
    assert served.sample("pending_segments") == 0
    assert served.sample("running_segments") == 0


def test_the_arithmetic_and_its_reason_are_told_in_health_log_and_metrics(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        served = Served(folder, compute_type="float32")
        async with served.client() as client:
            health = (await client.get("/v1/health")).json()
            assert health["checkpoints"][0] == {
                "name": "there",
                "compute_type": "float32",
                "compute_reason": "asked_for",
                "compute_problem": "",
            }
            labels = {"compute_type": "float32", "compute_reason": "asked_for"}
            assert served.sample("info", checkpoint="back", **labels) == 1
            assert served.sample("slow_compute_type", checkpoint="back", **labels) == 0

    asyncio.run(scenario())
    told = [one for one in caplog.records if one.getMessage() == "checkpoint_served"]
    assert [one.__dict__["fields"]["checkpoint"] for one in told] == ["there", "back"]
    assert told[0].__dict__["fields"]["compute_reason"] == "asked_for"


@pytest.mark.skipif(kernels.find_problem() is not None, reason="no kernels here")
def test_the_instruction_set_that_the_engine_chose_is_in_the_log_and_in_the_metrics(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chosen = kernels.chosen(os.environ)
    assert chosen

    async def scenario() -> None:
        served = Served(folder, compute_type="int8")
        async with served.client():
            labels = {"compute_type": "int8", "instruction_set": chosen}
            assert served.sample("info", checkpoint="there", **labels) == 1

    caplog.set_level(logging.INFO)
    asyncio.run(scenario())
    told = [one for one in caplog.records if one.getMessage() == "checkpoint_served"]
    assert [one.__dict__["fields"]["instruction_set"] for one in told] == [chosen] * 2


def test_an_arithmetic_that_stands_in_is_a_warning_with_what_stands_in_the_way(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = LoadedCheckpoint(
        name="there",
        compute_type="float32",
        compute_reason="processor",
        compute_problem="the processor has no avx2",
        max_source_length=64,
        max_target_length=64,
        max_prefix_length=1,
    )

    async def scenario() -> None:
        served = Served(folder)
        async with served.client() as client:
            monkeypatch.setattr(Routes, "loaded", [slow])
            served.front._rollout._report()
            [told] = (await client.get("/v1/health")).json()["checkpoints"]
            assert told["compute_problem"] == slow.compute_problem
            labels = {"compute_type": "float32", "compute_reason": "processor"}
            assert served.sample("slow_compute_type", checkpoint="there", **labels) == 1

    asyncio.run(scenario())
    [record] = [one for one in caplog.records if one.getMessage() == "slow_compute_type"]
    assert record.levelno == logging.WARNING
    assert record.__dict__["fields"] == {
        "checkpoint": "there",
        "device": "cpu",
        "compute_type": "float32",
        "compute_reason": "processor",
        "compute_problem": slow.compute_problem,
        "instruction_set": "",
    }


def test_a_name_that_no_checkpoint_has_is_told_after_each_load(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        served = Served(folder, pinned=("there", "theer"), preferred=("bakc", "back"))
        async with served.client() as client:
            assert (await client.post("/open/v1/models/back/unload")).status_code == 200

    asyncio.run(scenario())
    told = [one for one in caplog.records if one.getMessage() == "checkpoint_names_unknown"]
    fields = {"pinned": ["theer"], "preferred": ["bakc"]}
    assert [(one.levelno, vars(one)["fields"]) for one in told] == [(logging.WARNING, fields)] * 2


@pytest.mark.parametrize(("budget", "num_told"), [(1, 1), (2**30, 0)])
def test_a_budget_below_what_is_always_in_memory_is_told(
    folder: Path, caplog: pytest.LogCaptureFixture, budget: int, num_told: int
) -> None:
    async def scenario() -> None:
        served = Served(folder, memory_budget=budget)
        async with served.client():
            pass

    asyncio.run(scenario())
    told = [one for one in caplog.records if one.getMessage() == "memory_budget_too_small"]
    assert [(one.levelno, vars(one)["fields"]["budget_bytes"]) for one in told] == [
        (logging.WARNING, budget)
    ] * num_told


def test_names_that_there_are_are_told_nothing_of(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        served = Served(folder, pinned=("there",), preferred=("back", "there"), memory_budget=1)
        async with served.client():
            pass

    asyncio.run(scenario())
    assert not [one for one in caplog.records if one.getMessage() == "checkpoint_names_unknown"]
