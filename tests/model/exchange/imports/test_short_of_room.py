"""Conversions that memory or disk is short for, in processes and on file systems that are so."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from model.checkpoint.weights import load_checkpoint
from model.errors import CheckpointError
from model.exchange.imports.convert import convert
from support.huggingface_folders import marian_folder
from support.made_imports import MadeImporter, write_made_model
from support.short_of_memory import printed
from support.small_disk import on_small_disk, small_files

LARGE_D_FF = 2**19
LEFT = 2**26


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_made_model(tmp_path / "foreign")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("form", ["safetensors", "bin"])
def test_a_network_that_memory_is_short_for_leaves_nothing(tmp_path: Path, form: str) -> None:
    """A matrix of 67 MB where 64 MiB are left: neither mapped, nor read."""
    small = marian_folder(tmp_path / "sources" / "opus-mt-en-zh")
    shape = {"encoder_layers": 1, "decoder_layers": 1}
    shape |= {"encoder_ffn_dim": LARGE_D_FF, "decoder_ffn_dim": LARGE_D_FF}
    large = marian_folder(tmp_path / "sources" / "opus-mt-en-de", **shape)
    if form == "bin":
        for folder in (small, large):
            torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
            (folder / "model.safetensors").unlink()
    code = f"""
import sys
from service.cli.main import main

sys.stderr = sys.stdout
small, large, folder = sys.argv[1:]
assert main(["convert", small, f"{{folder}}/small"]) == 0
leave({LEFT})
print(main(["convert", large, f"{{folder}}/large"]))
"""
    place = tmp_path / "checkpoints"
    place.mkdir()
    *_, told, status = printed(code, str(small), str(large), str(place)).splitlines()
    assert status == "1"
    assert told.startswith(f"dragoman: {large}: memory ran out ")
    assert told.endswith(" MiB are free")
    assert names(place) == {"small"}
    load_checkpoint(place / "small")


def test_a_matrix_that_memory_is_short_for_is_named_with_its_size(
    source: Path, tmp_path: Path
) -> None:
    code = f"""
import sys
sys.path.insert(0, "tests")
from model.errors import DragomanError
from model.exchange.imports.convert import convert
from support.made_imports import MadeImporter

def short(name):
    if name == "source_embedding.weight":
        leave({LEFT})
        bytearray({2 * LEFT})

source, folder = map(Path, sys.argv[1:])
try:
    convert(source, folder / "out", importers=[MadeImporter(before_read=short)])
except DragomanError as error:
    print(error)
"""
    told = printed(code, str(source), str(tmp_path))
    named = "memory ran out at source_embedding.weight, which has 0.1 MiB in float32; "
    assert told.startswith(f"{source}: {named}")
    assert told.endswith(" MiB are free\n")
    assert names(tmp_path) == {"foreign"}


def test_a_small_disk_is_told_before_anything_is_written(source: Path, tmp_path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
sys.path.insert(0, "tests")
from model.errors import DragomanError
from model.exchange.imports.convert import convert
from support.made_imports import MadeImporter

importer = MadeImporter()
try:
    convert(Path(sys.argv[1]), Path(sys.argv[2], "out"), importers=[importer])
except DragomanError as error:
    print(error)
print(importer.num_reads, os.listdir(sys.argv[2]))
"""
    folder = tmp_path / "small"
    folder.mkdir()
    told, left = on_small_disk(folder, 2**20, code, str(source), str(folder)).splitlines()
    assert told == f"{folder}/out: needs 64.1 MiB of disk; 1.0 MiB are free"
    assert left == "{} []"


def test_a_disk_that_others_fill_meanwhile_has_room_for_the_weights(
    source: Path, tmp_path: Path
) -> None:
    """Their room was set aside; what comes after them was not, and then nothing is left."""
    code = """
import os, sys
from pathlib import Path
sys.path.insert(0, "tests")
from model.errors import DragomanError
from model.exchange.imports.convert import convert
from support.made_imports import MadeImporter

folder, names = Path(sys.argv[2]), []

def fill(name):
    names.append(name)
    with (folder / "others").open("ab", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass

try:
    convert(Path(sys.argv[1]), folder / "out", importers=[MadeImporter(before_read=fill)])
except DragomanError as error:
    print(error)
print(len(set(names)) > 30, os.listdir(folder))
"""
    folder = tmp_path / "small"
    folder.mkdir()
    told, left = on_small_disk(folder, 66 * 2**20, code, str(source), str(folder)).splitlines()
    assert told.startswith(f"{folder}/out: needs 64.1 MiB of disk; ")
    assert told.endswith(": No space left on device")
    assert left == "True ['others']"


def test_a_limit_of_files_is_a_full_disk(source: Path, tmp_path: Path) -> None:
    importer = MadeImporter()
    with (
        small_files(20_000),
        pytest.raises(CheckpointError, match=r"needs 64\.1 MiB of disk; .*: File too large$"),
    ):
        convert(source, tmp_path / "out", importers=[importer])
    assert importer.num_reads == {}
    assert names(tmp_path) == {"foreign"}
    convert(source, tmp_path / "out", importers=[importer])
    load_checkpoint(tmp_path / "out")
