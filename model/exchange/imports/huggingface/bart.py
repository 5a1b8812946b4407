"""Networks of BART's build in Hugging Face's names: Marian, M2M100, NLLB, mBART and their like.

Owns what these families have in common: the shape in config.json, the names of the layers' tensors
and of the embedding tables, which are one, two or three. What differs is a family's own file.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from model.checkpoint.description.consistency import size_problems
from model.config import Activation, LengthLimits, ModelConfig, SpecialTokens
from model.exchange.imports.huggingface.folder import MAX_TRAINED_LENGTH, HuggingFaceFolder
from model.exchange.imports.huggingface.weights import HuggingFaceWeights, TensorMap

ACTIVATIONS: Mapping[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "swish": "silu",
    "silu": "silu",
}

SHARED = "model.shared.weight"
ENCODER_TABLE = "model.encoder.embed_tokens.weight"
DECODER_TABLE = "model.decoder.embed_tokens.weight"
HEAD = "lm_head.weight"
FINAL_BIAS = "final_logits_bias"

_LETTERS = ("q", "k", "v", "out")
_PARTS: Mapping[str, str] = {
    **{f"self_attention.{letter}_proj": f"self_attn.{letter}_proj" for letter in _LETTERS},
    "self_attention_norm": "self_attn_layer_norm",
    **{f"cross_attention.{letter}_proj": f"encoder_attn.{letter}_proj" for letter in _LETTERS},
    "cross_attention_norm": "encoder_attn_layer_norm",
    "feed_forward.up_proj": "fc1",
    "feed_forward.down_proj": "fc2",
    "feed_forward_norm": "final_layer_norm",
}
"""Linear layers and norms of a layer, by our names; cross-attention is the decoder's alone."""


def bart_network(
    folder: HuggingFaceFolder, *, activation: str, scale_embedding: bool
) -> ModelConfig | None:
    """The shape in config.json; what a family adds is for it to replace.

    Args:
        folder: Takes the problems.
        activation: The family's, where config.json does not say.
        scale_embedding: Likewise, whether embeddings are multiplied by √d_model.

    Returns:
        None, and problems, where config.json describes no network.
    """
    num_heads = equal_heads(folder)
    d_ff = folder.integer("encoder_ffn_dim")
    decoder_d_ff = folder.integer("decoder_ffn_dim", default=d_ff)
    vocab_size, pad_id = folder.integer("vocab_size"), folder.integer("pad_token_id")
    d_model = folder.integer("d_model")
    encoder_layers, decoder_layers = map(folder.integer, ("encoder_layers", "decoder_layers"))
    chosen = folder.choice("activation_function", ACTIVATIONS, activation)
    scale = folder.flag("scale_embedding", default=scale_embedding)
    network = folder.described(
        lambda: ModelConfig(
            vocab_size=vocab_size,
            d_model=d_model,
            num_heads=num_heads,
            d_ff=d_ff,
            decoder_d_ff=None if decoder_d_ff == d_ff else decoder_d_ff,
            activation=chosen,
            scale_embedding=scale,
            num_encoder_layers=encoder_layers,
            num_decoder_layers=decoder_layers,
            pad_id=pad_id,
        )
    )
    problems = [] if network is None else size_problems(network)
    folder.problems += problems
    return None if problems else network


def equal_heads(folder: HuggingFaceFolder, default: int | None = None) -> int:
    """The number of attention heads; a problem if encoder and decoder have different ones.

    Args:
        folder: Takes the problem.
        default: Of both, where config.json does not say; None takes the encoder's for the decoder.
    """
    encoder = folder.size("encoder_attention_heads", default)
    decoder = folder.size("decoder_attention_heads", default or encoder)
    if encoder != decoder:
        folder.problems.append(
            f"config.json: encoder_attention_heads is {encoder}, decoder_attention_heads is"
            f" {decoder}; only equal numbers can be converted"
        )
    return encoder


def bart_tokens(folder: HuggingFaceFolder, *, unk_id: int) -> SpecialTokens:
    """Special ids as config.json has them, and what is never generated."""
    eos_id = folder.integer("eos_token_id")
    forced = folder.setting("forced_eos_token_id")
    if forced not in (None, eos_id, [eos_id]):
        folder.problems.append(f"forced_eos_token_id is {forced}, eos_token_id {eos_id}")
    return SpecialTokens(
        pad_id=folder.integer("pad_token_id"),
        eos_id=eos_id,
        unk_id=unk_id,
        start_id=folder.start_id(),
        suppressed_ids=folder.suppressed(),
    )


def bart_limits(folder: HuggingFaceFolder) -> LengthLimits:
    """Lengths that the positions hold, as far as networks of these families learned."""
    positions = folder.integer("max_position_embeddings", default=MAX_TRAINED_LENGTH)
    length = min(MAX_TRAINED_LENGTH, positions)
    return LengthLimits(max_source_length=length, max_target_length=length)


def with_nameless(tokens: SpecialTokens, table: Mapping[str, int], size: int) -> SpecialTokens:
    """The same tokens; ids of the output that stand for no piece are never generated."""
    specials = {tokens.pad_id, tokens.eos_id, tokens.unk_id, tokens.start_id}
    nameless = set(range(size)) - set(table.values()) - specials
    return replace(tokens, suppressed_ids=tuple(sorted({*tokens.suppressed_ids, *nameless})))


def bart_tables(
    network: ModelConfig,
    weights: HuggingFaceWeights,
    tensors: TensorMap,
    *,
    is_shared: bool,
    is_tied: bool,
) -> ModelConfig:
    """Take the embedding tables and the output projection, and say how many they are.

    Whatever is tied may be absent, or there under several names; then all must be equal.

    Args:
        network: What `bart_network` has made.
        weights: Of the folder.
        tensors: Takes the tables.
        is_shared: Source and target have one table; without ties they may be two all the same.
        is_tied: The output projection is the target's table.
    """
    head = [HEAD] if is_tied else []
    tables = {ENCODER_TABLE, DECODER_TABLE}
    if is_shared and not is_tied and tables <= set(weights):
        is_shared = weights.same(ENCODER_TABLE, DECODER_TABLE)
        tensors.drop(SHARED)  # without ties, nothing reads it
    if is_shared:
        names = [ENCODER_TABLE, DECODER_TABLE, SHARED, *head]
        _take_first("source_embedding.weight", names, weights, tensors)
    else:
        _take_first("source_embedding.weight", [ENCODER_TABLE], weights, tensors)
        _take_first("target_embedding.weight", [DECODER_TABLE, *head], weights, tensors)
    if not is_tied:
        tensors.take("output_projection.weight", HEAD)
    has_bias = weights.is_more_than_zeros(FINAL_BIAS)
    tensors.drop(FINAL_BIAS)
    if has_bias:
        size = weights.shape(FINAL_BIAS)[-1:]
        tensors.take("output_bias", FINAL_BIAS, shape=size)
    return replace(network, share_embeddings=is_shared, tie_output=is_tied, output_bias=has_bias)


def bart_modules(network: ModelConfig) -> Iterator[tuple[str, str]]:
    """Our name and that of transformers of every linear layer and norm of both stacks.

    The tables are not among them. Import and export go by these names.

    Args:
        network: Says how many layers there are, and which norms.
    """
    depths = {"encoder": network.num_encoder_layers, "decoder": network.num_decoder_layers}
    for side, depth in depths.items():
        for number in range(depth):
            ours, theirs = f"{side}.layers.{number}", f"model.{side}.layers.{number}"
            for part, name in _PARTS.items():
                if side == "decoder" or "cross_attention" not in part:
                    yield f"{ours}.{part}", f"{theirs}.{name}"
        if network.norm_placement == "pre":
            yield f"{side}.final_norm", f"model.{side}.layer_norm"
        if network.embedding_norm:
            yield f"{side}.embedding_norm", f"model.{side}.layernorm_embedding"


def bart_layers(network: ModelConfig, tensors: TensorMap) -> None:
    """Take the tensors of both stacks; `network` says which norms there are."""
    for ours, theirs in bart_modules(network):
        tensors.linear(ours, theirs)


def _take_first(
    ours: str, names: Sequence[str], weights: HuggingFaceWeights, tensors: TensorMap
) -> None:
    """Take the first of several names that is there; the others have to be copies."""
    first = weights.first_of(names)
    tensors.take(ours, first)
    tensors.drop_copies(first, *names)
