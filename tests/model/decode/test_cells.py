"""Another cell than self-attention, decoded by both PyTorch backends, against the plain search."""

import random
from collections.abc import Callable
from functools import partial

import pytest
import torch

from model.cells import StateShape
from model.config import ModelConfig, SearchConfig
from model.decode.backends.base import Backend
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.recording import Rerun
from model.decode.backends.cuda.tables import GridTables
from model.decode.backends.eager.backend import EagerBackend
from model.decode.backends.eager.cache import RowCache
from model.decode.fused_layer import fuse_layers
from model.decode.session import DecodingSession, SessionLimits
from model.errors import UnsupportedVariantError
from model.native.in_memory import pack_transformer
from support.gated_average import with_gated_average
from support.search_cases import (
    LIMITS,
    TOKENS,
    assert_equals_reference,
    random_request,
    run_in_a_crowd,
    small_transformer,
)
from support.traced_steps import TracedSteps

OPENERS = {"eager": EagerBackend, "grid": partial(GridBackend, recorder=Rerun())}
both = pytest.mark.parametrize("opener", OPENERS.values(), ids=OPENERS.keys())


@both
@pytest.mark.parametrize("norm_placement", ["post", "pre"])
def test_in_float64_a_crowd_never_changes_a_sentence(
    opener: Callable[..., Backend], norm_placement: str
) -> None:
    """Rows are reordered, copied, moved and given away; every one finds its own states."""
    transformer = with_gated_average(norm_placement=norm_placement)
    for request, hypotheses in run_in_a_crowd(transformer, random.Random(41), 25, opener=opener):
        assert_equals_reference(transformer, request, hypotheses)


def test_recorded_steps_find_the_states_too() -> None:
    transformer = with_gated_average(num_decoder_layers=1)
    limits = SessionLimits(max_rows=8, max_slots=2, max_source_length=16, max_target_length=24)
    opener = partial(GridBackend, recorder=TracedSteps())
    session = DecodingSession(transformer, tokens=TOKENS, limits=limits, opener=opener)
    rng = random.Random(43)
    search = SearchConfig(beam_size=4, num_hypotheses=4, max_length=12)
    for _ in range(3):
        request = random_request(rng, search)
        session.admit([request])
        while not session.is_idle:
            for finished in session.step():
                assert_equals_reference(transformer, request, finished.hypotheses)


def test_replaced_states_are_never_narrower_than_float32() -> None:
    states = (
        StateShape(num_heads=1, width=6, grows=True),
        StateShape(num_heads=1, width=5, grows=False),
    )
    config, device = ModelConfig(vocab_size=9, d_model=8, num_heads=2), torch.device("cpu")
    for dtype, wide in (
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ):
        rows = RowCache(states, num_layers=2, max_rows=3, max_length=4, device=device, dtype=dtype)
        tables = GridTables(
            config,
            states,
            width=2,
            num_slots=3,
            limits=LIMITS,
            device=device,
            dtype=dtype,
            score_dtype=wide,
        )
        for kept in (rows, tables):
            assert [table.dtype for table in kept.growing] == [dtype]
            assert [table.dtype for table in kept.replaced] == [wide]


@both
def test_states_that_are_not_finite_are_not_inherited(opener: Callable[..., Backend]) -> None:
    transformer = with_gated_average(share_embeddings=False, tie_output=False)
    with torch.no_grad():
        transformer.source_embedding.weight[7] = torch.nan
    session = DecodingSession(transformer, tokens=TOKENS, limits=LIMITS, opener=opener)
    rng = random.Random(47)
    search = SearchConfig(beam_size=3, max_length=8)
    healthy = random_request(rng, search)
    while 7 in healthy.source_ids:
        healthy = random_request(rng, search)
    bad = type(healthy)(source_ids=(7, 1), prefix_ids=healthy.prefix_ids, search=search)
    for request in (bad, healthy):
        session.admit([request])
        while not session.is_idle:
            for finished in session.step():
                if request is healthy:
                    assert_equals_reference(transformer, healthy, finished.hypotheses)
                else:
                    assert finished.hypotheses == ()


def test_layers_that_keep_different_states_are_refused_by_name() -> None:
    transformer = small_transformer()
    transformer.decoder.layers[1] = with_gated_average().decoder.layers[1]
    with pytest.raises(UnsupportedVariantError, match="layer 1 is a GatedAverage, which keeps"):
        fuse_layers(transformer)


def test_int8_kernels_refuse_a_cell_that_they_do_not_know() -> None:
    message = "the cell of decoder layer 0 is a GatedAverage; int8 decoding knows only"
    with pytest.raises(UnsupportedVariantError, match=message):
        pack_transformer(with_gated_average(), max_positions=8)
