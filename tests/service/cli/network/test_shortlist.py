"""A shortlist from text, and the commands that are told to use it."""

from pathlib import Path

import numpy as np
import pytest

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.shortlist import read_shortlist
from model.checkpoint.tokenizer import load_tokenizer
from model.errors import CheckpointError, ConfigError, DataError
from model.text.languages.tags import LanguagePair
from service.cli.main import build_parser, main
from support.tiny_checkpoint import EN_ZH, ZH_EN, generated_pairs, write_tiny_checkpoint


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint, aligned text, and `listed`: the copy that the command makes."""
    folder = tmp_path_factory.mktemp("shortlist")
    write_tiny_checkpoint(folder / "tiny", pairs=(EN_ZH,))
    sides = zip(*generated_pairs(60), strict=True)
    for name, lines in zip(("text.en", "text.zh"), sides, strict=True):
        (folder / name).write_text("\n".join([*lines, ""]) + "\n", encoding="utf-8")
    names = [str(folder / name) for name in ("tiny", "text.en", "text.zh", "listed")]
    assert main(["shortlist", *names, "--frequent", "9", "--best", "3"]) == 0
    return folder


def test_the_copy_lists_what_stands_beside_each_other(folder: Path) -> None:
    manifest = read_manifest(folder / "listed")
    shortlist = read_shortlist(folder / "listed", manifest)
    tokenizer = load_tokenizer(folder / "listed", manifest)
    assert len(shortlist.always) == 9
    assert shortlist.with_source
    words = set(tokenizer.encode("Nobody", EN_ZH)[:-1])
    meanings = set(tokenizer.encode_target("没有人")[:-1])
    listed = set(shortlist.tokens(tuple(words), (), vocab_size=600).tolist()) - words
    assert meanings & listed
    assert max(shortlist.offsets[1:] - shortlist.offsets[:-1]) == 3
    card = (folder / "listed" / "card.md").read_text(encoding="utf-8")
    assert "Learnt from 60 aligned lines by IBM model 1: the 9 most frequent" in card


def test_translations_are_made_of_what_is_listed_where_it_is_asked_for(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def translated(*flags: str) -> str:
        capfd.readouterr()
        arguments = [str(folder / "text.en"), "--beam-size", "1", *flags]
        assert main(["translate", "--checkpoint", str(folder / "listed"), *arguments]) == 0
        return capfd.readouterr().out

    listed = read_shortlist(folder / "listed", read_manifest(folder / "listed"))
    assert len(listed.ids) < 600
    assert translated("--shortlist") != translated()
    assert translated("--shortlist", "--compute-type", "float32").count("\n") == 61


@pytest.mark.parametrize("command", ["translate", "evaluate", "bench"])
def test_a_checkpoint_without_one_is_one_clear_error(
    folder: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = [str(folder / "text.en"), str(folder / "text.zh")]
    arguments = {
        "translate": ["--checkpoint", str(folder / "tiny"), text[0]],
        "evaluate": [str(folder / "tiny"), *text],
        "bench": [str(folder / "tiny")],
    }[command]
    assert main([command, *arguments, "--shortlist"]) == 1
    assert "tiny: has no lexical shortlist; `dragoman shortlist` makes" in capsys.readouterr().err


def test_a_text_teaches_both_directions_and_no_third_language(tmp_path: Path, folder: Path) -> None:
    third = LanguagePair(source="en", target="de")
    for name, pairs in (("two", (EN_ZH, ZH_EN)), ("three", (EN_ZH, ZH_EN, third))):
        write_tiny_checkpoint(tmp_path / name, pairs=pairs)
    names = [str(folder / "text.en"), str(folder / "text.zh"), str(tmp_path / "new")]
    flags = ["--from", "en", "--to", "zh", "--best", "3"]
    assert main(["shortlist", str(tmp_path / "two"), *names, *flags]) == 0
    manifest = read_manifest(tmp_path / "new")
    shortlist = read_shortlist(tmp_path / "new", manifest)
    tokenizer = load_tokenizer(tmp_path / "new", manifest)
    for one, other in (("Nobody", "没有人"), ("没有人", "Nobody")):
        ids, wanted = tokenizer.encode(one, EN_ZH)[:-1], tokenizer.encode_target(other)[:-1]
        lists = [shortlist.ids[slice(*shortlist.offsets[i : i + 2])] for i in ids]
        assert set(wanted) & set(np.concatenate(lists).tolist())
    names[2] = str(tmp_path / "newer")
    arguments = build_parser().parse_args(["shortlist", str(tmp_path / "three"), *names, *flags])
    with pytest.raises(ConfigError, match="3 directions; text in en and zh-Hans teaches nothing"):
        arguments.run(arguments)


def test_a_flag_that_cannot_be_and_text_that_is_not_aligned_are_refused(folder: Path) -> None:
    names = [str(folder / name) for name in ("tiny", "text.en", "text.zh", "new")]
    for flags, problem in ((["--best", "0"], "--best is 0"), (["--frequent", "10001"], "10000")):
        arguments = build_parser().parse_args(["shortlist", *names, *flags])
        with pytest.raises(ConfigError, match=problem):
            arguments.run(arguments)
    (folder / "short.zh").write_text("猫\n", encoding="utf-8")
    names[2] = str(folder / "short.zh")
    arguments = build_parser().parse_args(["shortlist", *names])
    with pytest.raises(DataError, match=r"short\.zh:2: no such line"):
        arguments.run(arguments)
    assert not (folder / "new").exists()


@pytest.mark.parametrize("output", ["listed", "text.en", "link"])
def test_an_output_that_is_there_is_told_before_anything_is_learnt(
    folder: Path, output: str
) -> None:
    names = [str(folder / name) for name in ("tiny", "text.en", "nothing", output)]
    if output == "link":
        (folder / output).symlink_to(folder / "nowhere")
    arguments = build_parser().parse_args(["shortlist", *names])
    with pytest.raises(CheckpointError, match=rf"{output}: exists; a shortlist is written"):
        arguments.run(arguments)
