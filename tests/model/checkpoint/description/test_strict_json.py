import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checkpoint.description.strict_json import format_json, parse_json
from model.errors import ConfigError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=20,
)


@given(JSON)
def test_what_is_written_is_read_back(value: object) -> None:
    assert parse_json(format_json(value)) == value


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "not readable JSON"),
        (b'{"a": 1', "not readable JSON"),
        (b'{"a": 1} x', "not readable JSON"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "key 'c' stands twice in one object"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
        (b"[" * 200_000, "nested too deeply"),
        (b"1" * 10_000, "not readable JSON"),
    ],
)
def test_what_is_not_strict_json_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_json(data)


@given(st.binary())
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with contextlib.suppress(ConfigError):
        parse_json(data)


def test_half_a_character_is_refused_and_a_pair_is_one() -> None:
    assert parse_json(rb'["\ud83d\ude00", "\\ud83d"]') == ["😀", "\\ud83d"]
    for text in (rb'{"a": ["\ud83d"]}', rb'{"\uDC00": 1}'):
        with pytest.raises(ConfigError, match="a string has half a character in it"):
            parse_json(text)


def test_one_key_twice_among_many_is_found_at_once() -> None:
    keys = "".join(f'"{number}": 1, ' for number in range(200_000))
    with pytest.raises(ConfigError, match="key '7' stands twice in one object"):
        parse_json(f'{{{keys}"7": 2}}'.encode())
