import pytest

from model.errors import ConfigError
from model.exchange.bounded_yaml import parse_yaml


def test_values_are_those_of_safe_yaml() -> None:
    assert parse_yaml("a: [1, x]\nb:\n  c: 'no'") == {"a": [1, "x"], "b": {"c": "no"}}
    assert parse_yaml("") is None


@pytest.mark.parametrize(
    "text",
    [
        "a: &x [1]\nb: *x",
        "[" * 100_000,
        "{a: " * 40,
        "a: !!python/object/apply:os.system [ls]",
        "a: [",
        "a: \x00",
        "? [1]\n: 2",
        "2026-99-99",
    ],
)
def test_what_costs_more_than_its_size_or_is_no_safe_yaml_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="no YAML"):
        parse_yaml(text)
