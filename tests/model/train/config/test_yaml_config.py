"""Problems of a file are found together, and what only YAML has is no other type's value."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from model.errors import ConfigError
from model.train.config.yaml_config import read_placed_yaml, read_section


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    PRESETS: ClassVar = {"small": {"size": 8}, "large": {"size": 1024, "share": 0.5}}

    size: int = 1
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigError(f"part.size is {self.size}; it must be at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    name: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.weight < 0:
            raise ConfigError(f"items.weight is {self.weight}; it must be at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    name: str
    kind: Literal["a", "b"] = "a"
    is_on: bool = True
    limit: float | None = None
    items: tuple[Item, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    part: Part = field(default_factory=Part)


def read(tmp_path: Path, text: str) -> Whole:
    path = tmp_path / "whole.yaml"
    path.write_text(text, encoding="utf-8")
    return read_placed_yaml(path, Whole)[0]


def problems_of(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    return str(caught.value).replace(f"{tmp_path / 'whole.yaml'}:", "").split("\n")


def test_every_problem_has_a_line_of_the_message_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = """
is_on: 1
kind: c
colour: red
part: {size: 0}
items:
  - {name: x, weight: many}
  - {weight: 2}
  - {name: x, weight: -2}
texts: {"\\ud83d": x, a: 3}
limit: 1e9999999999999999999999
"""
    long = f"limit: 1{'0' * 30}"
    assert problems_of(tmp_path, text.replace("limit: 1e9999999999999999999999", long)) == [
        " name is missing",
        "2: is_on is 1; it must be true or false",
        "3: kind is 'c'; it must be 'a' or 'b'",
        "4: colour is unknown; known here: is_on, items, kind, limit, name, part, texts",
        "5: part.size is 0; it must be at least 1",
        "7: items[0].weight is 'many'; it must be a finite number",
        "8: items[1].name is missing",
        "9: items[2].weight is -2.0; it must be at least 0",
        "10: texts has \\ud83d, half of a surrogate pair; it must be whole characters",
        "10: texts.a is 3, which YAML made of it; it must be quoted to be a string",
        "11: limit is a number of 100 bits; it must have at most 63",
    ]


def test_a_problem_of_yaml_is_named_once_and_the_others_with_it(tmp_path: Path) -> None:
    date = "datetime.date(2026, 1, 13), which YAML made of it; it must be quoted to be a string"
    assert problems_of(tmp_path, "name: 2026-01-13\nkind: 7\npart: {size: 2026-01-13}\n") == [
        f"1: name is {date}",
        "2: kind is 7; it must be 'a' or 'b'",
        f"3: part.size is {date}",
    ]


@pytest.mark.parametrize(
    ("value", "made"),
    [("no", "False"), ("on", "True"), ("~", "None"), ("", "None"), ("-1.5", "-1.5"), ("12", "12")],
)
def test_what_yaml_takes_for_no_string_must_be_quoted(
    tmp_path: Path, value: str, made: str
) -> None:
    said = f"is {made}, which YAML made of it; it must be quoted to be a string"
    assert problems_of(tmp_path, f"name: {value}\nitems:\n- name: {value}\n") == [
        f"1: name {said}",
        f"3: items[0].name {said}",
    ]
    assert read(tmp_path, f"name: '{value}'\n").name == value


@pytest.mark.parametrize("value", ["[no]", "{a: no}"])
def test_what_is_no_scalar_is_not_told_to_be_quoted(tmp_path: Path, value: str) -> None:
    [problem] = problems_of(tmp_path, f"name: {value}\n")
    assert "quoted" not in problem


@pytest.mark.parametrize(
    ("text", "limit"),
    [("1e-3", 1e-3), ("'0.5'", 0.5), ("2", 2.0), ("~", None), (".inf", math.inf), ("-.5", -0.5)],
)
def test_a_number_is_one_however_yaml_reads_it(
    tmp_path: Path, text: str, limit: float | None
) -> None:
    found = read(tmp_path, f"name: x\nlimit: {text}\n").limit
    assert found == limit
    assert type(found) is type(limit)


def test_text_that_looks_like_a_number_stays_text(tmp_path: Path) -> None:
    found = read(tmp_path, "name: 1e-3\ntexts: {a: 12e3}\nitems: [{name: 1e3, weight: 1e3}]\n")
    assert (found.name, found.texts) == ("1e-3", {"a": "12e3"})
    assert found.items == (Item(name="1e3", weight=1000.0),)


@pytest.mark.parametrize("text", ["", "3", "[1]", "text"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    (problem,) = problems_of(tmp_path, text)
    assert "the file is" in problem
    assert problem.endswith("; it must be a mapping")


def test_a_preset_stands_for_its_values(tmp_path: Path) -> None:
    found = read(tmp_path, "name: x\npart: {share: 0.25, preset: large}\n")
    assert found.part == Part(size=1024, share=0.25)
    assert problems_of(tmp_path, "part: {preset: huge, sise: 3}\n") == [
        " name is missing",
        "1: part.preset is 'huge'; it must be one of small, large",
        "1: part.sise is unknown; known here: preset, share, size",
    ]


def test_a_section_is_read_whatever_the_others_say(tmp_path: Path) -> None:
    path = tmp_path / "whole.yaml"
    path.write_text("name: 3\npart:\n  preset: small\n", encoding="utf-8")
    assert read_section(path, "part", Part) == Part(size=8)
    path.write_text("name: 3\npart:\n  size: x\n  share: x\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_section(path, "part", Part)
    assert str(caught.value).split("\n") == [
        f"{path}:3: part.size is 'x'; it must be an integer",
        f"{path}:4: part.share is 'x'; it must be a finite number",
    ]
    with pytest.raises(ConfigError, match=r"whole\.yaml: network is missing$"):
        read_section(path, "network", Part)
