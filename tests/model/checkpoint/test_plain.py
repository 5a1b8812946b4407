import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checkpoint.plain import format_json, parse_json, read_dataclass
from model.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    size: int
    share: float

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ConfigError(f"size is {self.size}; it must be at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    name: str
    kind: Literal["a", "b"]
    is_on: bool
    inner: Inner
    mark: Literal["x"] | None = None
    numbers: tuple[int, ...] = ()
    table: Mapping[str, Inner] | None = None


GOOD = Outer(
    name="ü",
    kind="a",
    is_on=True,
    inner=Inner(size=1, share=0.5),
    mark="x",
    numbers=(1, 2),
    table={"first": Inner(size=2, share=1.0)},
)


def read(value: object) -> tuple[Outer | None, list[str]]:
    problems: list[str] = []
    return read_dataclass(Outer, value, problems), problems


def test_what_is_written_is_read_back() -> None:
    assert read(parse_json(format_json(GOOD))) == (GOOD, [])


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_any_value_survives_the_way_through_the_file(name: str, number: int, share: float) -> None:
    written = Outer(
        name=name,
        kind="b",
        is_on=False,
        inner=Inner(size=abs(number), share=share),
        numbers=(number,),
    )
    assert read(parse_json(format_json(written))) == (written, [])


def test_every_problem_is_named_at_once() -> None:
    value = json.loads(format_json(GOOD))
    del value["name"]
    value["unheard_of"] = 1
    value["kind"] = "c"
    value["is_on"] = 1
    value["numbers"] = [1, "2", True, 4.0]
    value["inner"] = {"size": -1, "share": 2}
    value["table"] = {"first": {"size": 1, "share": "much"}, "second": 3}
    read_value, problems = read(value)
    assert read_value is None
    assert sorted(problems) == sorted(
        [
            "name is missing",
            "unheard_of is unknown",
            "kind is 'c'; it must be 'a' or 'b'",
            "is_on is 1; it must be true or false",
            "numbers[1] is '2'; it must be an integer",
            "numbers[2] is True; it must be an integer",
            "numbers[3] is 4.0; it must be an integer",
            "inner: size is -1; it must be at least 0",
            "table.first.share is 'much'; it must be a finite number",
            "table.second is 3; it must be an object",
        ]
    )


def test_a_default_does_not_make_a_field_optional() -> None:
    value = json.loads(format_json(GOOD))
    del value["mark"], value["numbers"], value["table"]
    assert read(value)[1] == ["mark is missing", "numbers is missing", "table is missing"]


@pytest.mark.parametrize("value", [None, 1, "text", [], True])
def test_a_file_that_is_no_object_is_refused(value: object) -> None:
    assert read(value) == (None, [f"the file is {value!r}; it must be an object"])


@pytest.mark.parametrize("share", ["1e999", "1" + "0" * 400, "true", "null", '"1"'])
def test_only_a_finite_number_is_a_number(share: str) -> None:
    problems: list[str] = []
    parsed = parse_json(f'{{"size": 1, "share": {share}}}'.encode())
    assert read_dataclass(Inner, parsed, problems) is None
    assert len(problems) == 1
    assert "share is" in problems[0]
    assert "it must be a finite number" in problems[0]
    assert len(problems[0]) < 150


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
        read(parse_json(data))


def test_half_a_character_is_refused_and_a_pair_is_one() -> None:
    assert parse_json(rb'["\ud83d\ude00", "\\ud83d"]') == ["😀", "\\ud83d"]
    for text in (rb'{"a": ["\ud83d"]}', rb'{"\uDC00": 1}'):
        with pytest.raises(ConfigError, match="a string has half a character in it"):
            parse_json(text)


def test_one_key_twice_among_many_is_found_at_once() -> None:
    keys = "".join(f'"{number}": 1, ' for number in range(200_000))
    with pytest.raises(ConfigError, match="key '7' stands twice in one object"):
        parse_json(f'{{{keys}"7": 2}}'.encode())
