from pathlib import Path

import pytest

from model.errors import ConfigError
from service.checkpoint_folder import default_checkpoints
from service.models.checkpoints.discovery import find_checkpoints
from service.settings import load_settings


def test_without_a_name_it_is_the_folder_here_and_else_the_one_beside_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = Path(__file__).parents[2] / "checkpoints"
    monkeypatch.delenv("DRAGOMAN_CHECKPOINT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert default_checkpoints() == load_settings().checkpoint == bundled
    (tmp_path / "checkpoints").mkdir()
    assert default_checkpoints() == load_settings().checkpoint == Path("checkpoints")


def test_where_there_are_none_the_folder_here_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("service.checkpoint_folder.__file__", str(tmp_path / "a" / "b.py"))
    assert default_checkpoints() == Path("checkpoints")
    with pytest.raises(ConfigError, match=f"no checkpoint directory {tmp_path}/checkpoints;"):
        find_checkpoints(default_checkpoints())
