from collections.abc import Sequence
from pathlib import Path

import pytest

from model.errors import ConfigError
from model.offline import evaluate
from model.offline.evaluate import Scores, score
from service.cli.main import main
from service.cli.network import evaluate as command
from support.tiny_checkpoint import generated_pairs, write_tiny_checkpoint


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluate")
    write_tiny_checkpoint(folder / "tiny")
    for language, side in (("en", 0), ("zh", 1)):
        lines = "".join(f"{pair[side]}\n" for pair in generated_pairs(8))
        (folder / f"talk.{language}").write_text(lines, encoding="utf-8")
    return folder


def arguments(folder: Path, *more: str) -> list[str]:
    paths = [str(folder / name) for name in ("tiny", "talk.en", "talk.zh")]
    chosen = ["--from", "en", "--to", "zh-Hans", "--beam-size", "2", "--device", "cpu"]
    return ["evaluate", *paths, *chosen, *more]


def test_scores_are_printed_with_their_signatures_and_translations_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.zh"
    assert main(arguments(folder, "--tokenize", "zh", "--output", str(output))) == 0
    bleu, chrf = capsys.readouterr().out.splitlines()
    assert bleu.startswith("BLEU ")
    assert "tok:zh" in bleu
    assert chrf.startswith("chrF2 ")
    assert output.read_text(encoding="utf-8").count("\n") == 8


def test_the_tokenizer_follows_the_target_language(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(folder)) == 0
    assert "tok:zh" in capsys.readouterr().out


def test_a_tokenizer_that_cannot_be_used_is_refused_before_anything_is_loaded(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "opened_by_flags", None)
    assert main(arguments(folder, "--tokenize", "words")) == 1
    assert capsys.readouterr().err.startswith("dragoman: tokenizer is 'words'; it must be one of")


def test_translations_are_there_where_they_cannot_be_scored(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(hypotheses: Sequence[str], references: Sequence[str], *, tokenizer: str) -> Scores:
        if len(hypotheses) > 1:  # the tokenizer is tried on one
            raise ConfigError(f"{tokenizer} fails")
        return score(hypotheses, references, tokenizer=tokenizer)

    monkeypatch.setattr(evaluate, "score", failing)
    output = tmp_path / "out.zh"
    assert main(arguments(folder, "--output", str(output))) == 1
    assert output.read_text(encoding="utf-8").count("\n") == 8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--tokenize", "words"], "tokenizer is 'words'"),
        (["--to", "fr"], "0 language pairs fit --from en --to fr"),
        (["--beam-size", "0"], "--beam-size is 0; it must be from 1 to 128"),
        (["--output", "/nowhere/out"], "/nowhere/out: No such file or directory"),
        (["--output", "a" * 300], f"{'a' * 300}: File name too long"),
        (["--threads", "0"], "--threads is 0; it must be from 1 to 1024"),
        (["--threads", "99999999999"], "--threads is 99999999999; it must be from 1 to 1024"),
    ],
)
def test_foreseen_errors_are_one_line(
    folder: Path, changes: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(folder, *changes)) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_path_that_cannot_be_is_one_line(
    folder: Path, place: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = arguments(folder)
    words[place] = "a" * 300
    assert main(words) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"dragoman: {'a' * 300}: ")
    assert "File name too long" in error


def test_a_missing_file_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = arguments(folder)
    words[2] = str(folder / "none.en")
    assert main(words) == 1
    assert "none.en" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("num_lines", "message"),
    [
        (5, "less.zh:6: no such line; "),
        (0, "less.zh:1: no such line; "),
    ],
)
def test_sides_that_do_not_match_are_named_before_a_checkpoint_is_read(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    num_lines: int,
    message: str,
) -> None:
    words = arguments(folder)
    words[1] = str(tmp_path / "no-checkpoint")
    words[3] = str(tmp_path / "less.zh")
    lines = (folder / "talk.zh").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "less.zh").write_text("".join(lines[:num_lines]), encoding="utf-8")
    assert main(words) == 1
    error = capsys.readouterr().err
    assert message in error
    assert f"talk.en has 8 lines but {tmp_path}/less.zh has {num_lines}" in error


def test_a_blank_line_is_scored_like_any_other(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = arguments(folder)
    for place, name, line in (
        (2, "blank.en", "\nThe cat waits.\n"),
        (3, "blank.zh", "\n猫等待。\n"),
    ):
        words[place] = str(tmp_path / name)
        (tmp_path / name).write_text(line, encoding="utf-8")
    assert main(words) == 0
    assert "BLEU" in capsys.readouterr().out


def test_without_a_checkpoint_it_is_the_one_that_the_environment_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(folder)) == 0
    expected = capsys.readouterr().out
    monkeypatch.setenv("DRAGOMAN_CHECKPOINT", str(folder / "tiny"))
    words = arguments(folder)
    for changed in (
        [words[0], *words[2:]],
        ["evaluate", "--beam-size", "2", words[2], words[3], "--from", "EN", "--to", "zh"],
        ["evaluate", words[1], "--to", "zh-CN", "--beam-size", "2", words[2], words[3]],
    ):
        assert main(changed) == 0
        assert capsys.readouterr().out == expected


@pytest.mark.parametrize("name", ["talk.en", "talk.zh", "tiny/config.json"])
def test_what_is_read_is_not_destroyed_as_output(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / name).read_bytes()
    assert main(arguments(folder, "--output", str(folder / name))) == 1
    assert f"{folder / name}: is a file that this command reads" in capsys.readouterr().err
    assert (folder / name).read_bytes() == before
