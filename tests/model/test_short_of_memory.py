"""Loading of a checkpoint that there is no memory for, in processes with a real limit."""

import math
from pathlib import Path

import pytest

from model.checkpoint.description.config_file import read_manifest
from model.decode.footprint import weight_bytes
from model.native import kernels
from support.short_of_memory import LARGE_BYTES, printed, write_large_checkpoint
from support.tiny_checkpoint import write_tiny_checkpoint

LEFT = 2**27
LOAD = f"""
import sys
from model.errors import MemoryShortageError
from model.loading import load_for_decoding
from model.system import shortage

compute_type, is_foreseen, small, large = sys.argv[1:]
load = lambda directory: load_for_decoding(
    Path(directory), compute_type=compute_type, num_threads=1
)
load(small)
if is_foreseen == "no":
    shortage.free_memory = lambda: None
leave({LEFT})
try:
    load(large)
except MemoryShortageError as error:
    print(error.path, error.needed_bytes, error.free_bytes, error, sep="\\n")
load(small)
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("checkpoints") / "small")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large_checkpoint(tmp_path_factory.mktemp("checkpoints") / "large")


@pytest.mark.parametrize("is_foreseen", ["yes", "no"])
@pytest.mark.parametrize("compute_type", ["int8", "float32"])
def test_a_load_that_memory_is_short_for_says_what_it_needs_and_what_there_is(
    small: Path, large: Path, compute_type: str, is_foreseen: str
) -> None:
    """Before anything is read, or, where the system tells nothing, when it has run out."""
    if compute_type == "int8" and (problem := kernels.find_problem()):
        pytest.skip(problem)
    path, needed, free, told = printed(
        LOAD, compute_type, is_foreseen, str(small), str(large)
    ).splitlines()
    assert path == str(large)
    assert int(needed) > (1 if compute_type == "int8" else 4) * LARGE_BYTES
    assert told.startswith(f"{large}: needs at least {int(needed) / 2**20:,.1f} MiB of memory; ")
    if is_foreseen == "yes":
        assert 0 < int(free) <= LEFT
        assert told.endswith(f"; {int(free) / 2**20:,.1f} MiB are free")
    else:
        assert free == "None"
        assert told.endswith("; not so much is free")


def test_the_least_that_weights_take_is_what_is_stored_or_four_times_as_much(large: Path) -> None:
    manifest = read_manifest(large)
    stored = (large / manifest.files.weights).stat().st_size
    assert 0.97 * stored < weight_bytes(manifest, "int8") < stored
    num_weights = sum(math.prod(entry.shape) for entry in manifest.tensors.values())
    assert weight_bytes(manifest, "float32") == 4 * num_weights


def test_a_command_says_it_in_one_line(small: Path, large: Path) -> None:
    code = f"""
import sys
from service.cli.main import main

words = ["translate", "--from", "en", "--to", "zh", "--threads", "1", "--checkpoint"]
assert main([*words, sys.argv[1], sys.argv[3]]) == 0
leave({LEFT})
sys.stderr = sys.stdout
print(main([*words, sys.argv[2], sys.argv[3]]))
"""
    lines = large.parent / "lines"
    lines.write_text("The cat.\n", encoding="utf-8")
    *_, told, status = printed(code, str(small), str(large), str(lines)).splitlines()
    assert told.startswith(f"dragoman: {large}: needs at least 2")
    assert told.endswith("MiB are free")
    assert status == "1"
