from pathlib import Path

import pytest

from model.errors import CheckpointError, ConfigError
from service.checkpoints import find_checkpoints, load_checkpoints
from support.tiny_checkpoint import EN_ZH, ZH_EN, write_tiny_checkpoint


def test_a_directory_with_a_description_is_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "config.json").touch()
    (tmp_path / "other").mkdir()
    assert find_checkpoints(tmp_path) == (tmp_path,)


def test_any_other_directory_holds_checkpoints_in_order_of_their_names(tmp_path: Path) -> None:
    for name in ("zh-en", "en-zh", ".en-zh.1.partial"):
        (tmp_path / name).mkdir()
    (tmp_path / "README.md").touch()
    assert find_checkpoints(tmp_path) == (tmp_path / "en-zh", tmp_path / "zh-en")


def test_a_path_without_any_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"neither a config\.json nor directories"):
        find_checkpoints(tmp_path)
    with pytest.raises(ConfigError, match=f"no checkpoint directory {tmp_path}/none"):
        find_checkpoints(tmp_path / "none")


def test_a_path_that_cannot_be_looked_at_is_refused_by_name(tmp_path: Path) -> None:
    long, loop = tmp_path / ("a" * 300), tmp_path / "loop"
    loop.symlink_to(loop)
    for path, problem in ((long, "File name too long"), (loop, "Too many levels of symbolic")):
        with pytest.raises(ConfigError, match=f"{path}: {problem}"):
            find_checkpoints(path)


def test_every_directory_of_the_folder_must_be_a_checkpoint(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "one")
    (tmp_path / "two").mkdir()
    with pytest.raises(CheckpointError, match="two"):
        load_checkpoints(tmp_path)


def test_checkpoints_are_described_in_order(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "b", name="back", pairs=(ZH_EN,))
    write_tiny_checkpoint(tmp_path / "a", name="there", pairs=(EN_ZH,), seed=6)
    there, back = load_checkpoints(tmp_path)
    assert (there.manifest.name, there.manifest.pairs) == ("there", (EN_ZH,))
    assert (back.manifest.name, back.directory) == ("back", tmp_path / "b")
    assert there.fingerprint != back.fingerprint


def test_two_checkpoints_for_one_pair_or_with_one_name_are_refused(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "a", name="one", pairs=(EN_ZH,))
    write_tiny_checkpoint(tmp_path / "b", name="two", pairs=(ZH_EN, EN_ZH))
    with pytest.raises(ConfigError, match=r"a and .*b both translate from en to zh-Hans"):
        load_checkpoints(tmp_path)
    write_tiny_checkpoint(tmp_path / "b", name="one", pairs=(ZH_EN,))
    with pytest.raises(ConfigError, match=r"a and .*b are both called one"):
        load_checkpoints(tmp_path)
