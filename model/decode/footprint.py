"""Limits of a checkpoint's session, and the memory that its caches take when all are used.

Owns both, and the comparison with what a process may have, which `model.system.devices` tells. A
checkpoint from elsewhere says how long sentences are; what it says must not be more than the
machine has. Pure; imports no torch.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

from model.cells import StateShape, describe_cell
from model.checkpoint.manifest import Manifest
from model.config import ModelConfig
from model.errors import ConfigError
from model.request import SessionLimits
from model.system.host_memory import readable_bytes

_BYTES_OF_A_NUMBER = 2  # half precision: no backend keeps less

EAGER_COLUMNS = 2
"""Columns that the eager backend has for each position of the longest target."""

_BYTES_OF_A_STATE = 4  # of one that is replaced at every step
_BYTES_OF_A_TOKEN = 16  # token, log probability, parent and source of each place
_BYTES_OF_A_POSITION = 4
_BYTES_OF_A_FLOAT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTables:
    """Sizes of a backend's caches.

    Attributes:
        number_bytes: Of each number of the past and of the encoder's output.
        columns: Of the past, for each position of the longest target.
    """

    number_bytes: int = _BYTES_OF_A_NUMBER
    columns: int = 1


LEAST_TABLES = CacheTables()
"""The least that any backend has."""

EAGER_FLOAT32_TABLES = CacheTables(number_bytes=_BYTES_OF_A_FLOAT, columns=EAGER_COLUMNS)
"""Of float32 on a CPU."""

FEWEST_SLOTS = 16
"""That a grid on a GPU begins with, where limits allow as many."""

MAX_ENCODED_TOKENS = 16_384
"""That an encoder on a GPU has in one batch."""

_WIDE_VALUES, _INNER_VALUES = 8, 3
"""Of an encoder's layer, that are there at once: residual, norm, queries, keys, values and what
comes of them, each as wide as the network; inside feed-forward, with a gate."""

_REST_BYTES = 64 * 2**20
"""For what recordings take besides logits, and for small tables that few sentences need."""


def session_limits(manifest: Manifest, *, max_rows: int, max_slots: int) -> SessionLimits:
    """Limits of a session: the checkpoint's lengths, with room for the longest prefix."""
    return SessionLimits(
        max_rows=max_rows,
        max_slots=max_slots,
        max_source_length=manifest.limits.max_source_length,
        max_target_length=manifest.max_target_positions,
    )


def table_bytes(manifest: Manifest, limits: SessionLimits) -> int:
    """Bytes of the tables of positions, for source and target."""
    longest = max(limits.max_source_length, limits.max_target_length)
    return 2 * longest * manifest.network.d_model * _BYTES_OF_A_POSITION


def cache_bytes(
    manifest: Manifest, limits: SessionLimits, tables: CacheTables = LEAST_TABLES
) -> int:
    """Bytes of states and tokens of every row's past, and of keys and values of every source.

    The past of a row is what its cell keeps: states a position, or one however long it is.
    """
    network = manifest.network
    node = network.num_heads * (network.query_width + network.value_width) * tables.number_bytes
    past = limits.max_rows * limits.max_target_length
    sources = limits.max_slots * limits.max_source_length * node
    states = sum(_state_bytes(state, limits, tables) for state in describe_cell(network).states)
    return network.num_decoder_layers * (states + sources) + past * _BYTES_OF_A_TOKEN


def _state_bytes(state: StateShape, limits: SessionLimits, tables: CacheTables) -> int:
    """Bytes of one state of all rows in one layer."""
    num_bytes = limits.max_rows * state.num_heads * state.width
    if state.grows:
        return num_bytes * limits.max_target_length * tables.columns * tables.number_bytes
    return num_bytes * _BYTES_OF_A_STATE


def weight_bytes(manifest: Manifest, compute_type: Literal["int8", "float32"]) -> int:
    """Bytes that the weights have in memory at the very least, whatever is kept beside them."""
    total = 0
    for name, entry in manifest.tensors.items():
        size = math.prod(entry.shape)
        is_matrix = len(entry.shape) > 1 and "position" not in name
        if compute_type == "int8" and is_matrix:
            total += size + entry.shape[0] * _BYTES_OF_A_FLOAT
        else:
            total += size * _BYTES_OF_A_FLOAT
    return total


def shortlist_bytes(manifest: Manifest) -> int:
    """Bytes of the output layer that a shortlist keeps beside the packed one, row by row."""
    return manifest.network.output_size * manifest.network.d_model


def least_limits(limits: SessionLimits) -> SessionLimits:
    """Limits of the fewest sentences that a session on a GPU has tables for, at their longest.

    Its tables grow while there is memory, and sentences wait for it: no more is needed to serve.
    """
    rows_of_a_slot = max(1, limits.max_rows // limits.max_slots)
    num_slots = min(limits.max_slots, FEWEST_SLOTS)
    return replace(
        limits, max_slots=num_slots, max_rows=min(limits.max_rows, num_slots * rows_of_a_slot)
    )


def working_bytes(network: ModelConfig, *, number_bytes: int = _BYTES_OF_A_NUMBER) -> int:
    """Bytes that a session on a GPU leaves free beside its tables, for its largest encoder batch.

    Args:
        network: Sizes of the network.
        number_bytes: Of each number that it computes with.
    """
    values = _WIDE_VALUES * network.d_model + _INNER_VALUES * network.d_ff
    return MAX_ENCODED_TOKENS * values * number_bytes + _REST_BYTES


def fitting_rows(
    manifest: Manifest, limits: SessionLimits, free_bytes: int, *, num_tokens: int
) -> int:
    """Rows at most for which memory suffices, of sentences with so many source and target tokens.

    What single steps take on the way is not counted, nor that a table that grows is there twice.
    """
    each = replace(
        limits,
        max_rows=max(1, limits.max_rows // limits.max_slots),
        max_slots=1,
        max_source_length=min(num_tokens, limits.max_source_length),
        max_target_length=min(num_tokens, limits.max_target_length),
    )
    return min(limits.max_rows, free_bytes // cache_bytes(manifest, each) * each.max_rows)


def check_footprint(
    manifest: Manifest,
    limits: SessionLimits,
    limit: int | None,
    *,
    with_shortlist: bool = False,
    tables: CacheTables = LEAST_TABLES,
) -> int:
    """The bytes that tables and caches take, if they fit.

    Args:
        manifest: Of the checkpoint.
        limits: Of its session.
        limit: Bytes that there are; None lets everything pass.
        with_shortlist: Sentences choose from lists, for which the output layer is kept twice.
        tables: Of the backend that runs them (`model.decode.backends.opening.cache_tables`).

    Raises:
        ConfigError: They do not; the message names the values, what they need and the limit.
    """
    num_bytes = table_bytes(manifest, limits) + cache_bytes(manifest, limits, tables)
    num_bytes += shortlist_bytes(manifest) if with_shortlist else 0
    if limit is not None and num_bytes > limit:
        prefix = manifest.max_prefix_length - 1  # without the start token
        raise ConfigError(
            f"limits.max_source_length {manifest.limits.max_source_length},"
            f" limits.max_target_length {manifest.limits.max_target_length} and a prefix of"
            f" {prefix} pieces make caches of {readable_bytes(num_bytes)} for {limits.max_rows}"
            f" rows and {limits.max_slots} slots; there are at most {readable_bytes(limit)}"
        )
    return num_bytes
