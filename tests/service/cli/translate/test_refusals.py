"""Refusals of `dragoman translate`: files it would destroy, flags, and files that are no text."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from model.errors import CheckpointError, ConfigError, DataError
from service.cli.main import build_parser, main
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("cli") / "tiny", pairs=(EN_ZH,))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.txt"
    path.write_text("The cat sees the river.\n")
    return path


@pytest.mark.parametrize("flag", ["--glossary", "--nearest-to"])
@pytest.mark.parametrize("languages", [[], ["--from", "en", "--to", "en"]])
def test_what_is_read_beside_the_input_is_not_destroyed_as_output(
    checkpoint: Path,
    source: Path,
    capsys: pytest.CaptureFixture[str],
    flag: str,
    languages: list[str],
) -> None:
    beside, link = source.with_name("beside.tsv"), source.with_name("link")
    beside.write_text("cat\t猫\n")
    link.symlink_to(beside)
    for output in (beside, link):
        words = ["translate", str(source), "--checkpoint", str(checkpoint), *languages]
        assert main([*words, flag, str(beside), "--output", str(output)]) == 1
        assert "this command reads" in capsys.readouterr().err
    assert beside.read_text() == "cat\t猫\n"


def test_the_input_is_not_destroyed_as_output(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However it is named; and neither are the references nor the checkpoint."""
    book, link, hard = (tmp_path / name for name in ("book.txt", "link", "hard"))
    reference = tmp_path / "reference"
    for path in (book, reference):
        path.write_text("The cat sees the river.\n")
    link.symlink_to(book)
    hard.hardlink_to(book)
    before = {path: path.read_bytes() for path in (book, reference, *checkpoint.iterdir())}
    with book.open() as stream:
        for source, output in (
            (book, book),
            (link, book),
            (book, link),
            (book, hard),
            (Path(f"/dev/fd/{stream.fileno()}"), book),
            (book, reference),
            (book, checkpoint / "config.json"),
        ):
            words = ["translate", str(source), "--checkpoint", str(checkpoint)]
            words += ["--nearest-to", str(reference), "--output", str(output)]
            assert main(words) == 1
            error = capsys.readouterr().err
            assert error.startswith(f"dragoman: {output}: is ")
            assert error.endswith(" this command reads; write to another one\n")
    assert {path: path.read_bytes() for path in before} == before
    assert sorted(tmp_path.iterdir()) == sorted([book, hard, link, reference])


@pytest.mark.parametrize("arrow", [">", ">>"])
def test_standard_output_into_the_input_is_told_and_not_read_for_ever(
    checkpoint: Path, tmp_path: Path, arrow: str
) -> None:
    book = tmp_path / "book.txt"
    book.write_text("The cat sees the river.\n")
    command = f"{sys.executable} -m service.cli.main translate --checkpoint {checkpoint}"
    for line in (f"{command} {book} {arrow} {book}", f"{command} < {book} {arrow} {book}"):
        ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert ended.returncode == 1
        assert "standard output goes to this file, which this command reads" in ended.stderr
    assert book.read_text() == ("The cat sees the river.\n" if arrow == ">>" else "")


@pytest.mark.parametrize(
    ("flags", "error", "message"),
    [
        (["--to", "de"], ConfigError, "0 .* --to de; the checkpoint has en → zh-Hans"),
        (["--beam-size", "0"], ConfigError, "--beam-size is 0; it must be from 1 to 128"),
        (["--beam-size", "100000"], ConfigError, "--beam-size is 100000; it must be"),
        (["--max-rows", "-1"], ConfigError, "--max-rows is -1; it must be from 1 to 65536"),
        (["--checkpoint", "/nowhere"], ConfigError, "no checkpoint directory /nowhere; name one"),
        (["--checkpoint", "a" * 300], CheckpointError, "^a{300}: File name too long$"),
        (["--output", "a" * 300], DataError, "^a{300}: File name too long$"),
        (["--output", "/"], DataError, "^/: is a directory; it must be a file$"),
        (["--nearest-to", "a" * 300], DataError, "^a{300}: File name too long$"),
    ],
)
def test_what_cannot_be_done_is_said(
    checkpoint: Path, source: Path, flags: list[str], error: type[Exception], message: str
) -> None:
    arguments = ["translate", str(source), "--checkpoint", str(checkpoint), *flags]
    parsed = build_parser().parse_args(arguments)
    with pytest.raises(error, match=message):
        parsed.run(parsed)


def test_lines_before_one_that_is_not_utf8_are_translated(
    checkpoint: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.txt"
    path.write_bytes(b"7.30\n8.30\n\xff\n9.30\n")
    flags = ["--checkpoint", str(checkpoint), "--from", "en", "--to", "zh"]
    assert main(["translate", str(path), *flags]) == 1
    said = capfd.readouterr()
    assert said.out == "7.30\n8.30\n"
    assert "wrong.txt:3: not valid UTF-8" in said.err


def test_a_file_that_is_missing_or_not_utf8_is_named(checkpoint: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.txt"
    wrong.write_bytes(b"good\n\xff\n")
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(b"text\n" * 100)[:20])
    wide, packed = tmp_path / "wide.txt", tmp_path / "packed.txt"
    wide.write_bytes("text\n".encode("utf-16"))
    packed.write_bytes(gzip.compress(b"text\n"))
    for path, message in (
        (wrong, "2: not valid UTF-8"),
        (wide, "is text in UTF-16; lines are read from text in UTF-8"),
        (packed, "is packed by gzip; lines are read"),
        (tmp_path / "none", "No such file"),
        (tmp_path / ("a" * 300), "File name too long"),
        (Path("/proc/self/mem"), ".*Input/output error"),
        (cut, "Compressed file ended"),
    ):
        parsed = build_parser().parse_args(
            ["translate", str(path), "--checkpoint", str(checkpoint)]
        )
        with pytest.raises(DataError, match=f"{path}: ?{message}"):
            parsed.run(parsed)
