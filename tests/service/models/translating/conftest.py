"""An engine with a tiny checkpoint, and a translator over it."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.text.pipeline import TextPipeline
from service.engine.client.client import EngineClient
from service.engine.client.segment_room import SegmentRoom
from service.engine.messages import Configure
from service.models.translating.translator import OnlineTranslator
from support.tiny_checkpoint import TINY_LIMITS, write_tiny_checkpoint


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def engine(
    runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EngineClient]:
    path = write_tiny_checkpoint(tmp_path_factory.mktemp("online") / "tiny")
    configure = Configure(
        checkpoint_paths=(str(path),),
        num_threads=1,
        device="cpu",
        compute_type="float32",  # slow enough for deadlines and cancellations to meet it
        max_rows=16,
        max_slots=4,
        log_level="error",
    )
    engine = runner.run(EngineClient.start(configure, room=SegmentRoom(30)))
    yield engine
    runner.run(engine.close())


@pytest.fixture(scope="module")
def translator(engine: EngineClient, tmp_path_factory: pytest.TempPathFactory) -> OnlineTranslator:
    path = write_tiny_checkpoint(tmp_path_factory.mktemp("pipeline") / "tiny")
    manifest = read_manifest(path)
    return OnlineTranslator(
        pipeline=TextPipeline(load_tokenizer(path, manifest), manifest.limits),
        limits=TINY_LIMITS,
        engine=engine,
        text_thread=ThreadPoolExecutor(max_workers=1),
        bulk_turn=asyncio.Semaphore(1),
    )
