"""Code that runs in a process of its own within a real limit of its address space."""

import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from model.exchange.imports.completeness import network_shapes
from model.exchange.imports.convert import convert
from model.exchange.imports.imported import ForeignTensor, ImportedModel, QuantisedRows
from support.made_imports import MadeImporter, write_made_model

ROOT = Path(__file__).resolve().parents[2]
LARGE_BYTES = 6 * 2**20 * 32
"""Of the int8 matrices of a large checkpoint, at least."""
_PRELUDE = """
import resource
from pathlib import Path

def leave(num_bytes):
    '''Let this process have so much more address space than it has.'''
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + num_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
"""


def write_large_checkpoint(directory: Path, *, name: str = "large") -> Path:
    """A checkpoint of 200 MB, en → zh-Hans; its matrices are zeros."""

    def enlarged(imported: ImportedModel) -> ImportedModel:
        network = replace(imported.network, d_ff=2**20, num_encoder_layers=2, num_decoder_layers=1)
        tensors = {
            name: ForeignTensor(shape=shape, read=partial(_zeros, shape))
            for name, shape in network_shapes(network).items()
        }
        return replace(imported, network=network, tensors=tensors)

    with tempfile.TemporaryDirectory() as folder:
        source = write_made_model(Path(folder) / "made")
        convert(source, directory, importers=[MadeImporter(change=enlarged)], name=name)
    return directory


def _zeros(shape: tuple[int, ...]) -> Tensor | QuantisedRows:
    if len(shape) < 2:
        return torch.zeros(shape)
    return QuantisedRows(quanta=torch.zeros(shape, dtype=torch.int8), scale=torch.ones(shape[0]))


def printed(code: str, *words: str) -> str:
    """What code prints that may call `leave`, and has `words` as its arguments."""
    ended = subprocess.run(
        [sys.executable, "-c", _PRELUDE + code, *words],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
