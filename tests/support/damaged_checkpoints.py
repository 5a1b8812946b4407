"""Checkpoints whose files are wrong in ways that no checksum shows: the listing is made anew."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from model.checkpoint.files.checksums import CHECKSUMS_FILE, format_checksums
from model.checkpoint.manifest import CONFIG_FILE, SCALE_SUFFIX

WEIGHTS_FILE = "model.safetensors"


def list_anew(directory: Path) -> None:
    """Write the checksums of the files as they are."""
    files = [path for path in directory.iterdir() if path.name != CHECKSUMS_FILE]
    (directory / CHECKSUMS_FILE).write_bytes(format_checksums(files))


def set_scales(directory: Path, value: float) -> None:
    """Give every row of every int8 matrix this scale."""
    tensors = load_file(directory / WEIGHTS_FILE)
    for name, tensor in tensors.items():
        if name.endswith(SCALE_SUFFIX):
            tensor.fill_(value)
    save_file(tensors, directory / WEIGHTS_FILE, metadata={"format": "pt"})
    list_anew(directory)


def change_config(directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Let `change` do to config.json what it likes."""
    path = directory / CONFIG_FILE
    config = json.loads(path.read_bytes())
    change(config)
    path.write_text(json.dumps(config), encoding="utf-8")
    list_anew(directory)
