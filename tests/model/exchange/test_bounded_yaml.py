import pytest
import yaml

from model.errors import ConfigError
from model.exchange.bounded_yaml import compose_yaml, parse_yaml


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


def test_an_alias_is_the_node_that_it_stands_for() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 40)]
    node = compose_yaml("\n".join(["l0: &l0 x", *levels]))
    assert isinstance(node, yaml.MappingNode)
    (_, first), (_, second) = node.value[:2]
    assert all(item is first for item in second.value)
    assert compose_yaml("") is None
    for text in ("[", "[" * 20 + "]" * 20, "*x"):
        with pytest.raises(ConfigError, match="no YAML"):
            compose_yaml(text)
