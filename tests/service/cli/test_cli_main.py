import subprocess
import sys
from pathlib import Path

import pytest

from model.errors import ConfigError
from service.cli import serve
from service.cli.main import build_parser, main

COMMANDS = ("serve", "translate", "train", "evaluate", "export", "bench")


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
    monkeypatch.delenv("DRAGOMAN_CHECKPOINT", raising=False)
    arguments = build_parser().parse_args(["serve"])
    with pytest.raises(ConfigError, match=str(tmp_path / "checkpoints")):
        serve.run(arguments)


def test_the_parser_and_the_front_import_no_torch() -> None:
    code = (
        "import sys; from service.cli.main import build_parser; build_parser();"
        "import service.server; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
