from pathlib import Path

import pytest

from model.errors import ConfigError
from service.access.key_lines import lines_by_name
from service.access.keys import load_keys, parse_keys


def _line(name: str, digit: str) -> str:
    return f'{name} = {{ sha256 = "{digit * 64}" }}\n'


def _table(name: str, digit: str) -> str:
    return f'[{name}]\nsha256 = "{digit * 64}"\nadmin = true\n'


ALICE, BOB, AGAIN = _line("alice", "a"), _line("bob", "b"), _line("bob", "c")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (ALICE + BOB + AGAIN, "2 and 3"),
        (ALICE + BOB + AGAIN.rstrip(), "2 and 3"),
        (ALICE + BOB + AGAIN.rstrip() + "  \n\n# the end\n", "2 and 3"),
        (BOB + "# of the new year\n\n" + AGAIN + ALICE, "1 and 4"),
        ("\ufeff" + BOB.replace("\n", "\r\n") + AGAIN.replace("\n", "\r\n"), "1 and 2"),
        (BOB + _line('"bob"', "c"), "1 and 2"),
        (_table("bob", "b") + _table("alice", "a") + _table("bob", "c"), "1 and 7"),
        (BOB + _table("bob", "c"), "1 and 2"),
    ],
)
def test_a_name_that_comes_twice_is_told_with_both_lines(
    tmp_path: Path, text: str, lines: str
) -> None:
    file = tmp_path / "keys.toml"
    file.write_bytes(text.encode())
    with pytest.raises(ConfigError, match=f"lines {lines} both have the name bob: a new key"):
        load_keys(file)


@pytest.mark.parametrize("end", ["", "\n", "\n" + _line("carol", "c")])
def test_two_keys_in_one_line_are_told_with_it_and_their_names(end: str) -> None:
    """`>>` to a file whose last line has no end."""
    text = _line("ops", "d") + ALICE.rstrip() + BOB.rstrip() + end
    with pytest.raises(ConfigError, match="line 2 has two keys, alice and bob: each needs a line"):
        parse_keys(text, "the file")


@pytest.mark.parametrize(
    "text",
    [
        ALICE + "secret-that-was-pasted\n",
        ALICE + "bob = secret-that-was-pasted\n",
        f'[alice]\nsha256 = "{"a" * 64}"\nsha256 = "secret-that-was-pasted"',
    ],
)
def test_what_else_is_no_toml_is_told_by_its_place_alone(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^the file is not valid TOML( at line \d, column \d+)?$"
    ):
        parse_keys(text, "the file")


def test_names_are_found_where_keys_begin_and_nowhere_else() -> None:
    text = f"\ufeff# bob = \n{ALICE}  {BOB}a.b = 1\n{_table('ops', 'd')}{_table('bob', 'e')}"
    assert lines_by_name(text) == {"alice": [2], "bob": [3, 8], "ops": [5]}
    assert lines_by_name("") == {}
