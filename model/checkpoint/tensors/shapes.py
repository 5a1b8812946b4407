"""Names and shapes of a network's tensors, from its description alone.

Owns what `Transformer.state_dict` of `model.nn` has, without building the network: packing
weights for other kernels needs no torch. Imports no torch.
"""

from collections.abc import Iterable, Iterator, Mapping

from model.cells import Projection, attention_projections, describe_cell
from model.config import ModelConfig

Shape = tuple[int, ...]
_NUM_BUCKETS = 32
"""Of T5's relative positions, as in `model.nn.positions`."""


def tensor_shapes(config: ModelConfig) -> dict[str, Shape]:
    """The shape of every tensor of a network, by its name in the state dict."""
    return dict([*_tables(config), *_encoder(config), *_decoder(config)])


def tensor_problems(config: ModelConfig, found: Mapping[str, Shape]) -> str:
    """What is missing, unexpected or of another shape; empty if nothing is."""
    expected = {name: str(list(shape)) for name, shape in tensor_shapes(config).items()}
    return differences(expected, {name: str(list(shape)) for name, shape in found.items()})


def _tables(config: ModelConfig) -> Iterator[tuple[str, Shape]]:
    target = (config.output_size, config.d_model)
    yield "source_embedding.weight", (config.vocab_size, config.d_model)
    if not config.share_embeddings:
        yield "target_embedding.weight", target
    if config.position == "learned":
        for side in ("source", "target"):
            yield f"{side}_positions.vectors.weight", (config.max_positions, config.d_model)
    if not config.tie_output:
        yield "output_projection.weight", target
    if config.output_bias:
        yield "output_bias", (config.output_size,)


def _encoder(config: ModelConfig) -> Iterator[tuple[str, Shape]]:
    yield from _around(config, "encoder.")
    for index in range(config.num_encoder_layers):
        layer = f"encoder.layers.{index}."
        yield from _attention(config, f"{layer}self_attention")
        yield from _feed_forward(config, layer, config.d_ff)


def _decoder(config: ModelConfig) -> Iterator[tuple[str, Shape]]:
    yield from _around(config, "decoder.")
    for index in range(config.num_decoder_layers):
        layer = f"decoder.layers.{index}."
        cell = describe_cell(config)
        yield from _part(config, f"{layer}{cell.name}", cell.projections)
        yield from _attention(config, f"{layer}cross_attention")
        yield from _feed_forward(config, layer, config.decoder_inner_width)


def _around(config: ModelConfig, stack: str) -> Iterator[tuple[str, Shape]]:
    """What a stack has besides its layers."""
    if config.position == "relative":
        yield f"{stack}position_bias.scores.weight", (_NUM_BUCKETS, config.num_heads)
    if config.embedding_norm:
        yield from _norm(config, f"{stack}embedding_norm")
    if config.norm_placement == "pre":
        yield from _norm(config, f"{stack}final_norm")


def _attention(config: ModelConfig, name: str) -> Iterator[tuple[str, Shape]]:
    return _part(config, name, attention_projections(config))


def _part(
    config: ModelConfig, name: str, projections: Iterable[Projection]
) -> Iterator[tuple[str, Shape]]:
    """A part of a layer that is made of linear maps, with its norm."""
    for item in projections:
        yield from _linear(
            f"{name}.{item.name}", item.num_outputs, item.num_inputs, has_bias=item.has_bias
        )
    yield from _norm(config, f"{name}_norm")


def _feed_forward(config: ModelConfig, layer: str, inner: int) -> Iterator[tuple[str, Shape]]:
    name, has_bias = f"{layer}feed_forward", config.feed_forward_bias
    for part in ("gate", "up") if config.gated_feed_forward else ("up",):
        yield from _linear(f"{name}.{part}_proj", inner, config.d_model, has_bias=has_bias)
    yield from _linear(f"{name}.down_proj", config.d_model, inner, has_bias=has_bias)
    yield from _norm(config, f"{name}_norm")


def _linear(name: str, outputs: int, inputs: int, *, has_bias: bool) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (outputs, inputs)
    if has_bias:
        yield f"{name}.bias", (outputs,)


def _norm(config: ModelConfig, name: str) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (config.d_model,)
    if config.norm == "layernorm":
        yield f"{name}.bias", (config.d_model,)


def differences(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Everything that is missing, unexpected or different, on one line; empty if nothing is."""
    problems = [f"{name} is missing" for name in expected if name not in found]
    problems += [f"{name} is unexpected" for name in found if name not in expected]
    problems += [
        f"{name} is {found[name]}, expected {expected[name]}"
        for name in expected
        if name in found and found[name] != expected[name]
    ]
    return "; ".join(problems)
