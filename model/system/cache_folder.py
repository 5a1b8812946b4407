"""Folder for what can be made or fetched again: downloads, packed weights.

Owns where it is. Does not own what is in it. Imports no torch.
"""

from collections.abc import Mapping
from pathlib import Path

from model.errors import ConfigError

CACHE_VARIABLE = "DRAGOMAN_CACHE"
_XDG_VARIABLE = "XDG_CACHE_HOME"


def cache_root(environment: Mapping[str, str]) -> Path:
    """The folder that the environment names, or the usual one.

    Raises:
        ConfigError: Neither it nor a home is known.
    """
    if named := environment.get(CACHE_VARIABLE):
        return Path(named).expanduser().absolute()
    base = Path(environment.get(_XDG_VARIABLE, ""))
    if not base.is_absolute():  # the specification has relative ones ignored
        try:
            base = Path.home() / ".cache"
        except RuntimeError as error:
            raise ConfigError(
                f"there is no home for a cache; {CACHE_VARIABLE} names one"
            ) from error
    return base / "dragoman"
