from pathlib import Path

import pytest

from service.cli.main import main
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--tokenize", "words"], "tokenizer is 'words'"),
        (["--to", "fr"], "0 language pairs fit --from en --to fr"),
        (["--beam-size", "0"], "beam_size is 0"),
        (["--output", "/nowhere/out"], "/nowhere/out: No such file or directory"),
        (["--threads", "0"], "--threads is 0"),
    ],
)
def test_foreseen_errors_are_one_line(
    folder: Path, changes: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(folder, *changes)) == 1
    assert message in capsys.readouterr().err


def test_a_missing_file_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = arguments(folder)
    words[2] = str(folder / "none.en")
    assert main(words) == 1
    assert "none.en" in capsys.readouterr().err
