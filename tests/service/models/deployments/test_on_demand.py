"""Models that are loaded by their first request, with real engines and a budget of a few bytes."""

import asyncio
from pathlib import Path

import httpx
import pytest

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.files.verification import num_weight_bytes
from service.models.checkpoints import residency
from support.served_front import Served
from support.several_models import write_several

NAMES = ("both", "german", "small")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_several(tmp_path / "checkpoints")


@pytest.fixture
def size(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Of the weights of each of the three; an engine alone counts as nothing."""
    monkeypatch.setattr(residency, "ENGINE_BYTES", 0)
    return num_weight_bytes(read_manifest(folder / "a"))


async def _by(client: httpx.AsyncClient, model: str) -> httpx.Response:
    source, target = ("de", "en") if model == "german" else ("en", "zh-Hans")
    values = {"texts": "The cat sees.", "source": source, "target": target, "model": model}
    return await client.post("/v1/translate", json=values)


async def _in_memory(client: httpx.AsyncClient) -> set[str]:
    models = (await client.get("/v1/models")).json()["models"]
    assert {one["state"] for one in models} <= {"loaded", "asleep"}
    assert len(models) == 3
    return {one["name"] for one in models if one["state"] == "loaded"}


def _resident_bytes(process_id: int | None) -> int:
    """Of a process; 0 of one that is gone."""
    try:
        status = Path(f"/proc/{process_id}/statm").read_text()
    except OSError:
        return 0
    return 4096 * int(status.split()[1])


def _check_figures(served: Served, size: int) -> None:
    """`german` was loaded for three requests and left for `small`; `both` is of the start."""
    loads = {"checkpoint": "german", "result": "success"}
    assert served.sample("checkpoint_loads_total", **loads) == 1
    gone = {"checkpoint": "german", "reason": "evicted"}
    assert served.sample("checkpoint_unloads_total", **gone) == 1
    assert served.sample("checkpoint_load_seconds_count") == 2
    resident = {name: served.sample("checkpoint_resident", checkpoint=name) for name in NAMES}
    assert resident == {"both": 1, "german": 0, "small": 1}
    states = {name: served.sample("checkpoints", state=name) for name in ("loaded", "asleep")}
    assert states == {"loaded": 2, "asleep": 1}
    assert served.sample("engines", state="serving") == 2
    assert served.sample("engine_process_resident_memory_bytes", checkpoint="small") > 2**20
    assert served.sample("finished_segments_total", checkpoint="german") == 3
    assert served.sample("step_rows_count") >= 4, "steps of the engine that left count on"
    assert served.sample("memory_counted_bytes") == 2 * size == served.sample("memory_budget_bytes")


def test_the_first_request_loads_and_the_least_recently_used_leaves_with_its_memory(
    folder: Path, size: int
) -> None:
    async def scenario() -> None:
        served = Served(folder, memory_budget=2 * size, pinned=("both",))
        async with served.client() as client:
            assert await _in_memory(client) == {"both"}
            assert served.sample("memory_counted_bytes") == size
            assert served.sample("checkpoint_loads_total", checkpoint="german") == 0
            codes = {one["code"] for one in (await client.get("/languages")).json()}
            assert codes == {"en", "zh-Hans", "de"}, "what is not in memory can be asked for"
            replies = await asyncio.gather(*[_by(client, "german") for _ in range(3)])
            assert [reply.status_code for reply in replies] == [200] * 3
            assert await _in_memory(client) == {"both", "german"}
            assert served.sample("memory_counted_bytes") == 2 * size
            assert served.sample("engine_up", checkpoint="german") == 1
            german = served.front._routes.loaded_on_demand["german"].pool.replicas[0].process_id
            assert _resident_bytes(german) > 2**20
            assert (await _by(client, "small")).status_code == 200
            assert await _in_memory(client) == {"both", "small"}
            assert _resident_bytes(german) == 0, "the system has its memory again"
            _check_figures(served, size)
            assert (await _by(client, "both")).status_code == 200
            assert (await _by(client, "german")).json()["models"] == ["german"]
            assert await _in_memory(client) == {"both", "german"}, "what is pinned stays"

    asyncio.run(scenario())


def test_two_that_do_not_fit_together_are_served_in_turn_with_one_load_each(
    folder: Path, size: int
) -> None:
    async def scenario() -> None:
        served = Served(folder, memory_budget=2 * size, pinned=("both",), load_seconds=30.0)
        async with served.client() as client:
            replies = await asyncio.gather(*[_by(client, name) for name in ("german", "small")])
            assert [reply.status_code for reply in replies] == [200, 200]
            for name in ("german", "small"):
                loads = {"checkpoint": name, "result": "success"}
                assert served.sample("checkpoint_loads_total", **loads) == 1

    asyncio.run(scenario())


def test_requests_for_others_go_on_meanwhile_and_a_wait_has_an_end(folder: Path, size: int) -> None:
    async def scenario() -> None:
        served = Served(folder, memory_budget=2 * size, pinned=("both",), load_seconds=0.001)
        async with served.client() as client:
            waiting = asyncio.create_task(_by(client, "small"))
            assert (await _by(client, "both")).status_code == 200
            late = await waiting
            assert (late.status_code, late.json()["code"]) == (503, "loading")
            assert int(late.headers["retry-after"]) >= 1
            while "small" not in await _in_memory(client):  # the load goes on without its waiter
                assert (await _by(client, "both")).status_code == 200
            assert (await _by(client, "small")).status_code == 200

    asyncio.run(scenario())


def test_what_cannot_be_loaded_is_a_503_and_everything_else_is_served(
    folder: Path, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        served = Served(folder, memory_budget=2 * size, pinned=("both",))
        async with served.client() as client:
            file = folder / "b" / "model.safetensors"
            file.write_bytes(file.read_bytes()[:-1] + b"?")
            refused = await _by(client, "german")
            assert (refused.status_code, refused.json()["code"]) == (503, "load_failed")
            failed = {"checkpoint": "german", "result": "failure"}
            assert served.sample("checkpoint_loads_total", **failed) == 1
            assert (await _by(client, "small")).status_code == 200
        served = Served(folder, memory_budget=size, pinned=("both",))
        async with served.client() as client:
            refused = await _by(client, "small")
            assert (refused.status_code, refused.json()["code"]) == (503, "no_memory")
            assert f"{size} bytes" in refused.json()["error"]
            full = {"checkpoint": "small", "result": "no_memory"}
            assert served.sample("checkpoint_loads_total", **full) == 1
            assert (await _by(client, "both")).status_code == 200

    asyncio.run(scenario())
    failures = [one for one in caplog.records if one.message == "checkpoint_load_failed"]
    assert [one.fields["checkpoint"] for one in failures] == ["german", "small"]


def test_a_route_of_two_hops_loads_both_and_neither_for_the_other(folder: Path, size: int) -> None:
    async def scenario() -> None:
        served = Served(folder, memory_budget=3 * size - 1, pinned=("small",))
        async with served.client() as client:
            values = {"texts": "Das.", "source": "de", "target": "zh-Hans"}
            reply = await client.post("/v1/translate", json=values)
            assert (reply.status_code, reply.json()["models"]) == (200, ["german", "small"])
            assert await _in_memory(client) == {"german", "small"}

    asyncio.run(scenario())


def test_a_reload_and_an_administrator_keep_to_the_budget(folder: Path, size: int) -> None:
    async def scenario() -> None:
        served = Served(folder, memory_budget=2 * size, pinned=("both",))
        async with served.client() as client:
            assert (await _by(client, "german")).status_code == 200
            assert (await client.post("/open/admin/reload")).status_code == 200
            assert await _in_memory(client) == {"both"}
            gone = {"checkpoint": "german", "reason": "reload"}
            assert served.sample("checkpoint_unloads_total", **gone) == 1
            loaded = await client.post("/open/v1/models/small/load")
            assert (loaded.status_code, loaded.json()["state"]) == (200, "loaded")
            again = await client.post("/open/v1/models/small/load")
            assert (again.status_code, again.json()["code"]) == (409, "already_loaded")
            unloaded = await client.post("/open/v1/models/small/unload")
            assert (unloaded.status_code, unloaded.json()["state"]) == (200, "unloaded")
            assert (await _by(client, "small")).status_code == 400

    asyncio.run(scenario())


def test_an_engine_that_is_lost_too_often_is_unloaded(folder: Path, size: int) -> None:
    async def scenario() -> None:
        served = Served(folder, memory_budget=2 * size, pinned=("both",), max_restarts=0)
        async with served.client() as client:
            assert (await _by(client, "german")).status_code == 200
            pool = served.front._routes.loaded_on_demand["german"].pool
            pool.replicas[0].supervisor.engine._link.kill()
            while "german" in await _in_memory(client):  # noqa: ASYNC110  # there is no event
                await asyncio.sleep(0.01)
            gone = {"checkpoint": "german", "reason": "lost"}
            assert served.sample("checkpoint_unloads_total", **gone) == 1
            assert (await _by(client, "german")).status_code == 200

    asyncio.run(scenario())


async def _keep_last_good(client: httpx.AsyncClient, folder: Path) -> None:
    """Load `german`, damage it on the disk, and reload: what is in memory is served on."""
    assert (await _by(client, "german")).status_code == 200
    file = folder / "b" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    [fault] = (await client.post("/open/admin/reload")).json()["faulty"]
    assert (fault["directory"], fault["is_served"]) == ("b", True)
    assert (await _by(client, "german")).status_code == 200


async def _check_not_served(client: httpx.AsyncClient) -> None:
    models = (await client.get("/v1/models")).json()
    assert {one["name"] for one in models["models"]} == {"both", "small"}
    assert [one["is_served"] for one in models["faulty"]] == [False]
    refused = await _by(client, "german")
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_model")


@pytest.mark.parametrize(("max_restarts", "reason"), [(0, "lost"), (1, "reload")])
def test_a_last_good_version_whose_engine_is_lost_is_not_served_any_more(
    folder: Path, size: int, max_restarts: int, reason: str
) -> None:
    async def scenario() -> None:
        served = Served(folder, memory_budget=2 * size, pinned=("both",), max_restarts=max_restarts)
        async with served.client() as client:
            await _keep_last_good(client, folder)
            kept = served.front._routes.find("german")
            assert kept is not None
            kept.pool.replicas[0].supervisor.engine._link.kill()
            while served.front._routes.find("german") is not None:  # noqa: ASYNC110  # there is no event
                await asyncio.sleep(0.01)
            await _check_not_served(client)
            gone = {"checkpoint": "german", "reason": reason}
            assert served.sample("checkpoint_unloads_total", **gone) == 1
            assert (await _by(client, "both")).status_code == 200

    asyncio.run(scenario())


def test_a_last_good_version_counts_against_the_budget_and_leaves_like_others(
    folder: Path, size: int
) -> None:
    async def scenario() -> None:
        served = Served(folder, memory_budget=2 * size, pinned=("both",))
        async with served.client() as client:
            await _keep_last_good(client, folder)
            assert await _in_memory(client) == {"both", "german"}
            assert served.sample("memory_counted_bytes") == 2 * size
            assert (await _by(client, "small")).status_code == 200
            assert served.sample("memory_counted_bytes") == 2 * size
            gone = {"checkpoint": "german", "reason": "evicted"}
            assert served.sample("checkpoint_unloads_total", **gone) == 1
            await _check_not_served(client)

    asyncio.run(scenario())


def test_who_waits_for_a_load_when_the_server_leaves_is_told_so(folder: Path, size: int) -> None:
    async def scenario() -> None:
        served = Served(folder, memory_budget=2 * size, pinned=("both",))
        async with served.client() as client:
            waiting = asyncio.create_task(_by(client, "small"))
            while not served.front.in_flight._loads:  # noqa: ASYNC110  # there is no event
                await asyncio.sleep(0)
            assert await served.front.drain()
            refused = await waiting
            assert (refused.status_code, refused.json()["code"]) == (503, "draining")

    asyncio.run(scenario())
