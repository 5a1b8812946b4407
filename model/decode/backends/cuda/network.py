"""A `Transformer` over a grid: the encoder for newcomers, one decoder step for all rows.

Owns how rows attend to the tables, and what comes before and after the layers, which are
`model.decode.fused_layer`. Every shape is that of a bucket and no value reaches the host, so that a
step can be recorded. The plain network, `model.nn`, is the oracle.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from model.config import ABSOLUTE_POSITIONS, SpecialTokens
from model.decode.backends.cuda.buckets import Bucket
from model.decode.backends.cuda.kernels.opening import Kernels
from model.decode.backends.cuda.output import OutputProduct
from model.decode.backends.cuda.tables import GridTables
from model.decode.fused_layer import LAYER_FIELDS, fuse_layers
from model.honoured import EVERY_VALUE, HonouredFields, check_honoured
from model.nn.masks import lengths_mask
from model.nn.positions import LearnedPositions, NoPositions, RelativeBias
from model.nn.transformer import Transformer

if TYPE_CHECKING:
    from model.decode.backends.cuda.kernels.chooser import KernelChooser
    from model.decode.backends.cuda.kernels.decoder import KernelDecoder

_ATTENTION = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""cuDNN's kernel makes a plan for every shape, and there are many; flash takes no mask."""


GRID_FIELDS = HonouredFields(
    by="decoding on a grid",
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
"""What the grid honours; all other positions inside attention the plain backend does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """The part of the tables that one step covers, for S slots of K rows and T columns.

    Attributes:
        tables: All of them.
        bucket: The part.
        slots: (S,) int64, 0 … S−1.
        positions: (S,) int64, where this step's tokens go.
        past_bias: (S, 1, K, T·K), 0 at a row's ancestors and −inf elsewhere; with relative
            positions (S, H, K, T·K), their scores at the ancestors.
        source_bias: (S, 1, K, M), 0 at the source's tokens and −inf at padding.
        scale: What scores are multiplied by.
    """

    tables: GridTables
    bucket: Bucket
    slots: Tensor
    positions: Tensor
    past_bias: Tensor
    source_bias: Tensor
    scale: float


class _NodePast:
    """The nodes of a grid's tables, of which every row attends to its ancestors."""

    def __init__(self, view: _View) -> None:
        self._view = view

    def attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """See `Past.attend`."""
        view = self._view
        tables, num_slots, num_columns = view.tables, len(view.slots), view.bucket.num_columns
        pasts = []
        for tables_of_layers, new in zip(tables.growing, (keys, values), strict=True):
            table = tables_of_layers[layer]
            table[view.slots, :, view.positions] = _by_slot(new, num_slots)
            pasts.append(table[:num_slots, :, :num_columns].flatten(2, 3))  # (S, H, T·K, d)
        past_keys, past_values = pasts
        attended = F.scaled_dot_product_attention(
            _by_slot(queries, num_slots),
            past_keys,
            past_values,
            attn_mask=view.past_bias,
            scale=view.scale,
        )
        return attended.transpose(1, 2).reshape(len(queries), -1)

    def last(self, layer: int) -> tuple[Tensor, ...]:
        """See `Past.last`; a row continues the one node of the step before that is its ancestor."""
        view = self._view
        before = (view.positions - 1).clamp(min=0)
        parents = view.tables.ancestors[view.slots, :, before].int().argmax(dim=-1)  # (S, K)
        is_first = (view.positions == 0).view(-1, 1, 1, 1)
        rows = view.slots.unsqueeze(1)
        return tuple(
            table[layer, rows, parents].masked_fill(is_first, 0.0).flatten(0, 1)
            for table in view.tables.replaced
        )

    def replace(self, layer: int, states: tuple[Tensor, ...]) -> None:
        """See `Past.replace`."""
        num_slots = len(self._view.slots)
        for table, state in zip(self._view.tables.replaced, states, strict=True):
            table[layer, :num_slots] = state.view(num_slots, -1, *state.shape[1:])


class _SlotOutputs:
    """The encoder outputs of a grid's tables, each read by all rows of its slot.

    Attributes:
        queries: (S, H, K, d_k) of the layer that attended last, None before the first.
    """

    def __init__(self, view: _View) -> None:
        self._view = view
        self.queries: Tensor | None = None

    def attend(self, layer: int, queries: Tensor) -> Tensor:
        """See `EncoderOutputs.attend`."""
        view = self._view
        tables, num_slots, length = view.tables, len(view.slots), view.bucket.source_length
        self.queries = _by_slot(queries, num_slots)
        attended = F.scaled_dot_product_attention(
            self.queries,
            tables.cross_keys[layer, :num_slots, :, :length],
            tables.cross_values[layer, :num_slots, :, :length],
            attn_mask=view.source_bias,
            scale=view.scale,
        )
        return attended.transpose(1, 2).reshape(len(queries), -1)


def _by_slot(heads: Tensor, num_slots: int) -> Tensor:
    """(S·K, H, d) → (S, H, K, d)."""
    return heads.view(num_slots, -1, *heads.shape[1:]).transpose(1, 2)


class GridNetwork:
    """A `Transformer` whose steps run on the tables of a grid.

    Attributes:
        states: What each layer keeps of a row.
        kernels: Triton's programs for parts of a step; None where torch does all of it.
    """

    def __init__(self, transformer: Transformer, kernels: Kernels | None = None) -> None:
        """Fuse what can be fused; the weights must not change afterwards.

        Args:
            transformer: The network.
            kernels: Of the same network.

        Raises:
            UnsupportedVariantError: If single steps do not run this network.
        """
        check_honoured(transformer.config, GRID_FIELDS)
        fused = fuse_layers(transformer)
        self._layers = fused.layers
        self.states = fused.states
        weight = transformer.target_embedding.weight
        self.config = transformer.config
        self.device = weight.device
        self.dtype = weight.dtype
        self.score_dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
        self.kernels = kernels
        self._output = OutputProduct(transformer, score_dtype=self.score_dtype)
        self._choices = torch.tensor((0.0, float("-inf")), device=self.device, dtype=self.dtype)
        self._transformer = transformer
        # Tables by the columns there are; recordings read them where they are.
        self._position_tables: dict[int, Tensor] = {}
        self._distance_tables: dict[int, Tensor] = {}

    @property
    def has_kernel_layers(self) -> bool:
        """Whether Triton's programs run the layers."""
        return self.kernels is not None and self.kernels.decoder is not None

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
        cross_tables = (tables.cross_keys, tables.cross_values)
        for index, layer in enumerate(self._layers):
            for table, new in zip(cross_tables, layer.project_encoder_output(encoded), strict=True):
                table[index, :, :, : ids.shape[1]].index_copy_(0, slots, new)

    def step(
        self, tables: GridTables, bucket: Bucket, *, with_bias: bool = True
    ) -> tuple[Tensor, Tensor | None]:
        """Feed every row of a bucket its next token.

        Args:
            tables: The grid's.
            bucket: What the step covers.
            with_bias: Whether the output layer's bias is added.

        Returns:
            (R, V') logits, see `OutputProduct`, and, if the bucket asks for them, (S, K)
            int64, the source position that each row attended to most.
        """
        kernels = self.kernels if bucket.by_kernels else None
        decoder = None if kernels is None else kernels.decoder
        if decoder is None:
            hidden, queries = self._layers_in_torch(tables, bucket)
        else:
            hidden, queries = self._layers_by_kernels(decoder, tables, bucket)
        if self.config.scale_output:
            hidden = hidden * self.config.d_model**-0.5
        logits = self._output(hidden, with_bias=with_bias)
        if queries is None or not bucket.with_sources:
            return logits, None
        keys = tables.cross_keys[-1, : bucket.num_slots, :, : bucket.source_length]
        scores = queries @ keys.mT * self.config.attention_scale + self._source_bias(tables, bucket)
        return logits, scores.softmax(dim=-1).mean(dim=1).argmax(dim=-1)

    def _layers_in_torch(self, tables: GridTables, bucket: Bucket) -> tuple[Tensor, Tensor | None]:
        """(R, D) for the output layer, (S, H, K, d_k) queries of the last attention to sources."""
        view = self._view(tables, bucket)
        hidden = self._embed(view).flatten(0, 1)
        past, outputs = _NodePast(view), _SlotOutputs(view)
        with sdpa_kernel(_ATTENTION):
            for layer in self._layers:
                hidden = layer.step(hidden, past, outputs)
        final_norm = self._transformer.decoder.final_norm
        return hidden if final_norm is None else final_norm(hidden), outputs.queries

    def _layers_by_kernels(
        self, decoder: "KernelDecoder", tables: GridTables, bucket: Bucket
    ) -> tuple[Tensor, Tensor]:
        """See `_layers_in_torch`."""
        transformer, num_slots = self._transformer, bucket.num_slots
        has_positions = not isinstance(transformer.target_positions, NoPositions)
        has_bias = transformer.decoder.position_bias is not None
        hidden, queries = decoder.step(
            tables,
            num_slots,
            positions=self._positions(tables.num_columns) if has_positions else None,
            distance_bias=self._distances(tables.num_columns) if has_bias else None,
        )
        heads = queries.view(len(queries), self.config.num_heads, -1)
        return hidden, _by_slot(heads, num_slots)

    def _source_bias(self, tables: GridTables, bucket: Bucket) -> Tensor:
        """(S, 1, K, M), 0 at the source's tokens and −inf at padding."""
        is_source = lengths_mask(tables.source_lengths[: bucket.num_slots], bucket.source_length)
        bias = self._bias(is_source)[:, None, None, :]
        return bias.expand(-1, -1, tables.width, -1)

    def _view(self, tables: GridTables, bucket: Bucket) -> _View:
        """Make this step's nodes ancestors of their own rows, and masks what is added."""
        num_slots, width = bucket.num_slots, tables.width
        slots = torch.arange(num_slots, device=self.device)
        positions = tables.positions[:num_slots]
        own = torch.eye(width, device=self.device, dtype=torch.bool)
        tables.ancestors[slots, :, positions] = own.expand(num_slots, -1, -1)
        ancestors = tables.ancestors[:num_slots, :, : bucket.num_columns].flatten(2)
        past_bias = self._bias(ancestors).unsqueeze(1)
        if self._transformer.decoder.position_bias is not None:
            by_position = self._distance_bias(positions, bucket, tables)
            past_bias = past_bias + by_position.repeat_interleave(width, dim=-1)
        return _View(
            tables=tables,
            bucket=bucket,
            slots=slots,
            positions=positions,
            past_bias=past_bias,
            source_bias=self._source_bias(tables, bucket),
            scale=self.config.attention_scale,
        )

    def _bias(self, mask: Tensor) -> Tensor:
        """A mask, True = may attend, as something to add to scores."""
        return torch.where(mask, self._choices[0], self._choices[1])

    def _distance_bias(self, positions: Tensor, bucket: Bucket, tables: GridTables) -> Tensor:
        """What relative positions add to the scores of the past: (S, H, 1, T)."""
        columns = torch.arange(bucket.num_columns, device=self.device)
        distances = (positions.unsqueeze(1) - columns).clamp(min=0)  # (S, T)
        return self._distances(tables.num_columns)[:, distances].transpose(0, 1).unsqueeze(2)

    def _distances(self, num_columns: int) -> Tensor:
        """What relative positions add to scores by distance, (H, T)."""
        if num_columns not in self._distance_tables:
            position_bias = self._transformer.decoder.position_bias
            assert isinstance(position_bias, RelativeBias)  # others are not honoured
            by_distance = position_bias.by_distance(num_columns).detach()
            self._distance_tables[num_columns] = by_distance.contiguous()
        return self._distance_tables[num_columns]

    def _embed(self, view: _View) -> Tensor:
        """What enters the first layer, (S, K, D)."""
        transformer = self._transformer
        hidden: Tensor = transformer.target_embedding(view.tables.tokens[: len(view.slots)])
        if not isinstance(transformer.target_positions, NoPositions):
            table = self._positions(view.tables.num_columns)
            hidden = hidden + table[view.positions.clamp(max=len(table) - 1)].unsqueeze(1)
        norm = transformer.decoder.embedding_norm
        return hidden if norm is None else norm(hidden)

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

    def chooser(self, tokens: SpecialTokens) -> "KernelChooser | None":
        """What searches by Triton's programs; None without them."""
        if self.kernels is None:
            return None
        bias = torch.zeros(self.config.output_size, device=self.device, dtype=self.score_dtype)
        if self._transformer.output_bias is not None:
            bias += self._transformer.output_bias.detach()
        return self.kernels.chooser(
            bias,
            suppressed_ids=tokens.suppressed_ids,
            eos_id=tokens.eos_id,
        )
