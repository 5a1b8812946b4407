"""One decoder step for every running row, over cached keys and values.

Owns how rows attend to their cached pasts and to the encoder output that the beams of a sentence
share, and what comes before and after the layers; the layers are `model.decode.fused_layer`, the
caches `model.decode.backends.eager.cache`. It is the same network as `Transformer.decode`, which is
its oracle: a step costs O(t), not O(t²), and the encoder output is projected once per sentence.
"""

from dataclasses import dataclass

from torch import Tensor

from model.config import ABSOLUTE_POSITIONS
from model.decode.backends.eager.cache import CrossCache, RowCache
from model.decode.fused_layer import LAYER_FIELDS, fuse_layers
from model.decode.timing import Stopwatch
from model.honoured import EVERY_VALUE, HonouredFields, check_honoured
from model.nn.positions import RelativeBias
from model.nn.transformer import Transformer

EAGER_FIELDS = HonouredFields(
    by="incremental decoding",
    fields={
        **LAYER_FIELDS,
        "embedding_norm": EVERY_VALUE,
        "scale_attention": EVERY_VALUE,
        "scale_output": EVERY_VALUE,
        "vocab_size": EVERY_VALUE,
        "target_vocab_size": EVERY_VALUE,
        "num_encoder_layers": EVERY_VALUE,
        "num_decoder_layers": EVERY_VALUE,
        "position": (*sorted(ABSOLUTE_POSITIONS), "relative"),
        "position_offset": EVERY_VALUE,
        "max_positions": EVERY_VALUE,
        "scale_embedding": EVERY_VALUE,
        "share_embeddings": EVERY_VALUE,
        "tie_output": EVERY_VALUE,
        "output_bias": EVERY_VALUE,
        "pad_id": EVERY_VALUE,
    },
)
"""What the eager backend honours; all other positions inside attention the plain one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepShape:
    """Places of the rows of one step; the same for all layers.

    Attributes:
        slot_rows: (N, K) int64, the row of each beam of each slot, 0 where there is none.
        row_places: (R,) int64, n·K + k of each row.
        past_mask: (R, 1, 1, W) bool, True = may attend, or None when all pasts fill the window.
        source_mask: (N, 1, 1, S) bool, True = may attend, or None without padding.
        window: Columns of the past, W, the one being written included.
        source_length: Longest source, S.
        with_attention: Also return the last layer's attention to the source.
    """

    slot_rows: Tensor
    row_places: Tensor
    past_mask: Tensor | None
    source_mask: Tensor | None
    window: int
    source_length: int
    with_attention: bool


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


def _column_bias(transformer: Transformer, max_length: int) -> Tensor | None:
    """What relative positions add to scores, (1, H, 1, T), or None where there are none.

    All rows write the same column, the last one, so a column's distance is the same for every row.
    """
    position_bias = transformer.decoder.position_bias
    if position_bias is None:
        return None
    assert isinstance(position_bias, RelativeBias)  # others are not honoured
    return position_bias.by_distance(max_length).flip(-1)[None, :, None].detach()


class _RowPast:
    """The rows of a `RowCache`, and the last columns of what grows in it."""

    def __init__(
        self, cache: RowCache, window: int, positions: Tensor, *, bias: Tensor | None, scale: float
    ) -> None:
        self._cache = cache
        self._positions = positions
        self._window = cache.window(window)
        self._bias = bias
        self._scale = scale

    def attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """See `Past.attend`."""
        cache, num_rows = self._cache, len(queries)
        key_table, value_table = cache.growing
        key_table[layer, :num_rows, :, cache.column] = keys
        value_table[layer, :num_rows, :, cache.column] = values
        attended, _ = _attend(
            queries.unsqueeze(2) * self._scale,
            key_table[layer, :num_rows, :, self._window],
            value_table[layer, :num_rows, :, self._window],
            self._bias,
        )  # (R, H, 1, d_v)
        return attended.reshape(num_rows, -1)

    def last(self, layer: int) -> tuple[Tensor, ...]:
        """See `Past.last`; a row that was given away has its former owner's states until then."""
        is_first = (self._positions == 0).view(-1, 1, 1)
        tables = self._cache.replaced
        return tuple(
            table[layer, : len(self._positions)].masked_fill(is_first, 0.0) for table in tables
        )

    def replace(self, layer: int, states: tuple[Tensor, ...]) -> None:
        """See `Past.replace`."""
        for table, state in zip(self._cache.replaced, states, strict=True):
            table[layer, : len(state)] = state


class _SlotOutputs:
    """The first slots of a `CrossCache`, which the rows of a sentence read together.

    Attributes:
        weights: (N, H, K, S) attention of the layer that attended last, None before the first.
    """

    def __init__(
        self, cache: CrossCache, shape: StepShape, *, bias: Tensor | None, scale: float
    ) -> None:
        self._cache = cache
        self._shape = shape
        self._bias = bias
        self._scale = scale
        self.weights: Tensor | None = None

    def attend(self, layer: int, queries: Tensor) -> Tensor:
        """See `EncoderOutputs.attend`."""
        shape = self._shape
        num_slots, width = shape.slot_rows.shape
        queries = queries * self._scale
        attended, self.weights = _attend(
            queries[shape.slot_rows].transpose(1, 2),  # (N, H, K, d_k)
            self._cache.keys[layer, :num_slots, :, : shape.source_length],
            self._cache.values[layer, :num_slots, :, : shape.source_length],
            self._bias,
        )
        return attended.transpose(1, 2).reshape(num_slots * width, -1)[shape.row_places]


class IncrementalDecoder:
    """A `Transformer` run one target token at a time.

    Attributes:
        states: What each layer keeps of a row.
    """

    def __init__(self, transformer: Transformer, *, max_length: int) -> None:
        """Fuse the projections of `transformer`, whose weights must not change afterwards.

        Args:
            transformer: In evaluation mode.
            max_length: Columns of the widest window.

        Raises:
            UnsupportedVariantError: If single steps do not run this network.
        """
        check_honoured(transformer.config, EAGER_FIELDS)
        fused = fuse_layers(transformer)
        self._layers = fused.layers
        self._transformer = transformer
        self._scale = transformer.config.attention_scale
        self._column_bias = _column_bias(transformer, max_length)
        self.states = fused.states

    def encode(
        self, source_ids: Tensor, source_mask: Tensor, cross_cache: CrossCache, slots: Tensor
    ) -> None:
        """Run the encoder and store every layer's keys and values of its output.

        Args:
            source_ids: (N, S) int64.
            source_mask: (N, S) bool, True = may attend.
            cross_cache: Where they go.
            slots: (N,) int64, the slot of each sentence.
        """
        encoded = self._transformer.encode(source_ids, source_mask)
        for index, layer in enumerate(self._layers):
            cross_cache.write(index, slots, *layer.project_encoder_output(encoded))

    def step(
        self,
        tokens: Tensor,
        positions: Tensor,
        cache: RowCache,
        cross_cache: CrossCache,
        shape: StepShape,
        *,
        watch: Stopwatch,
    ) -> tuple[Tensor, Tensor | None]:
        """Feed every row its last token.

        Args:
            tokens: (R,) int64.
            positions: (R,) int64, the target position of each of them.
            cache: Pasts of the rows; this step's column is written.
            cross_cache: Encoder side of the slots.
            shape: How rows and slots lie.
            watch: Gets the time of every part.

        Returns:
            (R, V) logits of the next token, and (R, S) attention to the source, averaged over
            the heads of the last layer, if asked for.
        """
        hidden = self._embed(tokens, positions)
        row_past = _RowPast(
            cache,
            shape.window,
            positions,
            bias=self._past_bias(shape, hidden),
            scale=self._scale,
        )
        slot_outputs = _SlotOutputs(
            cross_cache, shape, bias=_bias(shape.source_mask, hidden), scale=self._scale
        )
        watch.lap("embedding")
        for layer in self._layers:
            hidden = layer.step_cell(hidden, row_past)
            watch.lap("self_attention")
            hidden = layer.cross_attend(hidden, slot_outputs)
            watch.lap("cross_attention")
            hidden = layer.feed_forward(hidden)
            watch.lap("feed_forward")
        final_norm = self._transformer.decoder.final_norm
        logits = self._transformer.project(hidden if final_norm is None else final_norm(hidden))
        weights = slot_outputs.weights
        if not shape.with_attention or weights is None:
            return logits, None
        averages = weights.mean(dim=1)  # (N, K, S)
        return logits, averages.flatten(0, 1)[shape.row_places]

    def _embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """What enters the first layer: (R,) and (R,) → (R, D)."""
        transformer = self._transformer
        hidden = transformer.embed_target(tokens.unsqueeze(1), positions.unsqueeze(1)).squeeze(1)
        norm = transformer.decoder.embedding_norm
        return hidden if norm is None else norm(hidden)

    def _past_bias(self, shape: StepShape, like: Tensor) -> Tensor | None:
        """What is added to the scores of the past, broadcast to (R, H, 1, W)."""
        bias = _bias(shape.past_mask, like)
        if self._column_bias is None:
            return bias
        by_column = self._column_bias[..., -shape.window :]
        return by_column if bias is None else bias + by_column
