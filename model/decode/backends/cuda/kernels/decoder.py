"""A decoder's step made of the Triton programs: what runs in place of the layers in torch.

Owns which networks it runs, their weights as the programs read them, and the order of launches. The
torch form, `cuda.network` with `model.decode.fused_layer`, is its oracle. Two ways through a
residual connection: with few rows the norm is part of the product that reads it, and the sum part
of the product before it; with many rows cuBLAS multiplies and a program adds and normalises.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from model.config import Activation
from model.decode.backends.cuda.kernels.ops import KernelOps, Linear, NormWeights
from model.decode.backends.cuda.tables import GridTables
from model.nn.layers import ACTIVATIONS, DecoderLayer, known_decoder_layers
from model.nn.self_attention import SelfAttention
from model.nn.transformer import Transformer

MAX_FEW_ROWS = 64
"""Rows up to which a product costs its launch and the reading of its weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stream:
    """The residual stream between two sub-layers, (R, D).

    Attributes:
        values: What the next sub-layer is added to, before `norm` if this is post-norm.
        norm: What `values` has still to be normalised by; None: by nothing.
        normed: What the next sub-layer reads, if it is there already.
    """

    values: Tensor
    norm: NormWeights | None
    normed: Tensor | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _LayerWeights:
    """Weights of a layer for the programs; `norms` stand at cell, cross-attention, feed-forward."""

    norms: tuple[NormWeights, NormWeights, NormWeights]
    projections: Linear
    cell_out: Linear
    queries: Linear
    cross_out: Linear
    gate: Linear | None
    up: Linear
    down: Linear


def unsupported_reason(transformer: Transformer) -> str | None:
    """Why the programs do not run a network; None if they do."""
    config = transformer.config
    if config.decoder_cell != "self-attention":
        return f"no kernels for the decoder cell {config.decoder_cell!r}"
    if config.num_decoder_layers == 0:
        return "no kernels for a decoder without layers"
    return None


def _linear(*layers: torch.nn.Linear) -> Linear:
    """One product of several that read the same."""
    if len(layers) == 1:
        return Linear(weight=layers[0].weight, bias=layers[0].bias)
    biases: list[Tensor] = [layer.bias for layer in layers if layer.bias is not None]
    return Linear(
        weight=torch.cat([layer.weight for layer in layers]),
        bias=torch.cat(biases) if biases else None,
    )


def _weights(layer: DecoderLayer) -> _LayerWeights:
    cell, cross, inner = layer.cell, layer.cross_attention, layer.feed_forward
    assert isinstance(cell, SelfAttention)  # `unsupported_reason`
    return _LayerWeights(
        norms=(
            NormWeights.of(layer.cell_norm),
            NormWeights.of(layer.cross_attention_norm),
            NormWeights.of(layer.feed_forward_norm),
        ),
        projections=_linear(cell.q_proj, cell.k_proj, cell.v_proj),
        cell_out=_linear(cell.out_proj),
        queries=_linear(cross.q_proj),
        cross_out=_linear(cross.out_proj),
        gate=None if inner.gate_proj is None else _linear(inner.gate_proj),
        up=_linear(inner.up_proj),
        down=_linear(inner.down_proj),
    )


class KernelDecoder:
    """The decoder of a network, stepped on the tables of a grid."""

    def __init__(self, transformer: Transformer, ops: KernelOps) -> None:
        """Take the weights, which must not change afterwards; see `unsupported_reason`."""
        config, decoder = transformer.config, transformer.decoder
        self._ops = ops
        self._table = transformer.target_embedding.weight
        self._table_scale = transformer.target_embedding.scale
        norm = decoder.embedding_norm
        self._embedding_norm = None if norm is None else NormWeights.of(norm)
        final_norm = decoder.final_norm
        self._final_norm = None if final_norm is None else NormWeights.of(final_norm)
        layers = known_decoder_layers(decoder.layers, by="decoding by kernels", cell=SelfAttention)
        self._layers = [_weights(layer) for layer in layers]
        self._is_pre_norm = config.norm_placement == "pre"
        self._activation: Activation = config.activation
        self._scale = config.attention_scale

    def step(
        self,
        tables: GridTables,
        num_slots: int,
        *,
        positions: Tensor | None,
        distance_bias: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Feed every row its next token.

        Args:
            tables: The grid's; the step's nodes are written.
            num_slots: Slots of the step.
            positions: (P, D) encodings of positions, or None.
            distance_bias: (H, T) of relative positions, or None.

        Returns:
            (R, D), ready for the output layer, and (R, H·d_k), the queries of the last layer's
            attention to the source.
        """
        hidden = self._ops.embed(
            tables,
            num_slots,
            table=self._table,
            scale=self._table_scale,
            positions=positions,
            norm=self._embedding_norm,
        )
        following = self._norms_behind()
        stream = self._first(hidden)
        queries = hidden
        for index, layer in enumerate(self._layers):
            projected = self._enter(stream, layer.projections)
            attended = self._ops.attend_past(
                projected, tables, index, scale=self._scale, bias=distance_bias
            )
            stream = self._leave(attended, layer.cell_out, stream, next(following))
            queries = self._enter(stream, layer.queries)
            attended = self._ops.attend_source(queries, tables, index, scale=self._scale)
            stream = self._leave(attended, layer.cross_out, stream, next(following))
            inner = self._inner(stream, layer)
            stream = self._leave(inner, layer.down, stream, next(following))
        return self._read(stream), queries

    def _norms_behind(self) -> Iterator[NormWeights]:
        """The norm that follows each sub-layer: its own, or with pre-norm the next one's."""
        norms = [norm for layer in self._layers for norm in layer.norms]
        if self._is_pre_norm:
            assert self._final_norm is not None
            norms = [*norms[1:], self._final_norm]
        return iter(norms)

    def _first(self, hidden: Tensor) -> _Stream:
        """What the first sub-layer reads."""
        if not self._is_pre_norm:
            return _Stream(values=hidden, norm=None, normed=hidden)
        norm = self._layers[0].norms[0]
        if len(hidden) <= MAX_FEW_ROWS:
            return _Stream(values=hidden, norm=norm, normed=None)
        normed = self._ops.add_norm(hidden, None, norm, keeps_total=False)[1]
        return _Stream(values=hidden, norm=None, normed=normed)

    def _enter(
        self, stream: _Stream, linear: Linear, activation: Activation | None = None
    ) -> Tensor:
        """The product that begins a sub-layer: (R, D) → (R, N)."""
        if len(stream.values) <= MAX_FEW_ROWS:
            source = stream.values if stream.normed is None else stream.normed
            norm = stream.norm if stream.normed is None else None
            return self._ops.product(source, linear, norm=norm, activation=activation)
        hidden = self._read(stream)
        if activation == "relu" and linear.bias is not None:  # one kernel of cuBLAS
            weight = linear.weight.t()
            return torch._addmm_activation(linear.bias, hidden, weight)  # noqa: SLF001  # its only name
        projected = F.linear(hidden, linear.weight, linear.bias)
        return projected if activation is None else ACTIVATIONS[activation](projected)

    def _inner(self, stream: _Stream, layer: _LayerWeights) -> Tensor:
        """The inner layer of the feed-forward part: (R, D) → (R, F)."""
        if layer.gate is None:
            return self._enter(stream, layer.up, self._activation)
        gate = self._enter(stream, layer.gate, self._activation)
        return gate * self._enter(stream, layer.up)

    def _leave(self, inner: Tensor, linear: Linear, stream: _Stream, norm: NormWeights) -> _Stream:
        """The product that ends a sub-layer, and the residual connection around it."""
        if len(inner) <= MAX_FEW_ROWS:
            total = self._ops.product(
                inner,
                linear,
                residual=stream.values,
                residual_norm=None if self._is_pre_norm else stream.norm,
            )
            return _Stream(values=total, norm=norm, normed=None)
        change = F.linear(inner, linear.weight, linear.bias)
        total, normed = self._ops.add_norm(
            stream.values, change, norm, keeps_total=self._is_pre_norm
        )
        values = total if self._is_pre_norm else normed
        return _Stream(values=values, norm=None, normed=normed)

    def _read(self, stream: _Stream) -> Tensor:
        """What the next one reads, (R, D)."""
        if stream.normed is not None:
            return stream.normed
        assert stream.norm is not None
        return self._ops.add_norm(stream.values, None, stream.norm, keeps_total=False)[1]
