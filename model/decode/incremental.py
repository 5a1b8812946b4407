"""The fast path: one decoder step for every running row, over cached keys and values.

Owns the arithmetic of a step, and refuses by name the variants that it does not run (they
work in `model.nn`). It is the same network as `Transformer.decode`, which is its oracle: a
step costs O(t), not O(t²), and memory is projected once per sentence.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from model.config import ABSOLUTE_POSITIONS, ModelConfig
from model.decode.backends.eager.cache import MemoryCache, RowCache
from model.decode.timing import Stopwatch
from model.errors import UnsupportedVariantError
from model.nn.layers import ACTIVATIONS, DecoderLayer
from model.nn.transformer import Transformer


@dataclass(frozen=True, slots=True, kw_only=True)
class StepShape:
    """How the rows of one step lie; the same for all layers.

    Attributes:
        slot_rows: (N, K) int64, the row of each beam of each slot, 0 where there is none.
        row_places: (R,) int64, n·K + k of each row.
        past_mask: (R, 1, 1, W) bool, True = may attend, or None when all pasts fill the window.
        memory_mask: (N, 1, 1, S) bool, True = may attend, or None without padding.
        window: Columns of the past, W, the one being written included.
        memory_length: Longest source, S.
        with_attention: Also return where the last layer looked.
    """

    slot_rows: Tensor
    row_places: Tensor
    past_mask: Tensor | None
    memory_mask: Tensor | None
    window: int
    memory_length: int
    with_attention: bool


def check_supported(config: ModelConfig) -> None:
    """Refuse what the fast path does not run.

    Raises:
        UnsupportedVariantError: For positions inside attention.
    """
    if config.position not in ABSOLUTE_POSITIONS:
        raise UnsupportedVariantError(
            f"position is {config.position!r}; incremental decoding runs only"
            f" {', '.join(sorted(ABSOLUTE_POSITIONS))}: decode with Transformer.decode instead"
        )


def _attend(
    queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Attention of few queries over many keys: (B, H, Q, d) → (B, H, Q, d_v), weights.

    Two products and a softmax: with a handful of queries a row this is faster on a CPU than the
    fused kernel, which is made for many.
    """
    scores = queries @ keys.transpose(-2, -1)
    if bias is not None:
        scores += bias
    weights = scores.softmax(dim=-1)
    return weights @ values, weights


def _bias(mask: Tensor | None, like: Tensor) -> Tensor | None:
    """A mask as something to add: 0 where it may be attended to, −inf where not."""
    if mask is None:
        return None
    return like.new_zeros(mask.shape).masked_fill_(~mask, float("-inf"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """What all layers of one step share: where things lie, the masks as biases, the watch."""

    shape: StepShape
    watch: Stopwatch
    past_bias: Tensor | None
    memory_bias: Tensor | None


class _Layer:
    """One decoder layer with its projections fused for single steps."""

    def __init__(self, layer: DecoderLayer, config: ModelConfig) -> None:
        own, cross = layer.self_attention, layer.cross_attention
        self._layer = layer
        self._is_pre = config.norm_placement == "pre"
        self._activation = ACTIVATIONS[config.activation]
        self._num_heads = config.num_heads
        self._widths = [config.num_heads * config.query_width] * 2
        self._widths.append(config.num_heads * config.value_width)
        self._scale = config.query_width**-0.5
        projections = (own.q_proj, own.k_proj, own.v_proj)
        weights: list[Tensor] = [p.weight for p in projections]
        self._qkv_weight = torch.cat(weights)
        biases: list[Tensor] = [p.bias for p in projections if p.bias is not None]
        self._qkv_bias = torch.cat(biases) if biases else None
        self._cross = cross

    def _heads(self, projected: Tensor) -> Tensor:
        """(B, Q, H·d) → (B, H, Q, d)."""
        batch, length, width = projected.shape
        return projected.view(batch, length, self._num_heads, width // self._num_heads).transpose(
            1, 2
        )

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the encoder's output: (B, S, D) → (B, H, S, d_k), (B, H, S, d_v)."""
        return self._heads(self._cross.k_proj(memory)), self._heads(self._cross.v_proj(memory))

    def step(
        self, index: int, hidden: Tensor, cache: RowCache, memory: MemoryCache, step: _Step
    ) -> tuple[Tensor, Tensor]:
        """(R, D) → (R, D) and the cross-attention weights (N, H, K, S)."""
        layer, watch = self._layer, step.watch
        attended = self._attend_to_past(
            index, self._before(hidden, layer.self_attention_norm), cache, step
        )
        hidden = self._after(hidden, attended, layer.self_attention_norm)
        watch.lap("self_attention")
        attended, weights = self._attend_to_memory(
            index, self._before(hidden, layer.cross_attention_norm), memory, step
        )
        hidden = self._after(hidden, attended, layer.cross_attention_norm)
        watch.lap("cross_attention")
        inner = self._before(hidden, layer.feed_forward_norm)
        inner = layer.feed_forward.down_proj(self._activation(layer.feed_forward.up_proj(inner)))
        hidden = self._after(hidden, inner, layer.feed_forward_norm)
        watch.lap("feed_forward")
        return hidden, weights

    def _before(self, hidden: Tensor, norm: Callable[[Tensor], Tensor]) -> Tensor:
        return norm(hidden) if self._is_pre else hidden

    def _after(self, hidden: Tensor, change: Tensor, norm: Callable[[Tensor], Tensor]) -> Tensor:
        return hidden + change if self._is_pre else norm(hidden + change)

    def _attend_to_past(self, index: int, hidden: Tensor, cache: RowCache, step: _Step) -> Tensor:
        num_rows = hidden.shape[0]
        projected = functional.linear(hidden, self._qkv_weight, self._qkv_bias)
        queries, keys, values = (
            part.view(num_rows, self._num_heads, -1)
            for part in torch.split_with_sizes(projected, self._widths, -1)
        )
        cache.keys[index, :num_rows, :, cache.column] = keys
        cache.values[index, :num_rows, :, cache.column] = values
        window = cache.window(step.shape.window)
        attended, _ = _attend(
            queries.unsqueeze(2) * self._scale,
            cache.keys[index, :num_rows, :, window],
            cache.values[index, :num_rows, :, window],
            step.past_bias,
        )  # (R, H, 1, d_v)
        output: Tensor = self._layer.self_attention.out_proj(attended.reshape(num_rows, -1))
        return output

    def _attend_to_memory(
        self, index: int, hidden: Tensor, memory: MemoryCache, step: _Step
    ) -> tuple[Tensor, Tensor]:
        shape = step.shape
        num_slots, width = shape.slot_rows.shape
        queries = self._cross.q_proj(hidden) * self._scale  # (R, H·d_k)
        attended, weights = _attend(
            self._heads(queries[shape.slot_rows]),  # (N, H, K, d_k)
            memory.keys[index, :num_slots, :, : shape.memory_length],
            memory.values[index, :num_slots, :, : shape.memory_length],
            step.memory_bias,
        )
        attended = attended.transpose(1, 2).reshape(num_slots * width, -1)
        return self._cross.out_proj(attended[shape.row_places]), weights


class IncrementalDecoder:
    """A `Transformer` run one target token at a time."""

    def __init__(self, transformer: Transformer) -> None:
        """Fuse the projections of `transformer`, whose weights must not change afterwards.

        Raises:
            UnsupportedVariantError: If the fast path does not run this network.
        """
        check_supported(transformer.config)
        self._transformer = transformer
        self._layers = [
            _Layer(layer, transformer.config)
            for layer in transformer.decoder.layers
            if isinstance(layer, DecoderLayer)
        ]

    def encode(
        self, source_ids: Tensor, source_mask: Tensor, memory: MemoryCache, slots: Tensor
    ) -> None:
        """Run the encoder and store every layer's keys and values of its output.

        Args:
            source_ids: (N, S) int64.
            source_mask: (N, S) bool, True = may attend.
            memory: Where they go.
            slots: (N,) int64, the slot of each sentence.
        """
        encoded = self._transformer.encode(source_ids, source_mask)
        for index, layer in enumerate(self._layers):
            memory.write(index, slots, *layer.project_memory(encoded))

    def step(
        self,
        tokens: Tensor,
        positions: Tensor,
        cache: RowCache,
        memory: MemoryCache,
        shape: StepShape,
        *,
        watch: Stopwatch,
    ) -> tuple[Tensor, Tensor | None]:
        """Feed every row its last token.

        Args:
            tokens: (R,) int64.
            positions: (R,) int64, the target position of each of them.
            cache: Pasts of the rows; this step's column is written.
            memory: Encoder side of the slots.
            shape: How rows and slots lie.
            watch: Gets the time of every part.

        Returns:
            (R, V) logits of the next token, and (R, S) attention to the source, averaged over
            the heads of the last layer, if asked for.
        """
        hidden = self._transformer.embed_target(tokens.unsqueeze(1), positions.unsqueeze(1))
        hidden = hidden.squeeze(1)
        weights = None
        step = _Step(
            shape=shape,
            watch=watch,
            past_bias=_bias(shape.past_mask, hidden),
            memory_bias=_bias(shape.memory_mask, hidden),
        )
        watch.lap("embedding")
        for index, layer in enumerate(self._layers):
            hidden, weights = layer.step(index, hidden, cache, memory, step)
        final_norm = self._transformer.decoder.final_norm
        logits = self._transformer.project(hidden if final_norm is None else final_norm(hidden))
        if not shape.with_attention or weights is None:
            return logits, None
        looked = weights.mean(dim=1)  # (N, K, S)
        return logits, looked.flatten(0, 1)[shape.row_places]
