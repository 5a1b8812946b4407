"""An engine with a tiny checkpoint, and a translator over it."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.text.pipeline import TextPipeline
from service.engine.client.client import EngineClient
from service.models.translating.translator import OnlineTranslator
from support.online_translation import slow_engine
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
    with slow_engine(runner, path) as engine:
        yield engine


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
