"""Header of a weight file: its types and shapes, checked against the manifest.

Owns how safetensors spells types, and the check of model.safetensors before a tensor is read;
`model.checkpoint.tensors.stored` and `model.checkpoint.tensors.mapped` read them. Imports no torch.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError, safe_open

from model.checkpoint.files.verification import MAX_HEADER_BYTES
from model.checkpoint.manifest import (
    CONFIG_FILE,
    SCALE_SUFFIX,
    Manifest,
    TensorEntry,
    TensorType,
)
from model.checkpoint.tensors.shapes import differences, tensor_problems
from model.errors import CheckpointError
from model.system.paths import utf8_name

HEADER_TYPES: Mapping[TensorType, str] = {
    "float32": "F32",
    "bfloat16": "BF16",
    "float16": "F16",
    "int8": "I8",
}
"""In the order in which safetensors puts them into a file, widest first."""


@contextmanager
def checked_weights(path: Path, entries: Mapping[str, TensorEntry]) -> Iterator[None]:
    """Context for reading a weight file whose header agrees with the manifest's entries.

    Raises:
        CheckpointError: It does not, or the file is not readable.
    """
    _check_header_size(path)
    try:
        with utf8_name(path) as opened, safe_open(opened, framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            found = {
                name: f"{piece.get_dtype()} {piece.get_shape()}" for name, piece in slices.items()
            }
            del slices  # they keep the file mapped
        problems = differences(header_layout(entries), found)
        if problems:
            raise CheckpointError(path, f"does not hold the tensors it should: {problems}")
        yield
    except SafetensorError as error:
        raise CheckpointError(path, f"is not a readable safetensors file: {error}") from error


def check_tensors(directory: Path, manifest: Manifest) -> None:
    """Refuse a manifest that lists other tensors than its network has.

    Raises:
        CheckpointError: It does; the message lists all of them.
    """
    found = {name: entry.shape for name, entry in manifest.tensors.items()}
    problems = tensor_problems(manifest.network, found)
    if problems:
        raise CheckpointError(directory / CONFIG_FILE, f"tensors do not fit network: {problems}")


def header_layout(entries: Mapping[str, TensorEntry]) -> dict[str, str]:
    """What the header of the file must say: type and shape by name."""
    layout = {}
    for name, entry in entries.items():
        layout[name] = f"{HEADER_TYPES[entry.dtype]} {list(entry.shape)}"
        if entry.quantisation is not None:
            layout[name + SCALE_SUFFIX] = f"F32 {[entry.shape[0]]}"
    return layout


def _check_header_size(path: Path) -> None:
    """Refuse a header that claims more than the file has, before anything is allocated."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            claimed = int.from_bytes(file.read(8), "little")
    except OSError as error:
        raise CheckpointError(path, f"cannot be read: {error.strerror}") from error
    limit = min(size - 8, MAX_HEADER_BYTES)
    if claimed > limit:
        raise CheckpointError(path, f"its header claims {claimed} bytes; at most {limit} can be")
