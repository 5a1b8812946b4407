import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from model.errors import ConfigError
from service.cli.main import build_parser, main
from service.cli.server import serve
from service.cli.signals import leaving_at_once
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

COMMANDS = ("serve", "translate", "train", "evaluate", "export", "bench", "pull", "models")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_sub_command_explains_itself(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert f"usage: dragoman {command}" in shown
    assert len(shown.splitlines()) > 5


def test_the_help_lists_every_sub_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(command in shown for command in COMMANDS)


def test_the_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("dragoman ")


def test_no_sub_command_is_wrong_usage() -> None:
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2


def test_a_foreseen_error_is_one_line_and_exit_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--checkpoint", str(tmp_path / "none")]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("dragoman: there is no checkpoint directory ")
    assert len(shown.err.splitlines()) == 1


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(serve, "run", interrupted)
    assert main(["serve"]) == 130


def test_a_relative_checkpoint_is_looked_for_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAGOMAN_CHECKPOINT", "checkpoints")
    arguments = build_parser().parse_args(["serve"])
    with pytest.raises(ConfigError, match=str(tmp_path / "checkpoints")):
        serve.run(arguments)


def test_the_parser_and_the_front_import_neither_torch_nor_what_redis_needs() -> None:
    code = (
        "import sys; from service.cli.main import build_parser; build_parser();"
        "import service.server; sys.exit(len({'torch', 'limits'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def shell(line: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", f"exec {sys.executable} -m service.cli.main {line}"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("keys new a >/dev/full", "dragoman: standard output: No space left on device\n"),
        ("keys new a >&-", "dragoman: stdout is closed; what is not wanted goes to /dev/null\n"),
        ("keys new a 2>&-", ""),
    ],
)
def test_output_that_goes_nowhere_is_one_line(line: str, message: str) -> None:
    ended = shell(line)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", message)


def test_a_closed_input_is_an_empty_one(tmp_path: Path) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))
    output = tmp_path / "out"
    ended = shell(f"translate --checkpoint {checkpoint} --output {output} <&-")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert output.read_bytes() == b""


def test_output_is_utf8_whatever_the_locale_says(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))
    source = tmp_path / "source"
    source.write_text("The cat sees the river.\n")
    assert main(["translate", str(source), "--checkpoint", str(checkpoint)]) == 0
    expected = capfd.readouterr().out
    ended = shell(f"translate {source} --checkpoint {checkpoint}", PYTHONIOENCODING="ascii")
    assert ended.stdout == expected
    assert not expected.isascii()


@pytest.mark.parametrize("problem", [MemoryError(), MemoryError("std::bad_alloc")])
def test_too_little_memory_is_one_line(
    problem: MemoryError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise problem

    monkeypatch.setattr(serve, "run", fail)
    assert main(["serve"]) == 1
    assert capsys.readouterr().err.startswith("dragoman: not enough memory: ")


def test_sigterm_ends_a_command_as_an_error_would(monkeypatch: pytest.MonkeyPatch) -> None:
    left = []

    def run(_: object) -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        finally:
            left.append("cleared")
        return 0

    monkeypatch.setattr(serve, "run", run)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as caught:
        main(["serve"])
    assert caught.value.code == 143
    assert left == ["cleared"]
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("command", ["serve", "route"])
def test_a_hangup_before_there_is_a_loop_ends_no_server(command: str) -> None:
    code = f"""
import os, signal, sys
from service.cli import main
build = main.build_parser
def build_slowly(wanted):
    os.kill(os.getpid(), signal.SIGHUP)  # as early as flags are read
    return build(wanted)
def run(_):
    os.kill(os.getpid(), signal.SIGHUP)
    return 0
main.build_parser = build_slowly
from service.cli.server import {command}
{command}.run = run
assert main.main(["{command}"]) == 0
assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("handler", "status", "tidied"), [("SIG_DFL", 129, "tidied\n"), ("SIG_IGN", 0, "done\n")]
)
def test_a_hangup_ends_any_other_command_as_an_error_would_unless_it_is_ignored(
    handler: str, status: int, tidied: str
) -> None:
    """`nohup` has it ignored."""
    code = f"""
import os, signal, sys
signal.signal(signal.SIGHUP, signal.{handler})
from service.cli.main import main
from service.cli.server import keys
def run(_):
    try:
        os.kill(os.getpid(), signal.SIGHUP)
        print("done", flush=True)
        return 0
    except SystemExit:
        print("tidied", flush=True)
        raise
keys.run = run
sys.exit(main(["keys", "new", "a"]))
"""
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (status, tidied)


def test_ctrl_c_while_libraries_are_imported_ends_at_once() -> None:
    """Some of them swallow Python's own exception."""
    code = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from service.cli.signals import leaving_at_once
with leaving_at_once():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
    except BaseException:
        pass
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 130


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (FileNotFoundError(2, "No such file or directory", "a/b"), "a/b: No such file or dir"),
        (OSError(98, "Address already in use"), "[Errno 98] Address already in use"),
    ],
)
def test_an_error_of_the_system_is_one_line_and_does_not_blame_the_output(
    problem: OSError,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: object) -> int:
        sys.stdout.write("kept\n")
        raise problem

    monkeypatch.setattr(serve, "run", fail)
    assert main(["serve"]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith(f"dragoman: {message}")
    assert shown.out == "kept\n"


def test_an_ignored_ctrl_c_stays_ignored_while_libraries_are_imported() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with leaving_at_once():
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
