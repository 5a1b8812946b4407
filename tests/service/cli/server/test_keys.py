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
