"""Lines that a command has kept beside its output, and that the next one goes on from."""

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from model.offline.translator import Translator
from service.cli.main import main
from service.cli.streams.line_output import LineOutput
from support.forked import Forked, Send
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

SENTENCES = [f"The cat sees {number} rivers." for number in range(7)]
KEPT_BEFORE_THE_END = 3


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("cli") / "tiny", pairs=(EN_ZH,))


def test_what_was_left_of_another_input_is_not_continued(checkpoint: Path, tmp_path: Path) -> None:
    source, output = tmp_path / "source.txt", tmp_path / "output.txt"
    flags = ["--checkpoint", str(checkpoint), "--beam-size", "1", "--output", str(output)]
    source.write_bytes(b"7.30\n8.30\n")
    shorter = tmp_path / "shorter.txt"
    shorter.write_bytes(b"7.30\n")
    assert main(["translate", str(source), "--nearest-to", str(shorter), *flags]) == 1
    assert not output.exists()
    (partial,) = tmp_path.glob(".output.txt.*.partial")
    partial.write_text("of another input\n")
    assert main(["translate", str(source), *flags]) == 0
    assert output.read_text() == "7.30\n8.30\n"


@pytest.mark.parametrize("source", ["source.txt", "source.txt.gz"])
def test_a_line_that_is_not_utf8_is_told_before_any_work_is_done(
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    source: str,
) -> None:
    """The input that is mended is another one, which does not go on from kept lines."""
    monkeypatch.chdir(tmp_path)
    data = b"7.30\n" * 4_000 + b"\xff\n"
    Path(source).write_bytes(gzip.compress(data) if source.endswith(".gz") else data)
    flags = ["--checkpoint", str(checkpoint), "--beam-size", "1", "--output", "output.txt"]
    assert main(["translate", source, *flags]) == 1
    assert f"{source}:4001: not valid UTF-8" in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [source]


def dying(
    send: Send, words: list[str], end: signal.Signals | None, source: Path, errors: Path
) -> None:
    """A command that ends itself when so many lines are kept, by a signal or as Ctrl-C would.

    `source` is its standard input, `errors` gets its standard error.
    """
    with source.open("rb") as stream, errors.open("wb") as said:
        os.dup2(stream.fileno(), 0)
        os.dup2(said.fileno(), 2)
    sys.stdin, sys.stderr = open(0, closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    keep = LineOutput.keep

    def keep_and_die(output: LineOutput, number: int, line: str) -> None:
        keep(output, number, line)
        if output.num_lines == KEPT_BEFORE_THE_END:
            if end is None:
                raise KeyboardInterrupt
            os.kill(os.getpid(), end)

    LineOutput.keep = keep_and_die
    raise SystemExit(main(words))


@pytest.mark.parametrize(
    ("source", "end", "status"),
    [
        ("source.txt", signal.SIGKILL, -9),
        ("source.txt.gz", signal.SIGKILL, -9),
        ("-", signal.SIGTERM, 143),
        ("source.txt", None, 130),
    ],
)
def test_whatever_ends_a_command_its_lines_are_kept_and_the_same_one_goes_on(
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    source: str,
    end: signal.Signals | None,
    status: int,
) -> None:
    text = "".join(f"{line}\n" for line in SENTENCES).encode()
    folder = tmp_path / "work"
    folder.mkdir()
    path = folder / ("source.txt" if source == "-" else source)
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    whole, output, errors = folder / "whole.txt", folder / "output.txt", tmp_path / "errors"
    flags = ["--checkpoint", str(checkpoint), "--beam-size", "2"]
    assert main(["translate", str(path), *flags, "--output", str(whole)]) == 0
    name = source if source == "-" else str(path)
    words = ["translate", name, *flags, "--output", str(output)]
    command = Forked(dying, words, end, path, errors)
    command.rest()
    assert command.process.exitcode == status
    told = f"dragoman: interrupted; {KEPT_BEFORE_THE_END} lines are kept beside {output}; "
    assert errors.read_text().startswith(told if status > 0 else "")
    assert not output.exists()

    translated: list[str] = []
    each = Translator.translate_each

    def counted(
        translator: Translator, texts: list[str], *rest: object, **options: object
    ) -> object:
        translated.extend(texts)
        return each(translator, texts, *rest, **options)

    monkeypatch.setattr(Translator, "translate_each", counted)
    with path.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert main(words) == 0
    assert len(translated) == len(SENTENCES) - KEPT_BEFORE_THE_END
    assert output.read_bytes() == whole.read_bytes()
    assert sorted(folder.iterdir()) == sorted([path, whole, output])


@pytest.mark.parametrize("change", ["beam", "checkpoint", "reference"])
def test_lines_of_another_command_are_not_gone_on_from(
    checkpoint: Path, tmp_path: Path, change: str
) -> None:
    source, output, reference = (tmp_path / name for name in ("source", "output", "reference"))
    for path in (source, reference):
        path.write_text("".join(f"{line}\n" for line in SENTENCES))
    other = write_tiny_checkpoint(tmp_path / "other", pairs=(EN_ZH,), seed=6)

    def words(*, is_changed: bool) -> list[str]:
        beam = "2" if change == "beam" and is_changed else "3"
        chosen = other if change == "checkpoint" and is_changed else checkpoint
        if change == "reference" and is_changed:
            reference.write_text("changed\n" * len(SENTENCES))
        flags = ["--checkpoint", str(chosen), "--beam-size", beam]
        return ["translate", str(source), *flags, "--nearest-to", str(reference)]

    arguments = [*words(is_changed=False), "--output", str(output)]
    command = Forked(dying, arguments, signal.SIGKILL, source, tmp_path / "errors")
    command.rest()
    assert command.process.exitcode == -9
    (ahead,) = tmp_path.glob(".output.*.partial.ahead")
    ahead.write_text("".join(f"{number}\tforeign\n" for number in range(len(SENTENCES))))
    assert main([*words(is_changed=True), "--output", str(output)]) == 0
    assert "foreign" not in output.read_text()


def test_an_interrupted_command_says_that_a_pipe_is_not_gone_on_from(
    checkpoint: Path, tmp_path: Path
) -> None:
    code = """
import sys
from service.cli.streams.line_output import LineOutput
from service.cli.main import main

keep = LineOutput.keep

def keep_and_interrupt(output, number, line):
    keep(output, number, line)
    raise KeyboardInterrupt

LineOutput.keep = keep_and_interrupt
sys.exit(main(sys.argv[1:]))
"""
    words = ["translate", "--checkpoint", str(checkpoint), "--output", str(tmp_path / "output")]
    ended = subprocess.run(
        [sys.executable, "-c", code, *words], input=b"A cat.\n", capture_output=True, check=False
    )
    assert (ended.returncode, ended.stderr.decode()) == (
        130,
        "dragoman: interrupted; nothing is kept, because the input is a pipe and passes once\n",
    )
    assert not [*tmp_path.iterdir()]


def test_lines_that_are_there_are_not_translated_again(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = tmp_path / "source.txt", tmp_path / "output.txt"
    source.write_text("".join(f"The cat sees {number} rivers.\n" for number in range(30)))
    command = ["translate", str(source), "--checkpoint", str(checkpoint), "--beam-size", "1"]
    arguments = [*command, "--output", str(output)]

    def fail(*_: object) -> None:
        raise OSError("no")

    with monkeypatch.context() as patched:  # the last step, giving the file its name, fails
        patched.setattr(Path, "replace", fail)
        assert main(arguments) == 1
    (partial,) = tmp_path.glob(".output.txt.*.partial")
    whole = partial.read_bytes()
    lines = whole.split(b"\n")
    partial.write_bytes(b"\n".join([b"kept", *lines[1:20], b"half a li"]))
    assert main(arguments) == 0
    assert output.read_bytes() == b"\n".join([b"kept", *lines[1:]])
    assert not partial.exists()
    partial.write_bytes(b"foreign\n" * 31)
    assert main(arguments) == 1
    assert output.read_bytes() == b"\n".join([b"kept", *lines[1:]])
