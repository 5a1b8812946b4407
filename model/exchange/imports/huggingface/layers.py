"""What the networks of BART's kind share in Hugging Face's layout, and limits on what is described.

Owns the names of their layers' tensors, and the sizes beyond which nothing is built. What is around
the layers is each family's own file.
"""

from collections.abc import Callable, Sequence

from model.checkpoint.consistency import MAX_LAYERS, MAX_WIDTH
from model.config import ModelConfig
from model.errors import ConfigError, ForeignModelError
from model.exchange.imports.huggingface.folder import HuggingFaceFolder
from model.exchange.imports.huggingface.weights import HuggingFaceWeights, TensorMap

MAX_TRAINED_LENGTH = 512
"""Tokens of a sentence, where a description says only how many positions there are."""

_PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")


def size(folder: HuggingFaceFolder, name: str, default: int | None = None) -> int:
    """A width, or a number of rows or heads; a problem, and something harmless, if it is none."""
    return _bounded(folder, name, default, MAX_WIDTH)


def layer_count(folder: HuggingFaceFolder, name: str, default: int | None = None) -> int:
    """A number of layers; a problem, and something harmless, if it is none."""
    return _bounded(folder, name, default, MAX_LAYERS)


def _bounded(folder: HuggingFaceFolder, name: str, default: int | None, most: int) -> int:
    value = folder.integer(name, default=default)
    if 1 <= value <= most:
        return value
    folder.problems.append(f"config.json: {name} is {value}; it must be from 1 to {most}")
    return 1


def equal_heads(folder: HuggingFaceFolder, default: int) -> int:
    """The number of attention heads; a problem if encoder and decoder have different ones."""
    encoder = size(folder, "encoder_attention_heads", default)
    decoder = size(folder, "decoder_attention_heads", default)
    if encoder != decoder:
        folder.problems.append(
            f"config.json: encoder_attention_heads is {encoder}, decoder_attention_heads is"
            f" {decoder}; only equal numbers can be converted"
        )
    return encoder


def only(folder: HuggingFaceFolder, name: str, *known: object) -> None:
    """Refuse a value of config.json that is none of those; left out, it is the first."""
    value = folder.config.get(name, known[0])
    if not any(value == item and type(value) is type(item) for item in known):
        wanted = " or ".join(map(repr, known))
        folder.problems.append(f"config.json: {name} is {value!r}; only {wanted} can be converted")


def described(folder: HuggingFaceFolder, build: Callable[[], ModelConfig]) -> ModelConfig | None:
    """The network; None, and a problem, where there can be none such."""
    try:
        return build()
    except ConfigError as error:
        folder.problems.append(f"config.json: {error}")
        return None


def opened_weights(folder: HuggingFaceFolder) -> HuggingFaceWeights | None:
    """The tensors of a folder; None, and problems, where they cannot be read."""
    try:
        return HuggingFaceWeights(folder.path)
    except ForeignModelError as error:
        folder.problems += error.problems
        return None


def first_there(weights: HuggingFaceWeights, names: Sequence[str]) -> str:
    """The first name that there is a tensor of, or the first."""
    return next((name for name in names if name in weights), names[0])


def take_bart_layers(tensors: TensorMap, network: ModelConfig) -> None:
    """Take every layer of both stacks (transformers' `BartEncoderLayer` and its like)."""
    for number in range(network.num_encoder_layers):
        ours, theirs = f"encoder.layers.{number}", f"model.encoder.layers.{number}"
        _take_attention(tensors, f"{ours}.self_attention", f"{theirs}.self_attn")
        _take_feed_forward(tensors, ours, theirs)
    for number in range(network.num_decoder_layers):
        ours, theirs = f"decoder.layers.{number}", f"model.decoder.layers.{number}"
        _take_attention(tensors, f"{ours}.self_attention", f"{theirs}.self_attn")
        _take_attention(tensors, f"{ours}.cross_attention", f"{theirs}.encoder_attn")
        _take_feed_forward(tensors, ours, theirs)


def _take_attention(tensors: TensorMap, ours: str, theirs: str) -> None:
    for projection in _PROJECTIONS:
        tensors.linear(f"{ours}.{projection}", f"{theirs}.{projection}")
    tensors.linear(f"{ours}_norm", f"{theirs}_layer_norm")


def _take_feed_forward(tensors: TensorMap, ours: str, theirs: str) -> None:
    tensors.linear(f"{ours}.feed_forward.up_proj", f"{theirs}.fc1")
    tensors.linear(f"{ours}.feed_forward.down_proj", f"{theirs}.fc2")
    tensors.linear(f"{ours}.feed_forward_norm", f"{theirs}.final_layer_norm")
