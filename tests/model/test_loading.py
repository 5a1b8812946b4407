"""Which arithmetic a checkpoint is loaded for, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.checkpoint.weights import load_checkpoint
from model.errors import UnsupportedVariantError
from model.loading import as_served, load_for_decoding
from model.native import kernels
from support.tiny_checkpoint import write_tiny_checkpoint


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("checkpoints") / "tiny"
    write_tiny_checkpoint(directory)
    return directory


def test_a_cpu_computes_in_int8_where_it_can_and_in_float32_where_it_is_told(
    checkpoint: Path,
) -> None:
    best = "float32" if kernels.find_problem() else "int8"
    assert load_for_decoding(checkpoint).compute_type == best
    assert load_for_decoding(checkpoint, compute_type="float32").compute_type == "float32"


def test_bfloat16_is_for_gpus(checkpoint: Path) -> None:
    with pytest.raises(UnsupportedVariantError, match="'bfloat16', which is for GPUs"):
        load_for_decoding(checkpoint, compute_type="bfloat16")


def test_a_network_in_memory_is_served_as_it_would_be_from_a_file(checkpoint: Path) -> None:
    loaded = load_checkpoint(checkpoint)
    assert as_served(loaded).compute_type == load_for_decoding(checkpoint).compute_type
    elsewhere = replace(loaded, transformer=loaded.transformer.to("meta"))  # no CPU: as a GPU
    assert as_served(elsewhere).compute_type == "bfloat16"
    assert elsewhere.transformer.target_embedding.weight.dtype == torch.float32  # it trains on


@pytest.mark.gpu
def test_a_gpu_computes_in_bfloat16_unless_it_is_told_otherwise(checkpoint: Path) -> None:
    for compute_type, dtype in (("auto", torch.bfloat16), ("float32", torch.float32)):
        runnable = load_for_decoding(checkpoint, device="cuda", compute_type=compute_type)  # type: ignore[arg-type]
        assert runnable.network.target_embedding.weight.dtype == dtype  # type: ignore[union-attr]
    with pytest.raises(UnsupportedVariantError, match="int8 kernels run on a CPU"):
        load_for_decoding(checkpoint, device="cuda", compute_type="int8")
