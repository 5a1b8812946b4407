"""Small YAML texts of strangers: their plain values, at a cost that their size bounds.

Owns what is refused of YAML. It does not own what the values mean.
"""

import yaml

from model.errors import ConfigError

_MAX_DEPTH = 16


def parse_yaml(text: str) -> object:
    """The value of a text, of the types that safe YAML has; refused before it costs more than that.

    A few lines of aliases to aliases stand for more than any memory holds, and PyYAML's scanner
    looks at every open bracket again for each token.

    Raises:
        ConfigError: It is no YAML, has aliases or is nested too deeply.
    """
    try:
        _check_structure(text)
        return yaml.safe_load(text)
    except Exception as error:  # whatever a text from elsewhere makes PyYAML raise
        raise ConfigError(f"no YAML ({type(error).__name__})") from error


def compose_yaml(text: str) -> yaml.Node | None:
    """The nodes of a text, an alias being the very node that it stands for; None: it has none.

    Raises:
        ConfigError: It is no YAML, or is nested too deeply.
    """
    try:
        _check_structure(text, has_aliases=True)
        return yaml.compose(text, yaml.SafeLoader)
    except Exception as error:  # as above
        raise ConfigError(f"no YAML ({type(error).__name__})") from error


def _check_structure(text: str, *, has_aliases: bool = False) -> None:
    """Raise for what is refused.

    Raises:
        YAMLError: It is found.
    """
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent) and not has_aliases:
            raise yaml.YAMLError("has aliases")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise yaml.YAMLError("is nested too deeply")
