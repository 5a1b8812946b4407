"""A live server whose next engines have a real limit of memory: what is loaded serves on."""

import asyncio
import logging
import os
import resource
import subprocess
from pathlib import Path

import httpx
import pytest

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.files.verification import num_weight_bytes
from model.native import kernels
from service.engine.client import process
from service.models.checkpoints import residency
from support.served_front import Served
from support.several_models import DE_EN
from support.short_of_memory import LARGE_BYTES, write_large_checkpoint
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

MORE = 2**24
"""Bytes that an engine may have besides what one with a small network has at its peak."""

pytestmark = pytest.mark.skipif(
    kernels.find_problem() is not None, reason="float networks have peaks of other sizes"
)


class Limit:
    """What engines that are started from now on may have; None for all that there is."""

    def __init__(self) -> None:
        self.num_bytes: int | None = None

    def set_beside(self, process_id: int) -> None:
        """A little more than another engine has at its peak."""
        status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii")
        (line,) = (line for line in status.splitlines() if line.startswith("VmPeak:"))
        self.num_bytes = 1024 * int(line.split()[1]) + MORE


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Limit:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))  # no packed weights of before
    found, start = Limit(), process._start_process

    def start_within(*arguments: object) -> subprocess.Popen[bytes]:
        child = start(*arguments)  # type: ignore[arg-type]
        if found.num_bytes is not None:
            resource.prlimit(child.pid, resource.RLIMIT_AS, (found.num_bytes,) * 2)
        return child

    monkeypatch.setattr(process, "_start_process", start_within)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    write_tiny_checkpoint(folder / "a", name="small", pairs=(EN_ZH,))
    return folder


async def _status(client: httpx.AsyncClient, model: str) -> int:
    return (await _by(client, model)).status_code


async def _by(client: httpx.AsyncClient, model: str) -> httpx.Response:
    source, target = ("de", "en") if model == "german" else ("en", "zh-Hans")
    values = {"texts": "The cat sees.", "source": source, "target": target, "model": model}
    return await client.post("/v1/translate", json=values)


def _engine(served: Served) -> int:
    process_id = served.front._served.pool.replicas[0].process_id
    assert process_id is not None
    return process_id


def test_a_model_that_memory_is_short_for_is_a_503_with_both_numbers_until_there_is_some(
    folder: Path, limit: Limit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(residency, "ENGINE_BYTES", 0)
    write_large_checkpoint(folder / "b", name="large")
    write_tiny_checkpoint(folder / "c", name="german", pairs=(DE_EN,))
    sizes = {name: num_weight_bytes(read_manifest(folder / name)) for name in ("a", "b")}

    async def scenario() -> None:
        served = Served(folder, memory_budget=sum(sizes.values()), pinned=("small",))
        async with served.client() as client:
            before = (await _by(client, "small")).json()
            limit.set_beside(_engine(served))
            refused = await _by(client, "large")
            assert (refused.status_code, refused.json()["code"]) == (503, "no_memory")
            assert "retry-after" in refused.headers
            told = refused.json()["error"].split()
            needed, free = (int(word) for word in told if word.isdecimal())
            assert needed > LARGE_BYTES
            assert needed > free
            assert str(folder) not in refused.text
            full = {"checkpoint": "large", "result": "no_memory"}
            assert served.sample("checkpoint_loads_total", **full) == 1
            assert (await _by(client, "small")).json()["translations"] == before["translations"]
            assert await _status(client, "german") == 200, "what fits is loaded"
            limit.num_bytes = None
            assert await _status(client, "large") == 200
            assert await _status(client, "small") == 200

    asyncio.run(scenario())
    [record] = [one for one in caplog.records if one.getMessage() == "checkpoint_load_failed"]
    assert record.levelno == logging.ERROR
    assert f"{folder / 'b'}: needs at least" in record.__dict__["fields"]["reason"]
    assert list((folder.parent / "cache").rglob("*.partial")) == []


def test_a_reload_that_memory_is_short_for_in_part_serves_the_rest_and_tells(
    folder: Path, limit: Limit
) -> None:
    async def scenario() -> None:
        served = Served(folder)
        async with served.client() as client:
            limit.set_beside(_engine(served))
            write_large_checkpoint(folder / "b", name="large")
            reply = (await client.post("/open/admin/reload")).json()
            assert reply["checkpoints"] == ["small"]
            [fault] = reply["faulty"]
            assert (fault["directory"], fault["is_served"]) == ("b", False)
            assert fault["reason"].startswith("b: needs at least 2")
            assert fault["reason"].endswith(" MiB are free")
            assert await _status(client, "small") == 200
            assert await _status(client, "large") == 400

    asyncio.run(scenario())


def test_a_reload_that_memory_is_short_for_altogether_changes_nothing(
    folder: Path, limit: Limit
) -> None:
    async def scenario() -> None:
        served = Served(folder)
        async with served.client() as client:
            engine = _engine(served)
            limit.num_bytes = 2**26  # not even for the interpreter
            failed = await client.post("/open/admin/reload")
            assert (failed.status_code, failed.json()["code"]) == (409, "reload_failed")
            assert await _status(client, "small") == 200
            assert _engine(served) == engine

    asyncio.run(scenario())


def test_an_engine_is_the_first_to_go_while_it_loads_and_as_others_when_it_serves(
    folder: Path, limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    configure = process._configure

    async def look(link: process.EngineLink, message: process.Configure) -> process.Ready:
        seen.append(_score(link.process_id))
        return await configure(link, message)

    monkeypatch.setattr(process, "_configure", look)

    async def scenario() -> None:
        served = Served(folder)
        async with served.client():
            seen.append(_score(_engine(served)))

    asyncio.run(scenario())
    assert seen == ["1000", _score(os.getpid())]


def _score(process_id: int) -> str:
    return Path(f"/proc/{process_id}/oom_score_adj").read_text(encoding="ascii").strip()
