"""The kernels against their definition: log probabilities of networks of every kind."""

import numpy as np
import pytest
import torch

from model.config import ModelConfig
from model.native import kernels
from model.native.in_memory import NetworkWeights
from model.native.layout import Floats, Quanta
from model.native.network import Int8Network
from support.int8_cases import SHAPE, SHAPES, packed, random_network
from support.int8_reference import Int8Reference, Rows
from support.random_weights import random_weights
from support.search_cases import TOKENS

pytestmark = pytest.mark.skipif(
    kernels.find_problem() is not None, reason=f"no kernels here: {kernels.find_problem()}"
)


@pytest.mark.parametrize("name", SHAPES)
def test_log_probabilities_are_those_of_the_definition(name: str) -> None:
    assert_equal_log_probabilities(*random_network(SHAPES[name], num_threads=2))


def assert_equal_log_probabilities(network: Int8Network, reference: Int8Reference) -> None:
    """Of every next token of two sentences that are fed side by side."""
    session = kernels.load().session(
        network.packed,
        network.team,
        max_rows=5,
        max_slots=3,
        max_source_length=38,
        max_target_length=38,
        eos_id=TOKENS.eos_id,
    )
    vocab_size = network.config.output_size
    generator = torch.Generator().manual_seed(7)
    sources = [torch.randint(3, 23, (length,), generator=generator) for length in (1, 21)]
    targets = torch.randint(3, 23, (2, 35), generator=generator)
    session.encode(
        torch.cat(sources).int().numpy(),
        np.array([1, 21], dtype=np.int32),
        np.array([2, 0], dtype=np.int32),
    )
    expected = torch.stack(
        [reference.log_probs(*pair) for pair in zip(sources, targets, strict=True)]
    )
    differences = []
    for position in range(targets.shape[1]):
        log_probs = np.empty((2, vocab_size), dtype=np.float32)
        best = np.empty((2, vocab_size), dtype=np.int64)
        session.feed(
            targets[:, position].contiguous().numpy(),
            np.array([4, 1]),
            np.array([2, 0]),
            np.full(2, position),
            log_probs,
            best,
            None,
        )
        assert (np.diff(log_probs) <= 0).all()
        # What is suppressed comes last, as impossible; its probability stays its own.
        assert np.isneginf(log_probs[:, -1]).all()
        got = torch.from_numpy(log_probs)[:, :-1]
        wanted = expected[:, position].gather(1, torch.from_numpy(best)[:, :-1])
        differences.append((got - wanted).abs().flatten())
    # An activation on the edge between two quanta may go either way, and all after it differs.
    difference = torch.cat(differences)
    assert difference.median() < 1e-5
    assert difference.max() < 0.5


class StoredRows(NetworkWeights):
    """Weights whose matrices are stored as int8 rows already."""

    def __init__(self, state: dict[str, torch.Tensor], rows: dict[str, Rows]) -> None:
        super().__init__(state)
        self._rows = rows

    def rows(self, name: str) -> tuple[Quanta, Floats]:
        quanta, scale = self._rows[name]
        return quanta.numpy(), scale.numpy()


def rows_with_any_scale(weight: torch.Tensor, *, one_scale: bool) -> Rows:
    """As Marian (one scale a matrix) or CTranslate2 (one a row) stores it: 24 significant bits."""
    largest = weight.abs().amax() if one_scale else weight.abs().amax(dim=1, keepdim=True)
    scale = (largest / 127).expand(len(weight), 1)
    quanta = torch.round(weight / scale).clamp(-127, 127).to(torch.int8)
    return quanta, scale[:, 0].contiguous()


@pytest.mark.parametrize("one_scale", [True, False], ids=["one scale a matrix", "one a row"])
@pytest.mark.parametrize("name", ["post-norm, tied", "ssru", "t5", "odd widths, no biases"])
def test_rows_that_are_stored_already_are_multiplied_as_they_are(
    name: str, *, one_scale: bool
) -> None:
    config = ModelConfig(**(SHAPE | SHAPES[name]))
    weights = random_weights(config)
    rows = {
        key: rows_with_any_scale(weight, one_scale=one_scale)
        for key, weight in weights.items()
        if weight.dim() == 2
    }
    assert any((scale.view(torch.int32) & 0xFF).any() for _, scale in rows.values())
    assert_equal_log_probabilities(
        packed(config, StoredRows(weights, rows)), Int8Reference(config, weights, rows)
    )
