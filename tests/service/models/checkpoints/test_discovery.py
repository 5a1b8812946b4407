import os
from pathlib import Path

import pytest

from model.errors import ConfigError
from service.models.checkpoints.discovery import find_checkpoints, load_checkpoints
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


def test_a_directory_that_is_no_checkpoint_stops_no_other(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "one")
    (tmp_path / "two").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    found = load_checkpoints(tmp_path)
    assert [one.directory.name for one in found.usable] == ["one"]
    assert {fault.directory.name: fault.reason for fault in found.faulty} == {
        "loop": f"{tmp_path}/loop/checksums.sha256: cannot be read: Too many levels of symbolic"
        " links",
        "two": f"{tmp_path}/two/checksums.sha256: is missing",
    }


def test_a_directory_whose_name_is_not_utf8_stops_no_other(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "one")
    write_tiny_checkpoint(tmp_path / os.fsdecode(b"two\xff"), name="two")
    found = load_checkpoints(tmp_path)
    assert [one.directory.name for one in found.usable] == ["one"]
    reasons = [fault.reason for fault in found.faulty]
    assert reasons == [f"'{tmp_path}/two\\udcff' is not UTF-8; the path of a checkpoint must be"]


def test_where_none_can_be_served_every_reason_is_told(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_tiny_checkpoint(tmp_path / name, name=name)
        (tmp_path / name / "config.json").write_text("{")
    with pytest.raises(ConfigError, match=r"one/config\.json.*; .*two/config\.json"):
        load_checkpoints(tmp_path)


def test_what_the_engine_finds_at_fault_is_faulty_from_then_on(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "a", name="there", pairs=(EN_ZH,))
    write_tiny_checkpoint(tmp_path / "b", name="back", pairs=(ZH_EN,))
    found = load_checkpoints(tmp_path).without({0: "damaged"}, {})
    assert [one.manifest.name for one in found.usable] == ["back"]
    assert [(fault.directory, fault.reason) for fault in found.faulty] == [
        (tmp_path / "a", "damaged")
    ]
    with pytest.raises(ConfigError, match=r"^damaged; worse$"):
        found.without({0: "worse"}, {})


def test_checkpoints_are_described_in_order(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "b", name="back", pairs=(ZH_EN,))
    write_tiny_checkpoint(tmp_path / "a", name="there", pairs=(EN_ZH,), seed=6)
    there, back = load_checkpoints(tmp_path).usable
    assert (there.manifest.name, there.manifest.pairs) == ("there", (EN_ZH,))
    assert (back.manifest.name, back.directory) == ("back", tmp_path / "b")
    assert there.fingerprint != back.fingerprint


def test_of_two_checkpoints_with_one_name_the_first_is_served(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "a", name="one", pairs=(EN_ZH,))
    write_tiny_checkpoint(tmp_path / "b", name="one", pairs=(ZH_EN,))
    found = load_checkpoints(tmp_path)
    assert [one.directory.name for one in found.usable] == ["a"]
    [fault] = found.faulty
    assert fault.reason == f"{tmp_path}/a and {tmp_path}/b are both called one"


def test_checkpoints_for_one_pair_are_served_together(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "a", name="one", pairs=(EN_ZH,))
    write_tiny_checkpoint(tmp_path / "b", name="two", pairs=(ZH_EN, EN_ZH))
    found = load_checkpoints(tmp_path)
    assert [one.manifest.name for one in found.usable] == ["one", "two"]
    assert found.faulty == ()
