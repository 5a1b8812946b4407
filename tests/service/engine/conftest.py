import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from model.loading import Runnable, load_for_decoding
from service.engine.client.client import EngineClient
from service.engine.client.segment_room import SegmentRoom
from service.engine.messages import Configure
from support.tiny_checkpoint import write_tiny_checkpoint

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(scope="session")
def checkpoint_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny")


@pytest.fixture(scope="session")
def checkpoint(checkpoint_path: Path) -> Runnable:
    torch.set_num_threads(1)  # the engines have their own threads, on the same cores
    return load_for_decoding(checkpoint_path, num_threads=1)


@pytest.fixture(scope="session")
def configure(checkpoint_path: Path) -> Configure:
    return Configure(
        checkpoint_paths=(str(checkpoint_path),),
        num_threads=1,
        device="cpu",
        max_rows=32,
        max_slots=16,
        admit_token_budget=256,
        counters_interval_seconds=0.0,
        log_level="error",
    )


@pytest.fixture(scope="session")
def run() -> Iterator[Run]:
    """Runs a coroutine on the one event loop of the session."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="session")
def room() -> SegmentRoom:
    """The places of segments of `engine`."""
    return SegmentRoom(200)


@pytest.fixture(scope="session")
def engine(run: Run, configure: Configure, room: SegmentRoom) -> Iterator[EngineClient]:
    """One engine for every test that leaves it as it was: idle."""
    client = run(EngineClient.start(configure, room=room))
    yield client
    run(client.close())


@pytest.fixture
def own_engine(run: Run, configure: Configure) -> Iterator[EngineClient]:
    """An engine for a test that ends it."""
    client = run(EngineClient.start(configure, room=SegmentRoom(8)))
    yield client
    run(client.close())
