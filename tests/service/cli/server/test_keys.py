import subprocess
import sys
from pathlib import Path

import pytest

from service.access.keys import load_keys
from service.cli.main import main


def test_a_new_key_opens_what_its_line_describes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--admin", "--requests-per-minute", "60", "--characters-per-minute", "9000"]
    assert main(["keys", "new", "alice", *flags]) == 0
    printed = capsys.readouterr()
    file = tmp_path / "keys.toml"
    file.write_text(printed.out)
    key = printed.err.split()[-1]
    assert key not in printed.out
    found = load_keys(file).find(key)
    assert found is not None
    assert (found.name, found.is_admin) == ("alice", True)
    assert (found.requests_per_minute, found.characters_per_minute) == (60, 9000)


def test_lines_of_two_keys_are_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        assert main(["keys", "new", name]) == 0
    printed = capsys.readouterr()
    file = tmp_path / "keys.toml"
    file.write_text(printed.out)
    ring = load_keys(file)
    names = [
        found.name for line in printed.err.splitlines() if (found := ring.find(line.split()[-1]))
    ]
    assert names == ["one", "two"]


def _appended(file: Path, name: str) -> "subprocess.CompletedProcess[str]":
    """As `dragoman keys new NAME >> FILE` ends."""
    command = [sys.executable, "-m", "service.cli.main", "keys", "new", name]
    with file.open("a") as output:
        return subprocess.run(
            command, check=False, stdout=output, stderr=subprocess.PIPE, text=True
        )


def test_a_line_that_is_appended_begins_where_a_line_begins(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    assert _appended(file, "one").returncode == 0
    file.write_text(file.read_text().rstrip())
    key = _appended(file, "two").stderr.split()[-1]
    assert _appended(file, "three").returncode == 0
    ring = load_keys(file)
    assert [one.name for one in ring.keys] == ["one", "two", "three"]
    assert ring.find(key) == ring.keys[1]
    assert len(file.read_text().splitlines()) == 3


def test_a_name_that_the_file_has_already_is_refused_and_nothing_written(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    for name in ("one", "two"):
        assert _appended(file, name).returncode == 0
    before = file.read_text()
    refused = _appended(file, "two")
    assert (refused.returncode, file.read_text()) == (1, before)
    assert "dragoman_" not in refused.stderr
    assert "the file has a key of the name two already, in line 2: put" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a b"], "3 characters"),
        (["ok", "--requests-per-minute", "0"], "requests_per_minute"),
        (["ok", "--characters-per-minute", "-4"], "characters_per_minute"),
    ],
)
def test_an_impossible_key_is_one_line_and_no_key(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["keys", "new", *arguments]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert words in printed.err
    assert "dragoman_" not in printed.err
