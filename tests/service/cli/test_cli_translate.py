import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from model.errors import CheckpointError, ConfigError, DataError
from service.cli.main import build_parser, main
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

LINES = ["The cat sees the river.", "", "  7.30\t", "She paints a letter.\r", "7.30 \u2028 8"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("cli") / "tiny", pairs=(EN_ZH,))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.txt"
    path.write_bytes("\n".join(LINES).encode() + b"\n")
    return path


def _output(capfd: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["translate", *arguments]) == 0
    return capfd.readouterr().out.split("\n")[:-1]


def test_line_n_of_the_output_is_line_n_of_the_input(
    checkpoint: Path, source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = _output(capfd, str(source), "--checkpoint", str(checkpoint), "--beam-size", "2")
    assert len(lines) == len(LINES)
    assert lines[1:3] == LINES[1:3]
    assert lines[4] == LINES[4]
    assert lines[3].endswith("\r")
    assert lines[0] not in ("", LINES[0])


def test_a_reader_that_has_enough_is_no_error(checkpoint: Path, tmp_path: Path) -> None:
    many = tmp_path / "many.txt"
    many.write_text("7.30\n" * 50_000)
    command = [sys.executable, "-m", "service.cli.main", "translate", str(many)]
    with subprocess.Popen(
        [*command, "--checkpoint", str(checkpoint)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"7.30\n"
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_without_a_terminal_nothing_is_drawn(
    checkpoint: Path, source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["translate", str(source), "--checkpoint", str(checkpoint)]) == 0
    assert capfd.readouterr().err == ""


def test_standard_input_is_read_where_no_file_is_named_and_a_terminal_gets_a_progress_bar(
    checkpoint: Path, source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flags = ["--checkpoint", str(checkpoint), "--beam-size", "1"]
    expected = "\n".join([*_output(capfd, str(source), *flags), ""])
    screen, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    result = subprocess.run(
        [sys.executable, "-m", "service.cli.main", "translate", *flags],
        input=source.read_bytes(),
        stdout=subprocess.PIPE,
        stderr=terminal,
        check=True,
    )
    os.close(terminal)
    assert result.stdout.decode() == expected
    assert b"2 segments" in os.read(screen, 10_000)
    os.close(screen)


@pytest.mark.parametrize(
    ("flags", "error", "message"),
    [
        (["--to", "de"], ConfigError, "the checkpoint has en → zh-Hans"),
        (["--beam-size", "0"], ConfigError, "beam_size is 0"),
        (["--checkpoint", "/nowhere"], CheckpointError, "/nowhere"),
    ],
)
def test_what_cannot_be_done_is_said(
    checkpoint: Path, source: Path, flags: list[str], error: type[Exception], message: str
) -> None:
    arguments = ["translate", str(source), "--checkpoint", str(checkpoint), *flags]
    parsed = build_parser().parse_args(arguments)
    with pytest.raises(error, match=message):
        parsed.run(parsed)


def test_a_file_that_is_missing_or_not_utf8_is_named(checkpoint: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.txt"
    wrong.write_bytes(b"good\n\xff\n")
    for path, message in ((wrong, "not valid UTF-8"), (tmp_path / "none", "No such file")):
        parsed = build_parser().parse_args(
            ["translate", str(path), "--checkpoint", str(checkpoint)]
        )
        with pytest.raises(DataError, match=f"{path}: {message}"):
            parsed.run(parsed)
