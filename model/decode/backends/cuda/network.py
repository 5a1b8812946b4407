"""A `Transformer` over a grid: the encoder for newcomers, one decoder step for all rows.

Owns the arithmetic. Every shape is that of a bucket and no value reaches the host, so that both
can be recorded. The plain network, `model.nn`, is the oracle.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from model.config import ModelConfig
from model.decode.backends.cuda.tables import Bucket, GridTables
from model.decode.incremental import check_supported
from model.nn.layers import ACTIVATIONS, DecoderLayer
from model.nn.masks import lengths_mask
from model.nn.positions import LearnedPositions, NoPositions
from model.nn.transformer import Transformer

_ATTENTION = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""cuDNN's kernel makes a plan for every shape, and there are many; flash takes no mask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """The part of the tables that one step covers, for S slots of K rows and T columns.

    Attributes:
        tables: All of them.
        bucket: The part.
        slots: (S,) int64, 0 … S−1.
        positions: (S,) int64, where this step's tokens go.
        past_bias: (S, 1, K, T·K), 0 at a row's ancestors and −inf elsewhere.
        memory_bias: (S, 1, K, M), 0 at the source's tokens and −inf at padding.
    """

    tables: GridTables
    bucket: Bucket
    slots: Tensor
    positions: Tensor
    past_bias: Tensor
    memory_bias: Tensor


def _bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask, True = may attend, as something to add to scores."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, float("-inf"))


class _Layer:
    """One decoder layer, the projections of its self-attention fused."""

    def __init__(self, layer: DecoderLayer, config: ModelConfig) -> None:
        own = layer.self_attention
        self._layer = layer
        self._is_pre = config.norm_placement == "pre"
        self._activation = ACTIVATIONS[config.activation]
        self._num_heads = config.num_heads
        self._widths = [config.num_heads * own.query_width] * 2
        self._widths.append(config.num_heads * own.value_width)
        projections = (own.q_proj, own.k_proj, own.v_proj)
        self._weight = torch.cat([projection.weight for projection in projections])
        biases: list[Tensor] = [p.bias for p in projections if p.bias is not None]
        self._bias = torch.cat(biases) if biases else None

    def _heads(self, projected: Tensor, num_sentences: int) -> Tensor:
        """(B·Q, H·d) → (B, H, Q, d)."""
        width = projected.shape[-1] // self._num_heads
        return projected.view(num_sentences, -1, self._num_heads, width).transpose(1, 2)

    def project_memory(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the encoder's output: (N, M, D) → (N, H, M, d_k), (N, H, M, d_v)."""
        cross = self._layer.cross_attention
        flat = encoded.flatten(0, 1)
        return (
            self._heads(cross.k_proj(flat), len(encoded)),
            self._heads(cross.v_proj(flat), len(encoded)),
        )

    def step(self, index: int, hidden: Tensor, view: _View) -> tuple[Tensor, Tensor]:
        """Run the layer: (R, D) → (R, D), and what it asked of the memory, (S, H, K, d_k)."""
        layer = self._layer
        inner = self._before(hidden, layer.self_attention_norm)
        hidden = self._after(
            hidden, self._attend_to_past(index, inner, view), layer.self_attention_norm
        )
        inner = self._before(hidden, layer.cross_attention_norm)
        attended, queries = self._attend_to_memory(index, inner, view)
        hidden = self._after(hidden, attended, layer.cross_attention_norm)
        inner = self._before(hidden, layer.feed_forward_norm)
        inner = layer.feed_forward.down_proj(self._activation(layer.feed_forward.up_proj(inner)))
        return self._after(hidden, inner, layer.feed_forward_norm), queries

    def _before(self, hidden: Tensor, norm: torch.nn.Module) -> Tensor:
        return norm(hidden) if self._is_pre else hidden

    def _after(self, hidden: Tensor, change: Tensor, norm: torch.nn.Module) -> Tensor:
        result: Tensor = hidden + change if self._is_pre else norm(hidden + change)
        return result

    def _attend_to_past(self, index: int, hidden: Tensor, view: _View) -> Tensor:
        tables, num_slots, num_columns = view.tables, len(view.slots), view.bucket.num_columns
        projected = F.linear(hidden, self._weight, self._bias)
        queries, keys, values = (
            self._heads(part, num_slots)
            for part in torch.split_with_sizes(projected, self._widths, -1)
        )
        pasts = []
        for table, new in ((tables.keys[index], keys), (tables.values[index], values)):
            table[view.slots, :, view.positions] = new
            pasts.append(table[:num_slots, :, :num_columns].flatten(2, 3))  # (S, H, T·K, d)
        past_keys, past_values = pasts
        attended = F.scaled_dot_product_attention(
            queries, past_keys, past_values, attn_mask=view.past_bias
        )
        output: Tensor = self._layer.self_attention.out_proj(
            attended.transpose(1, 2).reshape(len(hidden), -1)
        )
        return output

    def _attend_to_memory(self, index: int, hidden: Tensor, view: _View) -> tuple[Tensor, Tensor]:
        tables, cross = view.tables, self._layer.cross_attention
        num_slots, length = len(view.slots), view.bucket.memory_length
        queries = self._heads(cross.q_proj(hidden), num_slots)
        attended = F.scaled_dot_product_attention(
            queries,
            tables.memory_keys[index, :num_slots, :, :length],
            tables.memory_values[index, :num_slots, :, :length],
            attn_mask=view.memory_bias,
        )
        output: Tensor = cross.out_proj(attended.transpose(1, 2).reshape(len(hidden), -1))
        return output, queries


class GridNetwork:
    """A `Transformer` whose steps run on the tables of a grid."""

    def __init__(self, transformer: Transformer) -> None:
        """Fuse what can be fused; the weights must not change afterwards.

        Raises:
            UnsupportedVariantError: For positions inside attention.
        """
        check_supported(transformer.config)
        weight = transformer.target_embedding.weight
        self.config = transformer.config
        self.device = weight.device
        self.dtype = weight.dtype
        self.score_dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
        self._transformer = transformer
        self._position_tables: dict[int, Tensor] = {}  # recordings read them where they are
        self._layers = [
            _Layer(layer, transformer.config)
            for layer in transformer.decoder.layers
            if isinstance(layer, DecoderLayer)
        ]

    def encode(self, ids: Tensor, lengths: Tensor, slots: Tensor, tables: GridTables) -> None:
        """Run the encoder and store every layer's keys and values of its output.

        Args:
            ids: (N, M) int64, padded.
            lengths: (N,) int64.
            slots: (N,) int64, where each sentence goes.
            tables: The grid's.
        """
        with sdpa_kernel(_ATTENTION):
            encoded = self._transformer.encode(ids, lengths_mask(lengths, ids.shape[1]))
        memories = (tables.memory_keys, tables.memory_values)
        for index, layer in enumerate(self._layers):
            for table, new in zip(memories, layer.project_memory(encoded), strict=True):
                table[index, :, :, : ids.shape[1]].index_copy_(0, slots, new)

    def step(self, tables: GridTables, bucket: Bucket) -> tuple[Tensor, Tensor | None]:
        """Feed every row of a bucket its next token.

        Returns:
            (R, V) logits in the precision of scores and, if the bucket asks for them, (S, K)
            int64, the source position that each row attended to most.
        """
        view = self._view(tables, bucket)
        table = self._positions(tables.num_columns)
        hidden = self._transformer.target_embedding(tables.tokens[: bucket.num_slots])  # (S, K, D)
        hidden = hidden + table[view.positions.clamp(max=len(table) - 1)].unsqueeze(1)
        hidden = hidden.flatten(0, 1)
        queries = None
        with sdpa_kernel(_ATTENTION):
            for index, layer in enumerate(self._layers):
                hidden, queries = layer.step(index, hidden, view)
        final_norm = self._transformer.decoder.final_norm
        logits = self._project(hidden if final_norm is None else final_norm(hidden))
        if queries is None or not bucket.with_sources:
            return logits, None
        keys = tables.memory_keys[-1, : bucket.num_slots, :, : bucket.memory_length]
        scores = queries @ keys.mT * self.config.query_width**-0.5 + view.memory_bias
        return logits, scores.softmax(dim=-1).mean(dim=1).argmax(dim=-1)

    def _view(self, tables: GridTables, bucket: Bucket) -> _View:
        """Make this step's nodes ancestors of their own rows, and masks what is added."""
        num_slots, width = bucket.num_slots, tables.width
        slots = torch.arange(num_slots, device=self.device)
        positions = tables.positions[:num_slots]
        own = torch.eye(width, device=self.device, dtype=torch.bool)
        tables.ancestors[slots, :, positions] = own.expand(num_slots, -1, -1)
        ancestors = tables.ancestors[:num_slots, :, : bucket.num_columns].flatten(2)
        is_source = lengths_mask(tables.source_lengths[:num_slots], bucket.memory_length)
        return _View(
            tables=tables,
            bucket=bucket,
            slots=slots,
            positions=positions,
            past_bias=_bias(ancestors, self.dtype).unsqueeze(1),
            memory_bias=_bias(is_source, self.dtype)[:, None, None, :].expand(-1, -1, width, -1),
        )

    def _positions(self, num_columns: int) -> Tensor:
        """Encodings of the positions there are, (T, D)."""
        positions = self._transformer.target_positions
        assert not isinstance(positions, NoPositions)
        if isinstance(positions, LearnedPositions):
            num_columns = min(num_columns, positions.max_length)
        if num_columns not in self._position_tables:
            weight = self._transformer.target_embedding.weight
            self._position_tables[num_columns] = positions.table(num_columns, weight)
        return self._position_tables[num_columns]

    def _project(self, hidden: Tensor) -> Tensor:
        """Logits in the precision of scores: sums of 8-bit mantissas would tie where none is."""
        transformer = self._transformer
        projection, bias = transformer.output_projection, transformer.output_bias
        weight = transformer.target_embedding.weight if projection is None else projection.weight
        if hidden.dtype == self.score_dtype:
            return F.linear(hidden, weight, bias)
        if hidden.device.type == "cuda":
            logits = torch.mm(hidden, weight.t(), out_dtype=self.score_dtype)
        else:  # CPUs have no product that widens
            logits = hidden.to(self.score_dtype) @ weight.to(self.score_dtype).t()
        return logits if bias is None else logits.add_(bias)
