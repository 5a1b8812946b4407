"""Positions by NumPy are those of the network, bit for bit."""

import numpy as np
import pytest
import torch

from model.config import PositionKind
from model.native import positions
from model.native.positions import sinusoidal_rows
from model.nn.positions import relative_buckets, sinusoidal_table


@pytest.mark.parametrize(
    "kind", ["sinusoidal-interleaved", "sinusoidal-marian", "sinusoidal-m2m100"]
)
@pytest.mark.parametrize(("first", "length", "d_model"), [(0, 1, 4), (2, 600, 256), (0, 513, 1024)])
def test_sinusoids_are_those_of_the_network(
    kind: PositionKind, first: int, length: int, d_model: int
) -> None:
    expected = sinusoidal_table(kind, torch.arange(first, first + length), d_model).numpy()
    found = sinusoidal_rows(kind, first, length, d_model)
    assert found.dtype == np.float32
    assert np.array_equal(found.view(np.int32), expected.view(np.int32))


@pytest.mark.parametrize("is_bidirectional", [True, False])
def test_buckets_of_distances_are_those_of_the_network(*, is_bidirectional: bool) -> None:
    distances = np.arange(-5_000, 5_001)
    expected = relative_buckets(torch.from_numpy(distances), is_bidirectional=is_bidirectional)
    found = positions.relative_buckets(distances, is_bidirectional=is_bidirectional)
    assert np.array_equal(found, expected.numpy())
