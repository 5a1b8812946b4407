"""What `dragoman pull` and `dragoman models` are tried with: local registries, a made format."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from model.exchange.imports import formats
from model.exchange.registry import retries
from model.exchange.registry.sources import VARIABLES
from support.made_imports import MadeImporter, write_made_model
from support.registry_mirror import Mirror, running_mirror


@pytest.fixture
def importer(monkeypatch: pytest.MonkeyPatch) -> MadeImporter:
    made = MadeImporter()
    monkeypatch.setattr(formats, "IMPORTERS", (made,))
    return made


@pytest.fixture
def mirror(importer: MadeImporter, registries: Mirror) -> Mirror:
    """All registries, with the made format's importer alone."""
    del importer
    return registries


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Mirror]:
    """One server that stands for all registries; the importers are the real ones."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with running_mirror() as running:
        for variable in VARIABLES:
            monkeypatch.setenv(variable, running.url)
        monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("DRAGOMAN_CHECKPOINT", str(tmp_path / "served"))
        yield running


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow each other at once."""
    monkeypatch.setattr(retries, "Retries", partial(retries.Retries, sleep=lambda _: None))


@pytest.fixture
def package(tmp_path: Path) -> bytes:
    write_made_model(tmp_path / "made" / "inner")
    return Path(
        shutil.make_archive(str(tmp_path / "package"), "zip", tmp_path / "made")
    ).read_bytes()
