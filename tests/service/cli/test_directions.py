import argparse
from pathlib import Path

import pytest

import service.checkpoint_folder
from model.errors import CheckpointError, ConfigError
from model.text.language import LanguagePair
from service.cli.directions import chosen_direction, single_checkpoint
from support.tiny_checkpoint import EN_ZH, ZH_EN, write_tiny_checkpoint

EN_DE = LanguagePair(source="en", target="de")
DE_EN = LanguagePair(source="de", target="en")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    write_tiny_checkpoint(folder / "both", name="both", pairs=(EN_DE, DE_EN))
    write_tiny_checkpoint(folder / "there", name="there", pairs=(EN_ZH,))
    write_tiny_checkpoint(folder / "back", name="back", pairs=(ZH_EN,))
    return folder


def choose(
    path: Path | None, source: str | None = None, target: str | None = None
) -> tuple[str, LanguagePair]:
    """The name of the checkpoint's folder, and the pair."""
    flags = argparse.Namespace(source_language=source, target_language=target)
    found = chosen_direction(flags, path)
    return found.directory.name, found.pair


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (None, "zh", ("there", EN_ZH)),
        (None, "ZH-cn", ("there", EN_ZH)),
        ("auto", "zh-Hans-CN", ("there", EN_ZH)),
        ("zh", None, ("back", ZH_EN)),
        ("zh-SG", "en-GB", ("back", ZH_EN)),
        ("EN", "de-AT", ("both", EN_DE)),
        ("de-DE", "EN", ("both", DE_EN)),
        ("de", None, ("both", DE_EN)),
    ],
)
def test_the_languages_choose_one_of_several_checkpoints(
    folder: Path, source: str | None, target: str | None, expected: tuple[str, LanguagePair]
) -> None:
    assert choose(folder, source, target) == expected


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (None, None, "which language? Give --from and --to; {} has"),
        (None, "en", "2 language pairs fit --to en; {} has"),
        ("zh", "de", "0 language pairs fit --from zh --to de; {} has"),
        (None, "zh-TW", "0 language pairs fit --to zh-TW; {} has"),
        ("pt_BR", None, "0 language pairs fit --from pt_BR; {} has"),
        (None, "x" * 65, "0 language pairs fit --to x"),
    ],
)
def test_what_leaves_none_or_several_is_one_error_that_lists_what_there_is(
    folder: Path, source: str | None, target: str | None, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        choose(folder, source, target)
    assert str(caught.value).startswith(message.format(folder))
    listed = "zh-Hans → en (back), en → de (both), de → en (both), en → zh-Hans (there)"
    assert str(caught.value).endswith(f" has {listed}")


def test_two_checkpoints_of_one_direction_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for name in ("old", "new"):
        write_tiny_checkpoint(tmp_path / name, name=name, pairs=(EN_ZH,))
    with pytest.raises(ConfigError, match=r"2 .* --to zh; .*Hans \(new\), en → zh-Hans \(old\)$"):
        choose(tmp_path, None, "zh")
    assert choose(tmp_path / "old", None, "zh") == ("old", EN_ZH)


def test_a_path_is_asked_before_the_environment_and_that_before_the_bundled_ones(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(service.checkpoint_folder, "__file__", str(folder / "a" / "b.py"))
    monkeypatch.setattr(service.checkpoint_folder, "_FOLDER", Path("both"))
    monkeypatch.setenv("DRAGOMAN_CHECKPOINT", str(folder / "there"))
    assert choose(folder / "back") == ("back", ZH_EN)
    assert choose(None) == ("there", EN_ZH)
    monkeypatch.setenv("DRAGOMAN_CHECKPOINT", "")
    assert choose(None, "de") == ("both", DE_EN)


def test_what_is_missing_or_damaged_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"there is no checkpoint directory {tmp_path}/none"):
        choose(tmp_path / "none")
    with pytest.raises(CheckpointError, match=r"^a{300}: File name too long$"):
        choose(Path("a" * 300))
    (tmp_path / "one").mkdir()
    with pytest.raises(CheckpointError, match=r"one/checksums\.sha256: is missing"):
        choose(tmp_path)


def test_a_command_that_asks_for_no_languages_needs_one_checkpoint(
    folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=f"{folder} has 3 .*; name one of back, both, there"):
        single_checkpoint(folder)
    assert single_checkpoint(folder / "both") == folder / "both"
    assert single_checkpoint(tmp_path / "none") == tmp_path / "none"
