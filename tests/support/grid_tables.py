"""Tables of a grid half-way, for the programs of a step and for their oracles."""

import random
from collections.abc import Callable
from copy import copy

import torch
from torch import Tensor

from model.cells import StateShape
from model.config import ModelConfig
from model.decode.backends.cuda.buckets import Bucket
from model.decode.backends.cuda.growth import Sizes
from model.decode.backends.cuda.tables import GridTables
from model.request import SessionLimits

FAR = 70
"""The position of the second sentence: its past is three blocks of nodes."""


def grown_tables(
    noise: Callable[..., Tensor], dtype: torch.dtype, *, device: torch.device
) -> GridTables:
    """One layer of two heads of six; two sentences of two beams, one at its start, one far on."""
    config = ModelConfig(
        vocab_size=23, d_model=12, num_heads=2, d_ff=8, num_encoder_layers=1, num_decoder_layers=1
    )
    state = StateShape(num_heads=2, width=6, grows=True)
    tables = GridTables(
        config,
        (state, state),
        width=2,
        num_slots=2,
        limits=SessionLimits(max_rows=4, max_slots=2, max_source_length=80, max_target_length=78),
        device=device,
        dtype=dtype,
        score_dtype=torch.float32,
    )
    tables.reserve(Sizes(num_slots=2, num_columns=80, source_length=80))
    for table in (*tables.growing, tables.cross_keys, tables.cross_values):
        table.copy_(noise(*table.shape, dtype=dtype))
    tables.positions.copy_(torch.tensor([0, FAR]))
    tables.source_lengths.copy_(torch.tensor([3, 70]))
    tables.tokens.copy_(torch.tensor([[4, 5], [6, 22]]))
    # Each row has one ancestor a position; the rows share some of them.
    chosen = (noise(2, FAR) > 0).long()
    nodes = torch.nn.functional.one_hot(chosen, 2).bool()  # (K, FAR, K)
    tables.ancestors[1, :, :FAR] = nodes
    return tables


def searching_tables(rng: random.Random, device: torch.device) -> GridTables:
    """Five sentences of up to four beams: in the prefix, forced, at the cap, two that are free."""
    config = ModelConfig(
        vocab_size=8, d_model=4, num_heads=1, d_ff=4, num_encoder_layers=1, num_decoder_layers=1
    )
    tables = GridTables(
        config,
        (),
        width=4,
        num_slots=5,
        limits=SessionLimits(max_rows=20, max_slots=5, max_source_length=16, max_target_length=30),
        device=device,
        dtype=torch.float32,
        score_dtype=torch.float32,
    )
    widths = [rng.randint(1, 4), 4, 3, 4, rng.randint(2, 4)]
    positions = [1, 4, 9, 7, tables.num_columns - 1]
    tables.widths.copy_(torch.tensor(widths))
    tables.num_candidates.copy_(torch.tensor([min(9, 2 * width + 1) for width in widths]))
    tables.positions.copy_(torch.tensor(positions))
    tables.prefix_lengths.copy_(torch.tensor([4, 2, 1, 1, 1]))
    tables.max_lengths.copy_(torch.tensor([20, 20, 10, 20, 60]))  # the third is at its cap
    tables.forced.fill_(-1)
    tables.forced[0, 2], tables.forced[1, 5] = 1, 6
    for slot, width in enumerate(widths):
        num_running = rng.randint(1, width)
        tables.scores[slot] = float("-inf")
        tables.scores[slot, :num_running] = torch.tensor(
            [rng.uniform(-4.0, 0.0) for _ in range(num_running)]
        )
        chosen = torch.tensor([[rng.randrange(4) for _ in range(30)] for _ in range(4)])
        tables.ancestors[slot, :, :30] = torch.nn.functional.one_hot(chosen, 4).bool()
    return tables


def copied_tables(tables: GridTables) -> GridTables:
    """Tables with the same numbers, which a step leaves alone that runs on the others."""
    twin = copy(tables)
    for name in ("tokens", "scores", "positions", "ancestors"):
        setattr(twin, name, getattr(tables, name).clone())
    return twin


def plain_bucket(
    *, num_slots: int, num_columns: int, source_length: int, num_candidates: int
) -> Bucket:
    """A step by the programs of sentences that ask for nothing special."""
    return Bucket(
        num_slots=num_slots,
        num_columns=num_columns,
        source_length=source_length,
        num_candidates=num_candidates,
        with_sources=False,
        with_suppressed=False,
        with_sampling=False,
        num_phrase_tokens=0,
        num_groups=1,
        no_repeat_ngram=0,
        by_kernels=True,
    )
