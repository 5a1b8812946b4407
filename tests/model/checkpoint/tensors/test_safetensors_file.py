import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save_file
from torch import Tensor

from model.checkpoint.manifest import TensorEntry
from model.checkpoint.tensors import safetensors_file
from model.checkpoint.tensors.quantisation import dequantise_rows, quantise_rows
from model.checkpoint.tensors.safetensors_file import (
    QuantisedRows,
    file_layout,
    opened_weight_file,
    write_weight_file,
)
from model.errors import ConfigError

INT8 = TensorEntry(shape=(7, 5), dtype="int8", quantisation="int8-row")


def values(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(params=[2**22, 11])
def _chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safetensors_file, "_CHUNK_ELEMENTS", request.param)


@pytest.mark.usefixtures("_chunk")
def test_a_file_is_byte_for_byte_that_of_the_safetensors_library(tmp_path: Path) -> None:
    matrix, half, brain = values(7, 5), values(3, 2).half(), values(4).bfloat16()
    single = values(9, 1, 2)
    quanta, scale = quantise_rows(matrix)
    entries = {
        "z.weight": INT8,
        "half": TensorEntry(shape=(3, 2), dtype="float16"),
        "brain": TensorEntry(shape=(4,), dtype="bfloat16"),
        "naïve": TensorEntry(shape=(9, 1, 2), dtype="float32"),
    }
    tensors = {"z.weight": matrix, "naïve": single, "half": half, "brain": brain}
    write_weight_file(tmp_path / "ours", entries, tensors.items())
    theirs = {"z.weight": quanta, "z.weight.scale": scale}
    theirs |= {"naïve": single, "half": half, "brain": brain}
    save_file(theirs, tmp_path / "theirs", metadata={"format": "pt"})
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    assert file_layout(entries).num_bytes == (tmp_path / "theirs").stat().st_size


@pytest.mark.usefixtures("_chunk")
def test_int8_rows_are_kept_byte_for_byte(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(2)
    quanta = torch.randint(-127, 128, (7, 5), generator=generator, dtype=torch.int8)
    scale = values(7, seed=4).abs()  # of all bits, as `quantise_rows` never makes them
    rows = QuantisedRows(quanta=quanta, scale=scale)
    with opened_weight_file(tmp_path / "file", {"w": INT8}) as file:
        file.write("w", rows)
    found = load((tmp_path / "file").read_bytes())
    assert torch.equal(found["w"], quanta)
    assert torch.equal(found["w.scale"], scale)
    with opened_weight_file(
        tmp_path / "wide", {"w": TensorEntry(shape=(7, 5), dtype="float32")}
    ) as file:
        file.write("w", rows)
    assert torch.equal(load((tmp_path / "wide").read_bytes())["w"], dequantise_rows(quanta, scale))


def test_a_file_is_gone_on_with(tmp_path: Path) -> None:
    entries = {name: TensorEntry(shape=(3,), dtype="float32") for name in "ab"}
    for name in "ab":
        with opened_weight_file(tmp_path / "file", entries) as file:
            file.write(name, values(3, seed=ord(name)))
            file.flush()
    found = load((tmp_path / "file").read_bytes())
    assert all(torch.equal(found[name], values(3, seed=ord(name))) for name in "ab")


@pytest.mark.parametrize(
    ("value", "entry", "message"),
    [
        (torch.tensor([1.0, math.nan]), TensorEntry(shape=(2,), dtype="float32"), "not finite"),
        (torch.tensor([1e6, 1.0]), TensorEntry(shape=(2,), dtype="float16"), "fit float16"),
        (
            torch.tensor([1e300, 1.0], dtype=torch.float64),
            TensorEntry(shape=(2,), dtype="float32"),
            "fit float32",
        ),
        (torch.full((7, 5), 1e300, dtype=torch.float64), INT8, "fit float32"),
        (torch.ones(3), TensorEntry(shape=(2,), dtype="float32"), r"has shape \[3\], expected"),
        (
            QuantisedRows(
                quanta=torch.zeros(7, 5, dtype=torch.int8), scale=torch.full((7,), math.inf)
            ),
            INT8,
            "not finite",
        ),
    ],
)
def test_what_cannot_be_stored_is_refused(
    tmp_path: Path, value: Tensor | QuantisedRows, entry: TensorEntry, message: str
) -> None:
    with (
        opened_weight_file(tmp_path / "file", {"w": entry}) as file,
        pytest.raises(ConfigError, match=f"^w .*{message}"),
    ):
        file.write("w", value)
