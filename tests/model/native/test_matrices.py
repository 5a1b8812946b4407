"""Matrices in one memory: where each lies, and that a layout's number stands for one layout."""

import hashlib
import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from model.checkpoint.tensors.shapes import tensor_shapes
from model.config import ModelConfig
from model.native import kernels
from model.native.layout import Floats, Quanta
from model.native.matrices import PackedBefore, PackedHere
from model.native.network import pack

pytestmark = pytest.mark.skipif(
    kernels.find_problem() is not None, reason=f"no kernels here: {kernels.find_problem()}"
)
CONFIG = ModelConfig(
    vocab_size=70,
    target_vocab_size=5,
    d_model=20,
    num_heads=2,
    d_ff=36,
    d_k=10,
    d_v=18,
    num_encoder_layers=1,
    num_decoder_layers=2,
    gated_feed_forward=True,
    share_embeddings=False,
    tie_output=False,
)
SSRU = ModelConfig(
    vocab_size=70,
    d_model=34,
    num_heads=1,
    d_ff=6,
    decoder_cell="ssru",
    num_encoder_layers=1,
    num_decoder_layers=1,
)


class Counted:
    """Weights that follow from their names: the same on every machine, for ever."""

    def __init__(self, config: ModelConfig) -> None:
        self.shapes = tensor_shapes(config)

    def __contains__(self, name: str) -> bool:
        return name in self.shapes

    def rows(self, name: str) -> tuple[Quanta, Floats]:
        shape = self.shapes[name]
        values = (np.arange(np.prod(shape)) * 7 + len(name)) % 255 - 127
        scale = (np.arange(shape[0], dtype=np.float32) + 1) / 1024
        return values.astype(np.int8).reshape(shape), scale

    def floats(self, name: str) -> Floats:
        return np.arange(np.prod(self.shapes[name]), dtype=np.float32).reshape(self.shapes[name])


def packed(config: ModelConfig, matrices: PackedHere | PackedBefore) -> None:
    pack(
        config,
        Counted(config),
        max_positions=4,
        suppressed_ids=(),
        num_threads=1,
        matrices=matrices,
    )


def test_a_layout_has_a_number_of_its_own() -> None:
    """Files of packed weights are known by it: whoever changes this sum changes `kLayout` too."""
    digest = hashlib.sha256()
    for config in (CONFIG, SSRU):
        matrices = PackedHere(kernels.load())
        packed(config, matrices)
        places = {name: asdict(place) for name, place in matrices.places.items()}
        digest.update(json.dumps(places).encode())
        for part in matrices.memory.parts:
            digest.update(part)
    assert (kernels.load().layout, digest.hexdigest()) == (
        "panels-1",
        "4749060b0da1b940dd3ccd521e768a64e40b299bead9195e781f078ebcfb7d13",
    )


def test_matrices_lie_one_after_another() -> None:
    matrices = PackedHere(kernels.load())
    packed(CONFIG, matrices)
    offsets = [place.offset for place in matrices.places.values()]
    assert offsets == sorted(offsets)
    assert offsets[0] == 0
    assert all(offset % 64 == 0 for offset in offsets)
    (part,) = matrices.memory.parts
    assert part.readonly
    lent = PackedBefore(
        kernels.load(), kernels.load().weight_memory(aligned(part)), matrices.places
    )
    packed(CONFIG, lent)


def aligned(data: memoryview) -> memoryview:
    """A copy that begins at a cache line."""
    room = np.empty(len(data) + 64, np.uint8)
    begin = -room.ctypes.data % 64
    room[begin : begin + len(data)] = np.frombuffer(data, np.uint8)
    return memoryview(room[begin : begin + len(data)])


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ((64, 64, 4), "does not lie within"),
        ((2**40, 1, 1), "does not lie within"),
        ((0, 65, 4), "does not lie within"),
        ((0, 2**28, 2**28), "does not lie within"),
        ((0, 2**31 - 1, 1), "outputs and inputs"),
        ((1, 1, 1), "cache line"),
        ((0, 0, 1), "outputs and inputs"),
        ((0, 1, -1), "outputs and inputs"),
    ],
)
def test_no_matrix_reaches_beyond_its_memory(place: tuple[int, int, int], error: str) -> None:
    module = kernels.load()
    one = module.matrix(np.ones((64, 4), np.int8), np.ones(64, np.float32), None)
    memory = module.weight_memory(aligned(memoryview(np.zeros(64 * 4 + 2 * 64 * 4, np.uint8))))
    assert module.matrix.packed_in(memory, 0, 64, 4).num_outputs == one.num_outputs
    with pytest.raises((IndexError, ValueError), match=error):
        module.matrix.packed_in(memory, *place)


def test_memory_that_is_lent_takes_no_matrices() -> None:
    module = kernels.load()
    data = np.zeros(4096, np.uint8)
    parts: tuple[Any, ...] = (np.ones((1, 4), np.int8), np.ones(1, np.float32), None, 0.0)
    with pytest.raises(ValueError, match="takes no more matrices"):
        module.matrix(*parts, module.weight_memory(aligned(memoryview(data))))
    with pytest.raises(ValueError, match="must begin at a cache line"):
        module.weight_memory(aligned(memoryview(data))[1:])
    with pytest.raises(ValueError, match="must be bytes"):
        module.weight_memory(data[::2])


def test_a_memory_of_several_blocks_is_one_sequence() -> None:
    """A block has 64 MiB of address space, of which only what is written becomes memory."""
    matrices = PackedHere(kernels.load())
    wide = np.zeros((33 * 2**14, 64), np.int8)
    scale = np.ones(len(wide), np.float32)
    for name in ("one", "two"):
        matrices.matrix(name, lambda: (wide, scale, None))
    sizes = [len(part) for part in matrices.memory.parts]
    assert len(sizes) == 2
    assert [place.offset for place in matrices.places.values()] == [0, sizes[0]]
