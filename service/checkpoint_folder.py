"""Folder of the checkpoints: the one that the environment names, or the default.

Owns the meaning of `DRAGOMAN_CHECKPOINT` and of its absence, and of `DRAGOMAN_PREFERRED`. What is
in the folder is `service.models.checkpoints.discovery`.
"""

from collections.abc import Mapping
from pathlib import Path

from model.errors import ConfigError
from model.system.paths import is_folder

CHECKPOINT_VARIABLE = "DRAGOMAN_CHECKPOINT"
PREFERRED_VARIABLE = "DRAGOMAN_PREFERRED"
_FOLDER = Path("checkpoints")


def default_checkpoints() -> Path:
    """The folder of the checkpoints where none is named.

    The folder `checkpoints` of the working directory, or, where there is none, the one beside the
    packages: that of a source tree, in which the bundled networks are.
    """
    bundled = Path(__file__).parents[1] / _FOLDER
    is_bundled = not is_folder(_FOLDER, _unusable) and is_folder(bundled, _unusable)
    return bundled if is_bundled else _FOLDER


def named_checkpoints(environment: Mapping[str, str]) -> Path:
    """The folder that the environment names, as the server reads it; else the default."""
    named = environment.get(CHECKPOINT_VARIABLE)
    return Path(named) if named else default_checkpoints()


def preferred_checkpoints(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Names of checkpoints that go before others, as the server reads them."""
    return listed_items(environment.get(PREFERRED_VARIABLE, ""))


def listed_items(text: str) -> tuple[str, ...]:
    """The items of a list with commas; empty ones are none."""
    return tuple(item for part in text.split(",") if (item := part.strip()))


def _unusable(path: Path, problem: str) -> ConfigError:
    return ConfigError(f"{path}: {problem}")
