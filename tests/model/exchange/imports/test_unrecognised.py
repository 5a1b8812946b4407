"""What is of no known format, and what is seen of the reason."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from model.errors import ForeignModelError
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.reading import recognised

Make = Callable[[Path], Path]


def broken(folder: Path) -> Path:
    (folder / "config.json").write_text('{"model_type": "marian",}')
    return folder


def nameless(folder: Path) -> Path:
    (folder / "config.json").write_text('{"d_model": 32}')
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def weights_alone(folder: Path) -> Path:
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def adapter(folder: Path) -> Path:
    (folder / "adapter_config.json").write_text("{}")
    (folder / "adapter_model.safetensors").write_bytes(b"")
    return folder


def cache_root(folder: Path) -> Path:
    root = folder / "models--owner--name"
    (root / "snapshots" / "0123").mkdir(parents=True)
    return root


def parent(folder: Path) -> Path:
    (folder / "inner").mkdir()
    (folder / "inner" / "config.json").write_text(json.dumps({"model_type": "marian"}))
    return folder


def inner_file(folder: Path) -> Path:
    (folder / "config.json").write_text(json.dumps({"model_type": "marian"}))
    (folder / "model.safetensors").write_bytes(b"x" * 40)
    return folder / "model.safetensors"


def pointer(folder: Path) -> Path:
    (folder / "model.bin").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    return folder


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (broken, "its config.json: not readable JSON: Expecting property name"),
        (nameless, "its config.json has no model_type"),
        (weights_alone, "it has model.safetensors and no config.json"),
        (adapter, "it is an adapter (LoRA), and not a model: merge it into its model"),
        (cache_root, "it is the hub's cache of a model; what is in it is snapshots/0123"),
        (parent, "a model may be in inner, which has a config.json"),
        (inner_file, "it is one file of a model; its folder is the model"),
        (pointer, "model.bin is a pointer of git-lfs and not the file"),
    ],
)
def test_the_reason_is_told_where_it_is_seen(tmp_path: Path, make: Make, reason: str) -> None:
    source = make(tmp_path)
    with pytest.raises(ForeignModelError) as caught:
        recognised(source, IMPORTERS, source=source)
    (problem,) = caught.value.problems
    assert problem.startswith(f"is of no format that is known: {reason}"), problem


def test_of_anything_else_the_formats_are_told(tmp_path: Path) -> None:
    with pytest.raises(ForeignModelError, match=r"is of no format that is known \(Hugging Face"):
        recognised(tmp_path, IMPORTERS, source=tmp_path)
