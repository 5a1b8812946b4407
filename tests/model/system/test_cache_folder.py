from pathlib import Path

import pytest

from model.errors import ConfigError
from model.exchange.registry.cache import cache_of
from model.system.cache_folder import cache_root


def test_the_environment_names_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_root({"DRAGOMAN_CACHE": "/a"}) == Path("/a")
    assert cache_root({"XDG_CACHE_HOME": "/b"}) == Path("/b/dragoman")
    assert cache_root({"XDG_CACHE_HOME": "relative"}) == tmp_path / ".cache/dragoman"
    assert cache_root({}) == tmp_path / ".cache/dragoman"
    assert cache_of({"DRAGOMAN_CACHE": "/a"}).root == Path("/a")


def test_without_a_home_the_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(ConfigError, match="DRAGOMAN_CACHE names one"):
        cache_root({})
