"""Reasons why a source is of no known format, as far as its names and small files show them.

Owns what is told beside the formats. It does not own which source is of which format.
"""

from collections.abc import Iterator
from pathlib import Path

from model.checkpoint.description.strict_json import parse_json
from model.checkpoint.files.checksums import read_limited
from model.errors import CheckpointError, ConfigError
from model.exchange.imports.git_lfs import POINTER_PROBLEM, is_pointer_file

_CONFIG = "config.json"
_ADAPTER = "adapter_config.json"
_WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
_MAX_CONFIG_BYTES = 16 * 2**20


def unrecognised_reason(content: Path) -> str | None:
    """Why no format knows a file or a folder; None where nothing tells, or it cannot be read."""
    try:
        reasons = _of_folder(content) if content.is_dir() else _of_file(content)
        return next(reasons, None)
    except OSError:
        return None


def _of_file(path: Path) -> Iterator[str]:
    if is_pointer_file(path):
        yield f"it {POINTER_PROBLEM}"
    if (path.parent / _CONFIG).is_file():
        yield "it is one file of a model; its folder is the model"


def _of_folder(folder: Path) -> Iterator[str]:
    if (folder / _ADAPTER).is_file():
        yield (
            "it is an adapter (LoRA), and not a model: merge it into its model, and convert what"
            " that saves"
        )
    if folder.name.startswith("models--") and (folder / "snapshots").is_dir():
        snapshots = sorted(path.name for path in (folder / "snapshots").iterdir())
        names = " or ".join(f"snapshots/{name}" for name in snapshots)
        yield f"it is the hub's cache of a model; what is in it is {names or 'nothing'}"
    entries = sorted(folder.iterdir())
    for path in entries:
        if path.is_file() and is_pointer_file(path):
            yield f"{path.name} {POINTER_PROBLEM}"
    weights = next((name for name in _WEIGHTS if (folder / name).is_file()), None)
    if (folder / _CONFIG).is_file():
        yield from _of_config(folder / _CONFIG, has_weights=weights is not None)
    elif weights is not None:
        yield f"it has {weights} and no {_CONFIG}"
    inner = [path.name for path in entries if (path / _CONFIG).is_file()]
    if inner:
        more = f" and {len(inner) - 1} more" if len(inner) > 1 else ""
        yield f"a model may be in {inner[0]}{more}, which has a {_CONFIG}"


def _of_config(path: Path, *, has_weights: bool) -> Iterator[str]:
    try:
        value = parse_json(read_limited(path, _MAX_CONFIG_BYTES))
    except CheckpointError as error:
        yield f"its {_CONFIG} {error.problem}"
    except ConfigError as error:
        yield f"its {_CONFIG}: {error}"
    else:
        if has_weights and not (isinstance(value, dict) and "model_type" in value):
            yield f"its {_CONFIG} has no model_type"
