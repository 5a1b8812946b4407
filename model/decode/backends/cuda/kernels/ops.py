"""The launches of a step's network: shapes and block sizes of their programs.

Owns the way from tensors to launches. Tensors are contiguous unless said otherwise. Which programs
a step needs, and in which order, is `decoder`.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from model.config import Activation
from model.decode.backends.cuda.kernels import attention, norms, products
from model.decode.backends.cuda.kernels.launching import Launcher
from model.decode.backends.cuda.tables import GridTables
from model.nn.norms import Norm

_MIN_DOT = 16
"""Rows and columns of the smallest product of tensor cores."""
_NODES = 64
"""Nodes or source positions that attention looks at together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormWeights:
    """A norm over D columns.

    Attributes:
        gain: (D,).
        offset: (D,); None with RMSNorm.
        epsilon: Inside the root.
    """

    gain: Tensor
    offset: Tensor | None
    epsilon: float

    @classmethod
    def of(cls, norm: Norm) -> "NormWeights":
        """The weights of a module."""
        epsilon = norm.eps
        assert epsilon is not None  # the network's configuration says it
        offset = norm.bias if isinstance(norm, torch.nn.LayerNorm) else None
        return cls(gain=norm.weight, offset=offset, epsilon=epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A linear layer: (N, D) weight and (N,) bias."""

    weight: Tensor
    bias: Tensor | None


def wide_of(dtype: torch.dtype) -> tl.dtype:
    """The precision that sums are made in."""
    return tl.float64 if dtype == torch.float64 else tl.float32


def block_of(size: int, *, minimum: int = 1) -> int:
    """The power of two that holds so many."""
    return max(1 << (size - 1).bit_length(), minimum)


class KernelOps:
    """The programs, by one launcher."""

    def __init__(self, launcher: Launcher) -> None:
        """Launch all of them by `launcher`."""
        self._launcher = launcher

    def embed(
        self,
        tables: GridTables,
        num_slots: int,
        *,
        table: Tensor,
        scale: float,
        positions: Tensor | None,
        norm: NormWeights | None,
    ) -> Tensor:
        """What enters the first layer, (R, D); every row's new node becomes its own ancestor.

        Args:
            tables: The grid's.
            num_slots: Slots of the step.
            table: (V, D) embeddings.
            scale: Of these.
            positions: (P, D) or None.
            norm: Of the sum, or None.
        """
        num_rows, size = num_slots * tables.width, table.shape[1]
        out = table.new_empty(num_rows, size)
        self._launcher.launch(
            norms.embed,
            (num_rows,),
            (
                tables.tokens,
                tables.positions,
                table,
                positions,
                None if norm is None else norm.gain,
                None if norm is None else norm.offset,
                tables.ancestors.view(torch.uint8),
                out,
                0 if positions is None else len(positions) - 1,
                tables.num_columns,
            ),
            {
                "SCALE": scale,
                "EPSILON": 0.0 if norm is None else norm.epsilon,
                "D": size,
                "K": tables.width,
                "HAS_POSITIONS": positions is not None,
                "HAS_NORM": norm is not None,
                "IS_RMS": norm is not None and norm.offset is None,
                "BLOCK_D": block_of(size),
                "BLOCK_K": block_of(tables.width),
                "WIDE": wide_of(table.dtype),
            },
        )
        return out

    def add_norm(
        self, hidden: Tensor, change: Tensor | None, norm: NormWeights, *, keeps_total: bool
    ) -> tuple[Tensor, Tensor]:
        """The sum of both and its norm, (R, D) each; the sum is `hidden` itself unless it is kept.

        Args:
            hidden: (R, D).
            change: (R, D) or None.
            norm: Of the sum.
            keeps_total: Whether the sum is needed, too.
        """
        out = torch.empty_like(hidden)
        total = torch.empty_like(hidden) if keeps_total else hidden
        self._launcher.launch(
            norms.add_norm,
            (len(hidden),),
            (hidden, change, norm.gain, norm.offset, total if keeps_total else None, out),
            {
                "EPSILON": norm.epsilon,
                "D": hidden.shape[1],
                "HAS_CHANGE": change is not None,
                "KEEPS_TOTAL": keeps_total,
                "IS_RMS": norm.offset is None,
                "BLOCK_D": block_of(hidden.shape[1]),
                "WIDE": wide_of(hidden.dtype),
            },
        )
        return total, out

    def product(
        self,
        x: Tensor,
        linear: Linear,
        *,
        norm: NormWeights | None = None,
        activation: Activation | None = None,
        residual: Tensor | None = None,
        residual_norm: NormWeights | None = None,
    ) -> Tensor:
        """activation(norm(x) Wᵀ + b) + residual_norm(residual): (R, D) → (R, N), for few rows.

        Args:
            x: (R, D).
            linear: Weight and bias.
            norm: Of `x`, or None.
            activation: Of the product, or None.
            residual: (R, N) or None.
            residual_norm: Of `residual`, of the kind of `norm`, or None.
        """
        num_rows, size = x.shape
        width = len(linear.weight)
        out = x.new_empty(num_rows, width)
        rows = min(block_of(num_rows, minimum=_MIN_DOT), 64)
        columns = 16
        either = norm or residual_norm
        self._launcher.launch(
            products.product,
            (triton.cdiv(width, columns), triton.cdiv(num_rows, rows)),
            (
                x,
                linear.weight,
                linear.bias,
                None if norm is None else norm.gain,
                None if norm is None else norm.offset,
                residual,
                None if residual_norm is None else residual_norm.gain,
                None if residual_norm is None else residual_norm.offset,
                out,
                num_rows,
            ),
            {
                "EPSILON": 0.0 if either is None else either.epsilon,
                "D": size,
                "N": width,
                "HAS_BIAS": linear.bias is not None,
                "HAS_NORM": norm is not None,
                "HAS_RESIDUAL": residual is not None,
                "HAS_RESIDUAL_NORM": residual_norm is not None,
                "IS_RMS": either is not None and either.offset is None,
                "ACTIVATION": activation or "none",
                "BLOCK_M": rows,
                "BLOCK_N": columns,
                "BLOCK_D": min(block_of(size, minimum=_MIN_DOT), 128),
                "WIDE": wide_of(x.dtype),
            },
        )
        return out

    def attend_past(
        self,
        projected: Tensor,
        tables: GridTables,
        layer: int,
        *,
        scale: float,
        bias: Tensor | None,
    ) -> Tensor:
        """Write keys and values of a step and attend to every row's past: (R, H·d_v).

        Args:
            projected: (R, H·(2·d_k + d_v)), queries, keys and values.
            tables: The grid's.
            layer: Index of the layer.
            scale: Of the scores.
            bias: (H, T), added to the scores by distance, or None.
        """
        keys, values = (table[layer] for table in tables.growing)
        num_heads, key_width, value_width = keys.shape[1], keys.shape[-1], values.shape[-1]
        num_slots = len(projected) // tables.width
        out = projected.new_empty(len(projected), num_heads * value_width)
        self._launcher.launch(
            attention.tree_attention,
            (num_slots, num_heads),
            (
                projected,
                keys,
                values,
                tables.ancestors.view(torch.uint8),
                tables.positions,
                bias,
                out,
                tables.num_columns,
            ),
            {
                "SCALE": scale,
                "H": num_heads,
                "K": tables.width,
                "DK": key_width,
                "DV": value_width,
                "HAS_BIAS": bias is not None,
                "BLOCK_K": block_of(tables.width, minimum=_MIN_DOT),
                "BLOCK_T": _NODES,
                "BLOCK_DK": block_of(key_width, minimum=_MIN_DOT),
                "BLOCK_DV": block_of(value_width, minimum=_MIN_DOT),
                "WIDE": wide_of(projected.dtype),
            },
        )
        return out

    def attend_source(
        self, queries: Tensor, tables: GridTables, layer: int, *, scale: float
    ) -> Tensor:
        """Attend to every row's source: (R, H·d_k) → (R, H·d_v).

        Args:
            queries: Not scaled.
            tables: The grid's.
            layer: Index of the layer.
            scale: Of the scores.
        """
        keys, values = tables.cross_keys[layer], tables.cross_values[layer]
        num_heads, key_width, value_width = keys.shape[1], keys.shape[-1], values.shape[-1]
        out = queries.new_empty(len(queries), num_heads * value_width)
        self._launcher.launch(
            attention.source_attention,
            (len(queries) // tables.width, num_heads),
            (queries, keys, values, tables.source_lengths, out, keys.shape[2]),
            {
                "SCALE": scale,
                "H": num_heads,
                "K": tables.width,
                "DK": key_width,
                "DV": value_width,
                "BLOCK_K": block_of(tables.width, minimum=_MIN_DOT),
                "BLOCK_M": _NODES,
                "BLOCK_DK": block_of(key_width, minimum=_MIN_DOT),
                "BLOCK_DV": block_of(value_width, minimum=_MIN_DOT),
                "WIDE": wide_of(queries.dtype),
            },
        )
        return out
