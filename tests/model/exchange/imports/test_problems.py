from functools import partial
from pathlib import Path

import pytest

from model.errors import ConfigError, ForeignModelError
from model.exchange.imports.problems import attempted


def raising(error: Exception) -> None:
    raise error


def test_what_can_be_read_is_given() -> None:
    problems: list[str] = []
    assert attempted(problems, lambda: 3) == 3
    assert problems == []


def test_all_problems_of_all_parts_are_kept() -> None:
    problems = ["a first one"]
    foreign = ForeignModelError(Path("folder/model.bin"), ["is empty", "is old"])
    for error in (foreign, ConfigError("has no size")):
        assert attempted(problems, partial(raising, error)) is None
    assert problems == ["a first one", "model.bin: is empty", "model.bin: is old", "has no size"]


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError):
        attempted([], lambda: raising(KeyError("x")))
