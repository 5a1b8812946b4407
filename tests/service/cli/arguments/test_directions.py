import argparse
import re
import shlex
import shutil
from pathlib import Path

import pytest

import service.checkpoint_folder
from model.errors import CheckpointError, ConfigError
from model.text.languages.tags import LanguagePair
from service.cli.arguments.directions import chosen_direction, chosen_or_same, single_checkpoint
from service.cli.translate.translate import add_arguments
from service.models.checkpoints.discovery import load_checkpoints
from service.models.routes.routing import RoutingTable
from service.settings import load_settings
from support.tiny_checkpoint import EN_ZH, ZH_EN, write_tiny_checkpoint

ROOT = Path(__file__).parents[4]
EN_DE = LanguagePair(source="en", target="de")
DE_EN = LanguagePair(source="de", target="en")


def _nothing() -> None:
    return None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    write_tiny_checkpoint(folder / "both", name="both", pairs=(EN_DE, DE_EN))
    write_tiny_checkpoint(folder / "there", name="there", pairs=(EN_ZH,))
    write_tiny_checkpoint(folder / "back", name="back", pairs=(ZH_EN,))
    return folder


def choose(
    path: Path | None,
    source: str | None = None,
    target: str | None = None,
    model: str | None = None,
) -> tuple[str, LanguagePair]:
    """The name of the checkpoint's folder, and the pair."""
    flags = argparse.Namespace(source_language=source, target_language=target, model=model)
    found = chosen_direction(flags, path)
    return found.directory.name, found.pair


def test_the_documented_command_of_the_image_leaves_one_direction_of_its_checkpoints() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    (words,) = re.findall(r"^docker run .* dragoman:cpu translate (.*) > ", page, re.MULTILINE)
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    direction = chosen_direction(parser.parse_args(shlex.split(words)), ROOT / "checkpoints")
    assert direction.pair == EN_ZH


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
        ("de_DE", "en_US", ("both", DE_EN)),
        ("zh_Hans", "en", ("back", ZH_EN)),
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


@pytest.fixture(scope="module")
def rivals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three checkpoints from English to Chinese, one of them both ways."""
    folder = tmp_path_factory.mktemp("rivals")
    write_tiny_checkpoint(folder / "a", name="ways", pairs=(EN_ZH, ZH_EN))
    write_tiny_checkpoint(folder / "b", name="old", pairs=(EN_ZH,))
    write_tiny_checkpoint(folder / "c", name="new", pairs=(EN_ZH,))
    return folder


@pytest.mark.parametrize(
    ("preferred", "chosen"),
    [
        ("", ("c", "old, ways")),
        ("gone, old", ("b", "new, ways")),
        ("ways,old", ("a", "old, new")),
    ],
)
def test_of_several_for_one_direction_the_servers_choice_translates_and_is_told(
    rivals: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    preferred: str,
    chosen: tuple[str, str],
) -> None:
    expected, others = chosen
    monkeypatch.setenv("DRAGOMAN_PREFERRED", preferred)
    name = load_checkpoints(rivals).usable["abc".index(expected)].manifest.name
    table = RoutingTable(
        [one.offer for one in load_checkpoints(rivals).usable], preferred=load_settings().preferred
    )
    served = table.all.hop("en", "zh-Hans")
    assert served is not None
    assert served.checkpoint == name
    assert choose(rivals, None, "zh") == (expected, EN_ZH)
    told = f"dragoman: en → zh-Hans by {name}; --model names another one: {others}\n"
    assert capsys.readouterr().err == told
    assert choose(rivals, "zh", "en") == ("a", ZH_EN)
    assert capsys.readouterr().err == "", "there was no choice"


def test_a_model_is_picked_by_its_name(rivals: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert choose(rivals, None, "zh", model="ways") == ("a", EN_ZH)
    assert choose(rivals, model="old") == ("b", EN_ZH)
    assert capsys.readouterr().err == ""
    with pytest.raises(ConfigError, match=r"--model is 'none'; .* has ways, old, new$"):
        choose(rivals, "en", "zh", model="none")
    with pytest.raises(ConfigError, match=r"^0 language pairs fit --from zh; the checkpoint has"):
        choose(rivals, "zh", None, model="new")
    assert single_checkpoint(rivals, "new") == rivals / "c"
    with pytest.raises(ConfigError, match="--model is 'none'"):
        single_checkpoint(rivals, "none")


def test_of_two_checkpoints_with_one_name_the_first_counts_as_it_is_served(tmp_path: Path) -> None:
    for folder, pair in (("a", EN_ZH), ("b", ZH_EN)):
        write_tiny_checkpoint(tmp_path / folder, name="one", pairs=(pair,))
    assert choose(tmp_path) == ("a", EN_ZH)


@pytest.mark.parametrize(
    ("source", "target"), [("en", "en"), ("en-US", "EN"), ("zh_CN", "zh"), ("fr", "fr-CA")]
)
def test_a_language_into_itself_needs_no_direction(folder: Path, source: str, target: str) -> None:
    flags = argparse.Namespace(source_language=source, target_language=target, model=None)
    assert chosen_or_same(flags, folder, sample=_nothing) is None
    with pytest.raises(ConfigError, match="0 language pairs fit"):
        chosen_direction(flags, folder)


def test_a_direction_goes_before_staying_in_a_language(folder: Path) -> None:
    flags = argparse.Namespace(source_language="en", target_language="de", model=None)
    found = chosen_or_same(flags, folder, sample=_nothing)
    assert found is not None
    assert found.pair == EN_DE
    for target in (None, "zh-TW", "e n"):
        flags = argparse.Namespace(source_language="en", target_language=target, model=None)
        with pytest.raises(ConfigError):
            chosen_or_same(flags, folder, sample=_nothing)


@pytest.mark.parametrize("source", [None, "auto"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Guten Tag, wie geht es Ihnen?", DE_EN),
        ("你好，你好吗？", ZH_EN),
        ("Good morning, how are you?", None),
    ],
)
def test_the_text_says_its_language_where_that_alone_is_open(
    folder: Path,
    source: str | None,
    text: str,
    expected: LanguagePair | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = argparse.Namespace(source_language=source, target_language="en-GB", model=None)
    found = chosen_or_same(flags, folder, sample=lambda: text)
    assert (found and found.pair) == expected
    tag = "en" if expected is None else expected.source
    assert f"the text is taken as {tag}; --from says it otherwise" in capsys.readouterr().err


@pytest.mark.parametrize("source", [None, "auto"])
def test_one_direction_that_fits_is_refused_for_a_text_in_another_language(
    folder: Path, source: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = argparse.Namespace(source_language=source, target_language="zh", model=None)
    with pytest.raises(ConfigError, match="no checkpoint goes from de to zh-Hans; give --from en"):
        chosen_or_same(flags, folder, sample=lambda: "Guten Tag, wie geht es Ihnen?")
    assert "the text is taken as de" in capsys.readouterr().err
    found = chosen_or_same(flags, folder, sample=lambda: "Good morning, how are you?")
    assert found is not None
    assert found.pair == EN_ZH
    for text in ("", "12:30", "OK"):
        found = chosen_or_same(flags, folder, sample=lambda text=text: text)  # type: ignore[misc]
        assert found is not None
    assert capsys.readouterr().err == "", "a text that says nothing, or what fits, is no news"
    assert chosen_or_same(flags, folder, sample=lambda: "你好，你好吗？") is None
    flags = argparse.Namespace(source_language="en", target_language="zh", model=None)
    found = chosen_or_same(flags, folder, sample=lambda: "Guten Tag, wie geht es Ihnen?")
    assert found is not None


@pytest.mark.parametrize(
    "text",
    [
        "Hamburger", "Kindergarten", "Angst", "Die hard", "Volkswagen Passat 2.0 TDI",
        "Angela Merkel", "猫",
    ],
)  # fmt: skip
@pytest.mark.parametrize(("target", "pair"), [("zh", EN_ZH), ("de", EN_DE)])
def test_a_word_or_a_name_is_surely_in_no_language(
    folder: Path, text: str, target: str, pair: LanguagePair, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = argparse.Namespace(source_language=None, target_language=target, model=None)
    found = chosen_or_same(flags, folder, sample=lambda: text)
    assert found is not None
    assert found.pair == pair
    assert capsys.readouterr().err == ""


def test_two_letters_of_another_script_say_enough(folder: Path) -> None:
    flags = argparse.Namespace(source_language=None, target_language="zh", model=None)
    assert chosen_or_same(flags, folder, sample=lambda: "你好") is None
    flags = argparse.Namespace(source_language=None, target_language="de", model=None)
    with pytest.raises(ConfigError, match="no checkpoint goes from zh-Hans to de"):
        chosen_or_same(flags, folder, sample=lambda: "你好")


def test_a_file_whose_beginning_is_in_the_targets_language_is_translated_and_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for target, text, source, tag in (
        ("zh", "你好，你好吗？", "en", "zh-Hans"),
        ("en", "Good morning, how are you?", "de", "en"),
    ):
        flags = argparse.Namespace(source_language=None, target_language=target, model=None)
        found = chosen_or_same(flags, folder, sample=lambda text=text: text, is_whole=False)  # type: ignore[misc]
        assert found is not None
        assert found.pair == LanguagePair(source=source, target=tag)
        assert capsys.readouterr().err == (
            f"dragoman: the beginning seems to be in {tag} already; all is translated from"
            f" {source}; --from says it otherwise\n"
        )


def test_a_file_that_begins_in_the_targets_language_alone_needs_its_own(tmp_path: Path) -> None:
    pairs = (ZH_EN, LanguagePair(source="ru", target="en"))
    write_tiny_checkpoint(tmp_path / "one", name="one", pairs=pairs)
    flags = argparse.Namespace(source_language=None, target_language="en", model=None)
    with pytest.raises(ConfigError, match="2 language pairs fit --to en"):
        chosen_or_same(flags, tmp_path, sample=lambda: "Good morning, how?", is_whole=False)


def test_a_file_that_begins_in_no_language_that_there_is_needs_its_own(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = argparse.Namespace(source_language=None, target_language="en", model=None)
    for text in ("https://example.org/cat", "Καλημέρα σας"):
        with pytest.raises(ConfigError, match="2 language pairs fit --to en"):
            chosen_or_same(flags, folder, sample=lambda text=text: text, is_whole=False)  # type: ignore[misc]
    assert capsys.readouterr().err == ""
    for text in ("", "12:30"):  # nothing in it has a language
        flags = argparse.Namespace(source_language=None, target_language="en", model=None)
        found = chosen_or_same(flags, folder, sample=lambda text=text: text, is_whole=False)  # type: ignore[misc]
        assert found is not None


def test_a_text_that_cannot_be_looked_at_needs_its_language(folder: Path) -> None:
    flags = argparse.Namespace(source_language=None, target_language="en", model=None)
    with pytest.raises(ConfigError, match="2 language pairs fit --to en"):
        chosen_or_same(flags, folder, sample=_nothing)


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


def test_what_cannot_be_read_is_told_and_left_out_beside_what_can(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(folder, tmp_path / "several")
    (folder / "lost+found").mkdir()
    (folder / "back" / "config.json").write_text("{")
    assert choose(folder, "en", "zh") == ("there", EN_ZH)
    told = capsys.readouterr().err
    assert "left out: " in told
    assert f"{folder}/lost+found/checksums.sha256: is missing" in told
    with pytest.raises(ConfigError, match="0 language pairs fit --from '' --to fr"):
        choose(folder, "", "fr")
    for name in ("back", "both"):
        shutil.rmtree(folder / name)
    assert single_checkpoint(folder) == folder / "there"


def test_a_command_that_asks_for_no_languages_needs_one_checkpoint(
    folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=f"{folder} has 3 .*; name one of back, both, there"):
        single_checkpoint(folder)
    assert single_checkpoint(folder / "both") == folder / "both"
    assert single_checkpoint(tmp_path / "none") == tmp_path / "none"
