"""Weights as they are stored: int8 rows of any scales, floats of every type."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load, save_file
from torch import Tensor

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.manifest import SCALE_SUFFIX, TensorEntry
from model.checkpoint.tensors.mapped import mapped_weights
from model.checkpoint.tensors.quantisation import quantise_rows
from model.checkpoint.tensors.safetensors_file import TYPE_NAMES
from model.checkpoint.weights import load_checkpoint
from model.errors import CheckpointError
from support.damaged_checkpoints import WEIGHTS_FILE, list_anew
from support.tiny_checkpoint import write_tiny_checkpoint

Stored = dict[str, Tensor]


def foreign_checkpoint(directory: Path, *, one_scale: bool) -> Stored:
    """A checkpoint with rows as Marian (one scale a matrix) or CTranslate2 (one a row) has them."""
    write_tiny_checkpoint(directory, quantise=True)
    tensors = load((directory / WEIGHTS_FILE).read_bytes())
    generator = torch.Generator().manual_seed(5)
    for name in [name for name in tensors if name + SCALE_SUFFIX in tensors]:
        num_rows = len(tensors[name])
        shape = (1,) if one_scale else (num_rows,)
        scale = 0.001 + 0.01 * torch.rand(shape, generator=generator)
        tensors[name + SCALE_SUFFIX] = scale.expand(num_rows).contiguous()
        largest = torch.randint(0, 128, (num_rows, 1), generator=generator)
        tensors[name] = torch.minimum(tensors[name], largest).maximum(-largest).to(torch.int8)
    save_file(tensors, directory / WEIGHTS_FILE, metadata={"format": "pt"})
    list_anew(directory)
    return tensors


@pytest.fixture(params=[True, False], ids=["one scale a matrix", "one a row"])
def foreign(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Stored]:
    return tmp_path / "foreign", foreign_checkpoint(tmp_path / "foreign", one_scale=request.param)


def test_the_rows_of_the_kernels_are_the_stored_ones(foreign: tuple[Path, Stored]) -> None:
    directory, tensors = foreign
    manifest = read_manifest(directory)
    matrices = [name for name, entry in manifest.tensors.items() if entry.quantisation is not None]
    scales = torch.cat([tensors[name + SCALE_SUFFIX] for name in matrices])
    assert (scales.view(torch.int32) & 0xFF).any(), "scales that quantise_rows could have made"
    with mapped_weights(directory / WEIGHTS_FILE, manifest.tensors) as weights:
        for name in matrices:
            quanta, scale = weights.rows(name)
            assert np.array_equal(quanta, tensors[name].numpy())
            assert np.array_equal(scale, tensors[name + SCALE_SUFFIX].numpy())


def test_floats_are_the_products_rounded_once(foreign: tuple[Path, Stored]) -> None:
    directory, tensors = foreign
    found = load_checkpoint(directory).transformer.state_dict()
    for name, value in found.items():
        if name + SCALE_SUFFIX in tensors:
            scale = tensors[name + SCALE_SUFFIX].double()
            exact = tensors[name].double() * scale.reshape(-1, *[1] * (value.dim() - 1))
            assert torch.equal(value, exact.float())
        else:
            assert torch.equal(value, tensors[name])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_stored_floats_are_those_that_the_library_reads(tmp_path: Path, dtype: torch.dtype) -> None:
    path = tmp_path / WEIGHTS_FILE
    values = {"vector": torch.randn(5), "matrix": torch.randn(7, 3), "empty": torch.empty(0, 4)}
    values = {name: value.to(dtype) for name, value in values.items()}
    save_file(values, path)
    entries = {
        name: TensorEntry(shape=tuple(value.shape), dtype=TYPE_NAMES[dtype])
        for name, value in values.items()
    }
    with mapped_weights(path, entries) as weights:
        assert "matrix" in weights
        assert "another" not in weights
        for name, value in values.items():
            assert np.array_equal(weights.floats(name), value.float().numpy())
        quanta, scale = quantise_rows(values["matrix"])
        found = weights.rows("matrix")
    assert np.array_equal(found[0], quanta.numpy())
    assert np.array_equal(found[1], scale.numpy())


def test_a_file_that_is_replaced_meanwhile_is_refused(tmp_path: Path) -> None:
    path = tmp_path / WEIGHTS_FILE
    entries = {"one": TensorEntry(shape=(2,), dtype="float32")}
    save_file({"one": torch.ones(2)}, path)
    with mapped_weights(path, entries) as weights:
        save_file({"another": torch.ones(3)}, path)
        with pytest.raises(CheckpointError, match="was replaced while it was read"):
            weights.floats("one")


@pytest.mark.parametrize("is_matrix", [True, False])
def test_values_that_are_not_finite_are_refused_by_name(tmp_path: Path, is_matrix: bool) -> None:
    path = tmp_path / WEIGHTS_FILE
    value = torch.zeros((3, 2) if is_matrix else (3,))
    value.view(-1)[1] = float("nan")
    save_file({"one": value}, path)
    entries = {"one": TensorEntry(shape=tuple(value.shape), dtype="float32")}
    with mapped_weights(path, entries) as weights:
        read = weights.rows if is_matrix else weights.floats
        with pytest.raises(CheckpointError, match="one has values that are not finite"):
            read("one")
