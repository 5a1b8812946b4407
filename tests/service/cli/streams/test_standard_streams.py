"""All that a command prints goes out, whatever standard output is, or its status says otherwise."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

_NUM_LINES = 40_000
LINES = "".join(f"{number} 猫\n" for number in range(_NUM_LINES)).encode()
PAGE = b"<p>" + LINES + b"</p>\n"
UNBUFFERED = pytest.mark.parametrize("unbuffered", ["", "1"])
KIND = pytest.mark.parametrize(("name", "data"), [("a.txt", LINES), ("a.html", PAGE)])


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("cli") / "tiny", pairs=(EN_ZH,))


def _begun(
    source: Path,
    checkpoint: Path,
    output: BinaryIO | int,
    unbuffered: str,
    *before: str,
) -> subprocess.Popen[bytes]:
    """A command that writes a file as it is, its language being the one that is wanted."""
    return subprocess.Popen(
        [
            *before, sys.executable, "-m", "service.cli.main", "translate", str(source),
            "--checkpoint", str(checkpoint), "--from", "en", "--to", "en",
        ],
        stdout=output,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )  # fmt: skip


@KIND
@UNBUFFERED
def test_a_file_that_gets_full_is_told(
    checkpoint: Path, tmp_path: Path, name: str, data: bytes, unbuffered: str
) -> None:
    source, output = tmp_path / name, tmp_path / "output"
    source.write_bytes(data)
    limit = ("bash", "-c", 'ulimit -f 1; exec "$@"', "limited")
    with output.open("wb") as stream:
        process = _begun(source, checkpoint, stream, unbuffered, *limit)
        told = process.communicate()[1]
    assert (process.returncode, told) == (1, b"dragoman: standard output: File too large\n")
    assert output.read_bytes() == data[:1024]


@KIND
@UNBUFFERED
def test_a_pipe_that_does_not_block_gets_everything(
    checkpoint: Path, tmp_path: Path, name: str, data: bytes, unbuffered: str
) -> None:
    source = tmp_path / name
    source.write_bytes(data)
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writing, False)
    process = _begun(source, checkpoint, writing, unbuffered)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        found = stream.read()
    told = process.communicate()[1]
    assert (process.returncode, told) == (0, b"")
    assert found == data


@pytest.mark.parametrize("flags", [["-u"], []])
def test_a_line_is_there_at_once_where_nothing_is_to_be_buffered(flags: list[str]) -> None:
    code = (
        "import sys; from service.cli.streams.standard_streams import open_streams\n"
        "open_streams(); print('猫'); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, *flags, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if not flags:
            process.stdin.close()
        assert process.stdout.readline() == "猫\n".encode()
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0
