import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import conversion
from model.conversion import ConversionError, Location, convert, hint_at
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
    try:
        return convert(Outer, value), []
    except ConversionError as error:
        return None, [str(problem) for problem in error.problems]


def written(value: Outer) -> dict[str, Any]:
    """As JSON has it."""
    return dict(json.loads(json.dumps(asdict(value))))


def test_what_is_written_is_read_back() -> None:
    assert read(written(GOOD)) == (GOOD, [])


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_any_value_survives_the_way_through_the_file(name: str, number: int, share: float) -> None:
    value = Outer(
        name=name,
        kind="b",
        is_on=False,
        inner=Inner(size=abs(number), share=share),
        numbers=(number,),
    )
    assert read(written(value)) == (value, [])


def test_every_problem_is_named_at_once() -> None:
    value = written(GOOD)
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
            "table.second is 3; it must be a mapping",
        ]
    )


def test_a_field_with_a_default_may_be_left_out_and_no_other() -> None:
    value = written(GOOD)
    del value["mark"], value["numbers"], value["table"]
    assert read(value) == (replace(GOOD, mark=None, numbers=(), table=None), [])
    del value["name"], value["inner"]["share"]
    assert sorted(read(value)[1]) == ["inner.share is missing", "name is missing"]


@pytest.mark.parametrize("value", [None, 1, "text", [], True])
def test_a_file_that_is_no_object_is_refused(value: object) -> None:
    assert read(value) == (None, [f"the file is {value!r}; it must be a mapping"])


@pytest.mark.parametrize("share", [math.inf, -math.inf, math.nan, 10**400, True, None, "1"])
def test_only_a_finite_number_is_a_number(share: object) -> None:
    with pytest.raises(ConversionError) as caught:
        convert(Inner, {"size": 1, "share": share})
    (problem,) = caught.value.problems
    assert problem.place == "share"
    assert problem.text.startswith("is ")
    assert "it must be a finite number" in problem.text
    assert len(problem.text) < 150


def test_infinity_is_a_number_where_a_dataclass_judges_it() -> None:
    assert convert(Inner, {"size": 1, "share": math.inf}, is_finite=False).share == math.inf


@pytest.mark.parametrize("size", [True, 1.0, "1", None, [], {}])
def test_only_an_integer_is_an_integer(size: object) -> None:
    with pytest.raises(ConversionError) as caught:
        convert(Inner, {"size": size, "share": 1})
    assert str(caught.value) == f"size is {size!r}; it must be an integer"


def test_an_integer_may_be_of_any_size() -> None:
    assert convert(Inner, {"size": 10**900, "share": 1}).size == 10**900


@pytest.mark.parametrize("depth", [200, 100_000])
def test_a_value_that_is_nested_too_deeply_is_refused(depth: int) -> None:
    value: object = 1
    for _ in range(depth):
        value = [value]
    assert read({**written(GOOD), "name": value}) == (None, ["the file is nested too deeply"])


def test_an_odd_key_is_shown_on_one_line() -> None:
    value = {**written(GOOD), "a\n\x1b[2J": 1, "k" * 1_000: 1}
    first, second = read(value)[1]
    assert first == r"'a\n\x1b[2J' is unknown"
    assert second.startswith("'kkkk")
    assert len(second) < 100


def test_an_unknown_key_comes_with_the_dataclass_that_does_not_have_it() -> None:
    value = written(GOOD)
    value["table"]["first"]["colour"] = 1
    with pytest.raises(ConversionError) as caught:
        convert(Outer, value)
    (problem,) = caught.value.problems
    assert (problem.place, problem.owner) == ("table.first.colour", Inner)


@pytest.mark.parametrize(
    ("location", "hint"),
    [
        ((), Outer),
        (("inner", "share"), float),
        (("numbers", 3), int),
        (("table", "any key", "size"), int),
        (("table",), Mapping[str, Inner]),
        (("nowhere", "size"), None),
        (("name", "size"), None),
        (("numbers", "size"), None),
    ],
)
def test_a_place_has_the_hint_of_its_field(location: Location, hint: object) -> None:
    assert hint_at(Outer, location) == hint


ODD = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)


@given(
    st.sampled_from(["name", "kind", "is_on", "inner", "mark", "numbers", "table", "other"]),
    ODD | st.lists(ODD, max_size=3) | st.dictionaries(st.text(max_size=3), ODD, max_size=2),
    st.booleans(),
)
def test_what_is_made_at_once_is_what_pydantic_makes(
    name: str, odd: object, is_finite: bool
) -> None:
    value = {**written(GOOD), name: odd}

    def converted() -> str:
        try:
            return repr(convert(Outer, value, is_finite=is_finite))
        except ConversionError as error:
            return str(error)

    at_once = converted()
    with patch.object(conversion, "_made", side_effect=conversion._UnsureError):
        assert converted() == at_once
