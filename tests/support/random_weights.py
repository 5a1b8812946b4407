"""Random weights of any network that a configuration can describe, by name, without its modules."""

from collections.abc import Iterator

import torch
from torch import Tensor

from model.config import ModelConfig
from model.nn.positions import NUM_BUCKETS


class _Random:
    """Tensors of a network, one after another from one seed."""

    def __init__(self, config: ModelConfig, seed: int) -> None:
        self._config = config
        self._generator = torch.Generator().manual_seed(seed)

    def _normal(self, *shape: int, size: float = 1.0) -> Tensor:
        return torch.randn(shape, generator=self._generator) * size

    def _linear(self, name: str, outputs: int, inputs: int, *, bias: bool) -> Iterator[tuple]:
        size = 2.0 * (2.0 / (outputs + inputs)) ** 0.5
        yield f"{name}.weight", self._normal(outputs, inputs, size=size)
        if bias:
            yield f"{name}.bias", self._normal(outputs, size=0.2)

    def _norm(self, name: str) -> Iterator[tuple]:
        yield f"{name}.weight", 1.0 + self._normal(self._config.d_model, size=0.1)
        if self._config.norm == "layernorm":
            yield f"{name}.bias", self._normal(self._config.d_model, size=0.1)

    def _attention(self, name: str) -> Iterator[tuple]:
        config = self._config
        keys, values = (
            config.num_heads * width for width in (config.query_width, config.value_width)
        )
        bias = config.attention_bias
        for letter, outputs in (("q", keys), ("k", keys), ("v", values)):
            yield from self._linear(f"{name}.{letter}_proj", outputs, config.d_model, bias=bias)
        yield from self._linear(f"{name}.out_proj", config.d_model, values, bias=bias)
        yield from self._norm(f"{name}_norm")

    def _feed_forward(self, name: str, inner: int) -> Iterator[tuple]:
        d_model, bias = self._config.d_model, self._config.feed_forward_bias
        yield from self._linear(f"{name}.up_proj", inner, d_model, bias=bias)
        if self._config.gated_feed_forward:
            yield from self._linear(f"{name}.gate_proj", inner, d_model, bias=bias)
        yield from self._linear(f"{name}.down_proj", d_model, inner, bias=bias)
        yield from self._norm(f"{name}_norm")

    def _cell(self, name: str) -> Iterator[tuple]:
        if self._config.decoder_cell == "self-attention":
            yield from self._attention(f"{name}self_attention")
            return
        d_model = self._config.d_model
        yield from self._linear(f"{name}ssru.candidate_proj", d_model, d_model, bias=False)
        yield from self._linear(f"{name}ssru.forget_proj", d_model, d_model, bias=True)
        yield from self._norm(f"{name}ssru_norm")

    def _stack(self, stack: str) -> Iterator[tuple]:
        config = self._config
        if config.position == "relative":
            yield (
                f"{stack}.position_bias.scores.weight",
                self._normal(NUM_BUCKETS, config.num_heads),
            )
        if config.embedding_norm:
            yield from self._norm(f"{stack}.embedding_norm")
        if config.norm_placement == "pre":
            yield from self._norm(f"{stack}.final_norm")

    def tensors(self, eos_id: int, eos_bias: float) -> Iterator[tuple]:
        config = self._config
        tables = [("source_embedding", config.vocab_size)]
        if not config.share_embeddings:
            tables.append(("target_embedding", config.output_size))
        if not config.tie_output:
            tables.append(("output_projection", config.output_size))
        for name, size in tables:
            yield (
                f"{name}.weight",
                self._normal(size, config.d_model, size=2 * config.d_model**-0.5),
            )
        if config.output_bias:
            bias = self._normal(config.output_size)
            bias[eos_id] = eos_bias
            yield "output_bias", bias
        if config.position == "learned":
            for side in ("source", "target"):
                rows = self._normal(config.max_positions, config.d_model)
                yield f"{side}_positions.vectors.weight", rows
        for stack in ("encoder", "decoder"):
            yield from self._stack(stack)
        for index in range(config.num_encoder_layers):
            name = f"encoder.layers.{index}."
            yield from self._attention(f"{name}self_attention")
            yield from self._feed_forward(f"{name}feed_forward", config.d_ff)
        for index in range(config.num_decoder_layers):
            name = f"decoder.layers.{index}."
            yield from self._cell(name)
            yield from self._attention(f"{name}cross_attention")
            yield from self._feed_forward(f"{name}feed_forward", config.decoder_inner_width)


def random_weights(
    config: ModelConfig, *, seed: int = 0, eos_id: int = 1, eos_bias: float = 1.0
) -> dict[str, Tensor]:
    """Every tensor of the network's `state_dict`, sure enough of itself for searches to differ."""
    return dict(_Random(config, seed).tensors(eos_id, eos_bias))
