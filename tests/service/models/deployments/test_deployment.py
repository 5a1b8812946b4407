from pathlib import Path

import pytest

from service.models.deployments.deployment import _configuration
from service.placement import Placement
from service.settings import Settings

ONE = Placement(num_threads=1)


def test_packed_weights_are_kept_in_the_cache_unless_there_may_be_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path))
    monkeypatch.setenv("DRAGOMAN_PACKED_BYTES", "1G")
    configure = _configuration(Settings(), [], ONE)
    assert configure.packed_folder == str(tmp_path / "packed")
    assert configure.packed_bytes == 2**30
    assert _configuration(Settings(packed_bytes=0), [], ONE).packed_folder is None


def test_without_a_home_for_a_cache_none_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError

    for name in ("DRAGOMAN_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert _configuration(Settings(packed_bytes=2**30), [], ONE).packed_folder is None
