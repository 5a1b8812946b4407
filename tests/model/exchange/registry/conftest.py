from collections.abc import Iterator
from pathlib import Path

import pytest

from model.exchange.registry.cache import Cache
from support.registry_mirror import Mirror, Waits, running_mirror

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with running_mirror() as running:
        yield running


@pytest.fixture
def other_mirror() -> Iterator[Mirror]:
    """A server of another origin: the same host, another port."""
    with running_mirror() as running:
        yield running


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(root=tmp_path / "cache")
