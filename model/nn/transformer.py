"""The encoder-decoder Transformer (Vaswani et al. 2017, figure 1).

Owns the two stacks, each usable alone, the whole network with its embeddings and output
projection, and the attention maps. It runs whole sequences; one step at a time is
`model.decode.backends.eager.incremental`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from model.config import DecoderCell, ModelConfig
from model.nn.cells import Cell
from model.nn.dropout import Dropout
from model.nn.embedding import TokenEmbedding
from model.nn.initialisation import initialise, scale_by_depth
from model.nn.layers import DecoderLayer, EncoderLayer
from model.nn.masks import key_mask, padding_mask
from model.nn.norms import build_norm
from model.nn.positions import RotaryPositions, build_absolute_positions, build_position_bias
from model.nn.self_attention import SelfAttention
from model.nn.ssru import SSRU


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionMaps:
    """Attention weights of every layer and head for a batch of sentence pairs.

    Attributes:
        encoder: Per layer (B, H, S, S).
        decoder: Per layer (B, H, T, T); empty where the decoder's cell does not attend.
        cross: Per layer (B, H, T, S).
    """

    encoder: tuple[Tensor, ...]
    decoder: tuple[Tensor, ...]
    cross: tuple[Tensor, ...]


def _build_rotary(config: ModelConfig) -> RotaryPositions | None:
    return RotaryPositions(config.query_width) if config.position == "rope" else None


CELLS: Mapping[DecoderCell, type[SelfAttention] | type[SSRU]] = {
    "self-attention": SelfAttention,
    "ssru": SSRU,
}
"""The decoder cells by their names in a configuration."""


def _build_cell(config: ModelConfig, rotary: RotaryPositions | None) -> Cell:
    cell = CELLS[config.decoder_cell]
    return cell(config, rotary=rotary) if cell is SelfAttention else cell(config)


class Encoder(nn.Module):
    """A stack of encoder layers over embeddings of tokens or of anything else."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        rotary = _build_rotary(config)
        self.position_bias = build_position_bias(config, is_bidirectional=True)
        self.embedding_norm = build_norm(config) if config.embedding_norm else None
        self.layers = nn.ModuleList(
            EncoderLayer(config, rotary=rotary) for _ in range(config.num_encoder_layers)
        )
        self.final_norm = build_norm(config) if config.norm_placement == "pre" else None
        self.dropout = Dropout(config.dropout)
        initialise(self, config.d_model)
        if config.norm_placement == "post":
            scale_by_depth(self.layers)

    def forward(
        self,
        embeddings: Tensor,
        mask: Tensor | None = None,
        *,
        maps: list[Tensor] | None = None,
    ) -> Tensor:
        """Encode.

        Args:
            embeddings: (B, S, D), positions included.
            mask: Which positions are real, (B, S) bool; None means all.
            maps: If given, every layer's weights (B, H, S, S) are appended to it.

        Returns:
            The encoder output, (B, S, D).
        """
        length = embeddings.shape[1]
        if self.embedding_norm is not None:
            embeddings = self.embedding_norm(embeddings)
        x: Tensor = self.dropout(embeddings)
        bias = None if self.position_bias is None else self.position_bias(length, length, x.device)
        attendable = None if mask is None else key_mask(mask)
        for layer in self.layers:
            x = layer(x, attendable, bias=bias, maps=maps)
        if self.final_norm is not None:
            x = self.final_norm(x)
        return x


class Decoder(nn.Module):
    """A stack of causal decoder layers; without encoder output it is a language model's."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        rotary = _build_rotary(config)
        self.position_bias = build_position_bias(config, is_bidirectional=False)
        self.embedding_norm = build_norm(config) if config.embedding_norm else None
        self.layers = nn.ModuleList(
            DecoderLayer(config, _build_cell(config, rotary))
            for _ in range(config.num_decoder_layers)
        )
        self.final_norm = build_norm(config) if config.norm_placement == "pre" else None
        self.dropout = Dropout(config.dropout)
        initialise(self, config.d_model)
        if config.norm_placement == "post":
            scale_by_depth(self.layers)

    def forward(
        self,
        embeddings: Tensor,
        encoder_output: Tensor | None = None,
        encoder_mask: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        maps: list[Tensor] | None = None,
        cross_maps: list[Tensor] | None = None,
    ) -> Tensor:
        """Decode every position, each from itself and those before it.

        Args:
            embeddings: (B, T, D), positions included.
            encoder_output: (B, S, D); None skips cross-attention.
            encoder_mask: Which source positions are real, (B, S) bool; None means all.
            mask: Which target positions are real, (B, T) bool. None is right for a batch padded
                on the right, and faster: there the causal mask alone hides all padding from
                every real position.
            maps: If given, every layer's self-attention weights (B, H, T, T) are appended to it.
            cross_maps: If given, every layer's cross-attention weights (B, H, T, S) are.

        Returns:
            (B, T, D).
        """
        length = embeddings.shape[1]
        if self.embedding_norm is not None:
            embeddings = self.embedding_norm(embeddings)
        x: Tensor = self.dropout(embeddings)
        bias = None if self.position_bias is None else self.position_bias(length, length, x.device)
        attendable = None if mask is None else key_mask(mask)
        source = None if encoder_mask is None else key_mask(encoder_mask)
        for layer in self.layers:
            x = layer(
                x, encoder_output, attendable, source, bias=bias, maps=maps, cross_maps=cross_maps
            )
        if self.final_norm is not None:
            x = self.final_norm(x)
        return x


class Transformer(nn.Module):
    """Source ids and target ids → logits of every next target token.

    Attributes:
        config: The shape it was built from.
        source_embedding: Token table of the source.
        target_embedding: Token table of the target; the same object when shared.
        output_projection: None when the target embedding serves as one.
        output_bias: (V,) added to the logits, or None.
    """

    target_embedding: TokenEmbedding
    output_projection: nn.Linear | None
    output_bias: nn.Parameter | None

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.source_embedding = TokenEmbedding(config, vocab_size=config.vocab_size)
        if config.share_embeddings:
            # A plain attribute, not a second submodule: the state dict names the table once.
            object.__setattr__(self, "target_embedding", self.source_embedding)
        else:
            self.target_embedding = TokenEmbedding(config, vocab_size=config.output_size)
        self.source_positions = build_absolute_positions(config)
        self.target_positions = build_absolute_positions(config)
        self.output_projection = (
            None if config.tie_output else nn.Linear(config.d_model, config.output_size, bias=False)
        )
        self.register_parameter(
            "output_bias",
            nn.Parameter(torch.zeros(config.output_size)) if config.output_bias else None,
        )
        initialise(self, config.d_model)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)

    def embed_source(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        """Token · scale + position: (B, S) → (B, S, D); `positions` as in `embed_target`."""
        embeddings: Tensor = self.source_positions(self.source_embedding(ids), positions)
        return embeddings

    def embed_target(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        """Token · scale + position.

        Args:
            ids: (B, T) int64.
            positions: (B, T) or (T,) int64; None means 0..T-1.

        Returns:
            (B, T, D).
        """
        embeddings: Tensor = self.target_positions(self.target_embedding(ids), positions)
        return embeddings

    def project(self, hidden: Tensor) -> Tensor:
        """Logits over the target vocabulary: (..., D) → (..., V)."""
        hidden = self.scale_hidden(hidden)
        if self.output_projection is not None:
            weight: Tensor = self.output_projection.weight
        elif torch.is_grad_enabled():
            weight = self._table_with_fixed_padding()
        else:
            weight = self.target_embedding.weight
        return F.linear(hidden, weight, self.output_bias)

    def scale_hidden(self, hidden: Tensor) -> Tensor:
        """Decoder states as the output projection takes them, (..., D) → (..., D)."""
        return hidden * self.config.d_model**-0.5 if self.config.scale_output else hidden

    def _table_with_fixed_padding(self) -> Tensor:
        """The tied table, (V, D), whose padding row gets no gradient as an output row either."""
        table = self.target_embedding.weight
        is_padding = torch.arange(len(table), device=table.device) == self.config.pad_id
        return torch.where(is_padding[:, None], table.detach(), table)

    def encode(self, source_ids: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Encode a batch of sources.

        Args:
            source_ids: (B, S) int64.
            source_mask: Which tokens are real, (B, S) bool; None means all but padding.

        Returns:
            The encoder output, (B, S, D).
        """
        if source_mask is None:
            source_mask = padding_mask(source_ids, self.config.pad_id)
        encoder_output: Tensor = self.encoder(self.embed_source(source_ids), source_mask)
        return encoder_output

    def decode(
        self,
        target_ids: Tensor,
        encoder_output: Tensor,
        source_mask: Tensor,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """Logits of the token after each target position, given those up to it.

        Args:
            target_ids: (B, T) int64, from the start token on.
            encoder_output: From `encode`, (B, S, D).
            source_mask: Which source tokens are real, (B, S) bool.
            target_mask: Which target tokens are real, (B, T) bool; None is right for targets
                padded on the right (`Decoder.forward`).

        Returns:
            (B, T, V).
        """
        embeddings = self.embed_target(target_ids)
        return self.project(self.decoder(embeddings, encoder_output, source_mask, target_mask))

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Teacher forcing: logits of every next token of right-padded targets.

        Args:
            source_ids: (B, S) int64, padded with `pad_id`.
            target_ids: (B, T) int64, from the start token on, padded on the right.

        Returns:
            (B, T, V).
        """
        source_mask = padding_mask(source_ids, self.config.pad_id)
        return self.decode(target_ids, self.encode(source_ids, source_mask), source_mask)

    @torch.no_grad()
    def attention_maps(self, source_ids: Tensor, target_ids: Tensor) -> AttentionMaps:
        """Weights of every layer and head under teacher forcing; arguments as for `forward`."""
        encoder: list[Tensor] = []
        decoder: list[Tensor] = []
        cross: list[Tensor] = []
        source_mask = padding_mask(source_ids, self.config.pad_id)
        encoder_output = self.encoder(self.embed_source(source_ids), source_mask, maps=encoder)
        embeddings = self.embed_target(target_ids)
        self.decoder(embeddings, encoder_output, source_mask, maps=decoder, cross_maps=cross)
        return AttentionMaps(encoder=tuple(encoder), decoder=tuple(decoder), cross=tuple(cross))
