"""Positions in the network: added tables, rotations of queries and keys, biases on scores.

Owns the formulas and their caches. Angles are computed in float64 and then rounded once, so a
table is as exact as its dtype allows, for any length. A cache follows the tensors it is used
with (device, dtype, length); it is never part of the state dict.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from model.config import ABSOLUTE_POSITIONS, ModelConfig, PositionKind
from model.errors import InputError

NUM_BUCKETS = 32
MAX_DISTANCE = 128


def _angles(positions: Tensor, num_frequencies: int, divisor: float) -> Tensor:
    """Angle pos / 10000^(i / divisor) for i < num_frequencies: (...) → (..., num_frequencies)."""
    i = torch.arange(num_frequencies, dtype=torch.float64, device=positions.device)
    return positions.to(torch.float64)[..., None] / 10000.0 ** (i / divisor)


def sinusoidal_table(
    kind: PositionKind, positions: Tensor, d_model: int, *, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Sinusoidal encodings of any positions.

    With half = d_model / 2 and i < half:

    - "sinusoidal-interleaved" (Vaswani et al. 2017, section 3.5): columns 2i and 2i+1 are sin and
      cos of pos / 10000^(2i / d_model);
    - "sinusoidal-marian": the same angles, all sines first, then all cosines;
    - "sinusoidal-m2m100" (fairseq, tensor2tensor): sines then cosines of
      pos / 10000^(i / (half − 1)).

    Args:
        kind: One of the three above.
        positions: (...) int64.
        d_model: Width, even.
        dtype: Of the result; the angles are float64.

    Returns:
        (..., d_model).
    """
    half = d_model // 2
    angles = _angles(positions, half, half - 1 if kind == "sinusoidal-m2m100" else half)
    sines, cosines = angles.sin(), angles.cos()
    if kind == "sinusoidal-interleaved":
        return torch.stack((sines, cosines), dim=-1).flatten(-2).to(dtype)
    return torch.cat((sines, cosines), dim=-1).to(dtype)


class _GrowingTable:
    """Rows 0..n of a function of the position, kept for the last device and dtype used."""

    def __init__(self, compute: Callable[[Tensor, torch.dtype], Tensor]) -> None:
        self._compute = compute
        self._rows: Tensor | None = None

    def __call__(self, length: int, like: Tensor) -> Tensor:
        rows = self._rows
        if (
            rows is None
            or len(rows) < length
            or rows.device != like.device
            or rows.dtype != like.dtype
        ):
            capacity = max(64, 1 << (length - 1).bit_length())
            with torch.inference_mode(mode=False):  # a table made while decoding also trains
                rows = self._compute(torch.arange(capacity, device=like.device), like.dtype)
            self._rows = rows
        return rows[:length]


class SinusoidalPositions(nn.Module):
    """Adds sinusoidal encodings, of any length, to embeddings."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.position
        self.offset = config.position_offset
        self.d_model = config.d_model
        self._table = _GrowingTable(self._compute)

    def _compute(self, positions: Tensor, dtype: torch.dtype) -> Tensor:
        return sinusoidal_table(self.kind, positions + self.offset, self.d_model, dtype=dtype)

    def table(self, length: int, like: Tensor) -> Tensor:
        """Encodings of positions 0..length-1, (length, D), on the device and dtype of `like`."""
        return self._table(length, like)

    def forward(self, embeddings: Tensor, positions: Tensor | None = None) -> Tensor:
        """Add encodings to (B, T, D); `positions` (B, T) or (T,) defaults to 0..T-1."""
        return embeddings + _rows(self.table, embeddings, positions)


class LearnedPositions(nn.Module):
    """Adds a learned vector per position; row `position_offset` is the first position's."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.vectors = nn.Embedding(config.max_positions, config.d_model)
        self.offset = config.position_offset
        self.max_length = config.max_positions - config.position_offset

    def table(self, length: int, like: Tensor) -> Tensor:
        """Vectors of positions 0..length-1, (length, D), in the dtype of `like`.

        Raises:
            InputError: The table has fewer rows.
        """
        if length > self.max_length:
            raise InputError(
                f"{length} positions are asked of a learned table that holds {self.max_length}",
                value=length,
                limit=self.max_length,
            )
        return self.vectors.weight[self.offset : self.offset + length].to(like.dtype)

    def forward(self, embeddings: Tensor, positions: Tensor | None = None) -> Tensor:
        """Add vectors to (B, T, D); `positions` (B, T) or (T,) defaults to 0..T-1."""
        return embeddings + _rows(self.table, embeddings, positions)


class NoPositions(nn.Module):
    """Adds nothing: order enters inside self-attention."""

    def forward(self, embeddings: Tensor, positions: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Return the embeddings, (B, T, D)."""
        return embeddings


AbsolutePositions = SinusoidalPositions | LearnedPositions | NoPositions


def build_absolute_positions(config: ModelConfig) -> AbsolutePositions:
    """What is added to the embeddings of one stack."""
    if config.position not in ABSOLUTE_POSITIONS:
        return NoPositions()
    return LearnedPositions(config) if config.position == "learned" else SinusoidalPositions(config)


def _rows(
    table: Callable[[int, Tensor], Tensor], embeddings: Tensor, positions: Tensor | None
) -> Tensor:
    """The table's rows for (B, T, D) embeddings; explicit positions cost a device round trip."""
    if positions is None:
        return table(embeddings.shape[1], embeddings)
    return table(int(positions.max()) + 1, embeddings)[positions]


class RotaryPositions(nn.Module):
    """Rotates pairs (2i, 2i+1) of a head by pos / 10000^(2i / d_k) (Su et al. 2021, RoFormer).

    The product of a rotated query and a rotated key depends on their distance only.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self._table = _GrowingTable(self._compute)

    def _compute(self, positions: Tensor, dtype: torch.dtype) -> Tensor:
        angles = _angles(positions, self.width // 2, self.width // 2)
        return torch.stack((angles.cos(), angles.sin()), dim=-1).to(dtype)

    def forward(self, heads: Tensor) -> Tensor:
        """Rotate (B, H, T, d_k) queries or keys that stand at positions 0..T-1."""
        cosines, sines = self._table(heads.shape[-2], heads).unbind(-1)
        even, odd = heads.view(*heads.shape[:-1], -1, 2).unbind(-1)
        rotated = (even * cosines - odd * sines, even * sines + odd * cosines)
        return torch.stack(rotated, dim=-1).flatten(-2)


def _distances(query_length: int, key_length: int, device: torch.device) -> Tensor:
    """Key position minus query position, (Q, K) int64."""
    queries = torch.arange(query_length, device=device)
    return torch.arange(key_length, device=device) - queries[:, None]


def alibi_slopes(num_heads: int, device: torch.device | None = None) -> Tensor:
    """Slope of every head, (H,) float32 (Press et al. 2022, section 3).

    2^(−8h/n) for h = 1..n when n = num_heads is a power of two; otherwise the slopes of the
    power below, then every second one of the power above, as in the authors' code.
    """
    power = 1 << (num_heads.bit_length() - 1)
    heads = torch.arange(1, power + 1, device=device)
    between = 2 * torch.arange(num_heads - power, device=device) + 1
    return torch.cat((2.0 ** (-8 * heads / power), 2.0 ** (-4 * between / power)))


class AlibiBias(nn.Module):
    """Scores fall linearly with distance: −slope · (i − j) for the keys j behind query i.

    Keys ahead, which only the encoder sees and the paper does not treat, fall twice as fast.
    Were both sides alike, a sentence and its reverse would have the same encoder output.
    """

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads

    def forward(self, query_length: int, key_length: int, device: torch.device) -> Tensor:
        """What is added to the scores, (H, Q, K)."""
        distances = _distances(query_length, key_length, device)
        falls = torch.where(distances > 0, 2 * distances, -distances)
        return -alibi_slopes(self.num_heads, device)[:, None, None] * falls


def relative_buckets(distances: Tensor, *, is_bidirectional: bool) -> Tensor:
    """T5's 32 buckets of key − query distances (Raffel et al. 2020, section 2.1).

    Half of the buckets of a direction hold one distance each; the other half grow
    logarithmically up to 128, and the last holds everything beyond. A bidirectional stack gives
    each direction half of the buckets; a unidirectional one puts every key ahead in bucket 0.

    Args:
        distances: (...) int64.
        is_bidirectional: Whether keys ahead of the query have buckets of their own.

    Returns:
        (...) int64 below 32.
    """
    num_buckets = NUM_BUCKETS // 2 if is_bidirectional else NUM_BUCKETS
    first = (distances > 0) * num_buckets if is_bidirectional else torch.zeros_like(distances)
    distances = distances.abs() if is_bidirectional else (-distances).clamp(min=0)
    num_exact = num_buckets // 2
    growth = torch.log(distances.clamp(min=1).float() / num_exact)
    growth = growth / math.log(MAX_DISTANCE / num_exact) * (num_buckets - num_exact)
    far = (num_exact + growth.long()).clamp(max=num_buckets - 1)
    return first + torch.where(distances < num_exact, distances, far)


class RelativeBias(nn.Module):
    """A learned score per head and bucket of distance; one table serves a whole stack."""

    def __init__(self, num_heads: int, *, is_bidirectional: bool) -> None:
        super().__init__()
        self.scores = nn.Embedding(NUM_BUCKETS, num_heads)
        self.is_bidirectional = is_bidirectional

    def forward(self, query_length: int, key_length: int, device: torch.device) -> Tensor:
        """What is added to the scores, (H, Q, K)."""
        distances = _distances(query_length, key_length, device)
        buckets = relative_buckets(distances, is_bidirectional=self.is_bidirectional)
        scores: Tensor = self.scores(buckets)
        return scores.permute(2, 0, 1)

    def by_distance(self, length: int) -> Tensor:
        """What is added to the scores of keys 0..length-1 positions behind a query, (H, length)."""
        distances = -torch.arange(length, device=self.scores.weight.device)
        buckets = relative_buckets(distances, is_bidirectional=self.is_bidirectional)
        scores: Tensor = self.scores(buckets)
        return scores.T


PositionBias = AlibiBias | RelativeBias


def build_position_bias(config: ModelConfig, *, is_bidirectional: bool) -> PositionBias | None:
    """What is added to the self-attention scores of one stack."""
    if config.position == "alibi":
        return AlibiBias(config.num_heads)
    if config.position == "relative":
        return RelativeBias(config.num_heads, is_bidirectional=is_bidirectional)
    return None
