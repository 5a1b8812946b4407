"""Loading and unloading of one model among several, with real engines."""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.models.routes.routing import Hop, Route
from service.priority import PRIORITIES
from support.served_front import QUERY, Served
from support.several_models import write_several
from support.tiny_checkpoint import EN_ZH


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_several(tmp_path / "checkpoints")


def _runs(process_id: int | None) -> bool:
    return Path(f"/proc/{process_id}").exists()


async def _states(client: httpx.AsyncClient) -> dict[str, str]:
    reply = await client.get("/v1/models")
    return {one["name"]: one["state"] for one in reply.json()["models"]}


async def _change(client: httpx.AsyncClient, name: str, what: str) -> tuple[int, dict[str, Any]]:
    reply = await client.post(f"/open/v1/models/{name}/{what}")
    return reply.status_code, reply.json()


def test_what_is_unloaded_is_not_served_until_it_is_loaded_again(folder: Path) -> None:
    async def scenario() -> None:
        served = Served(folder, segment_cache=1_000_000)
        async with served.client() as client:
            assert repr(served.front.detection) == "<LanguageDetection compact: 2 languages>"
            first = await served.translate(client)
            assert await served.translate(client) == first
            assert served.sample("segment_cache_lookups_total", result="hit") == 1
            old = served.front._served.pool.replicas[0].process_id
            status, told = await _change(client, "small", "unload")
            assert (status, told["name"], told["state"]) == (200, "small", "unloaded")
            assert served.sample("segment_cache_bytes") == 0, "a reload has emptied it"
            assert (told["compute_type"], told["num_pairs"]) == (None, 1)
            assert await served.translate(client) != first, "the other one for this pair"
            await asyncio.gather(*served.front._rollout._retiring.values())
            assert not _runs(old), "its memory went with its process"
            assert await _states(client) == {
                "both": "loaded",
                "german": "loaded",
                "small": "unloaded",
            }
            await client.post("/open/admin/reload")
            assert (await _states(client))["small"] == "unloaded", "a reload leaves it so"
            refused = await client.post(
                "/v1/translate",
                json={"texts": "A cat.", "target": "zh-Hans", "source": "en", "model": "small"},
            )
            assert (refused.status_code, refused.json()["code"]) == (400, "unknown_model")
            status, told = await _change(client, "small", "load")
            assert (status, told["state"]) == (200, "loaded")
            assert await served.translate(client) == first
            await asyncio.gather(*served.front._rollout._retiring.values())
            assert len(served.front._rollout.deployments) == 1

    asyncio.run(scenario())


async def _check_shared_room(served: Served, client: httpx.AsyncClient) -> None:
    """Three requests of four for one model are as many as it may have beside others."""
    front = served.front
    route = Route(hops=(Hop(checkpoint="small", pair=EN_ZH),))
    values = {"texts": "A cat.", "source": "en", "target": "zh-Hans"}
    with ExitStack() as stack:
        for priority in PRIORITIES[:1] * 2 + PRIORITIES[1:]:
            stack.enter_context(front.in_flight.translator(route, priority))
        refused = await client.post("/v1/translate", json=values | {"model": "small"})
        assert (refused.status_code, refused.json()["limit"]) == (429, 3)
        assert int(refused.headers["retry-after"]) >= 1
        other = await client.post("/v1/translate", json=values | {"model": "both"})
        assert other.status_code == 200


def test_a_change_that_cannot_be_is_refused_and_changes_nothing(folder: Path) -> None:
    async def scenario() -> None:
        served = Served(folder, max_requests=4)
        async with served.client() as client:
            await _check_shared_room(served, client)
            engine = served.front._served.pool.replicas[0].process_id
            for name, what, status, code in (
                ("none", "load", 404, "unknown_model"),
                ("none", "unload", 404, "unknown_model"),
                ("x" * 2_000, "unload", 404, "unknown_model"),
                ("small", "load", 409, "already_loaded"),
            ):
                answer = await _change(client, name, what)
                assert (answer[0], answer[1]["code"]) == (status, code)
            assert served.front._served.pool.replicas[0].process_id == engine
            for name in ("small", "german"):
                assert (await _change(client, name, "unload"))[0] == 200
            answer = await _change(client, "small", "unload")
            assert (answer[0], answer[1]["code"]) == (409, "already_unloaded")
            answer = await _change(client, "both", "unload")
            assert (answer[0], answer[1]["code"]) == (409, "last_model")
            assert await served.translate(client, QUERY)

    asyncio.run(scenario())


def test_a_model_that_is_damaged_meanwhile_is_refused_and_the_others_serve_on(
    folder: Path,
) -> None:
    async def scenario() -> None:
        served = Served(folder)
        async with served.client() as client:
            assert (await _change(client, "german", "unload"))[0] == 200
            file = folder / "b" / "model.safetensors"
            file.write_bytes(file.read_bytes()[:-1] + b"?")
            before = await served.translate(client)
            status, answer = await _change(client, "german", "load")
            assert (status, answer["code"]) == (409, "load_failed")
            assert "b/model.safetensors" in answer["error"]
            assert await served.translate(client) == before
            [fault] = (await client.get("/v1/health")).json()["faulty"]
            assert fault["directory"] == "b"

    asyncio.run(scenario())
