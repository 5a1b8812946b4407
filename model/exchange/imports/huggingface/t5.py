"""T5 (Raffel et al. 2020) and MADLAD-400 (Kudugunta et al. 2023) in Hugging Face's layout.

Owns what their config.json means and where their tensors go. How they are asked for a direction is
`model.exchange.imports.t5_prompts`'.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from model.checkpoint.weights import TokenizerParts
from model.config import Activation, LengthLimits, ModelConfig, SpecialTokens
from model.errors import shown
from model.exchange.imports.completeness import unfilled
from model.exchange.imports.huggingface.folder import (
    MAX_TRAINED_LENGTH,
    HuggingFaceFolder,
    model_type,
)
from model.exchange.imports.huggingface.weights import (
    HuggingFaceWeights,
    TensorMap,
    opened_weights,
)
from model.exchange.imports.huggingface.whole import checked_tensors, whole_model
from model.exchange.imports.imported import ImportedModel, ImportOptions
from model.exchange.imports.t5_prompts import prompted_directions
from model.nn.positions import MAX_DISTANCE, NUM_BUCKETS
from model.text.subwords.pieces import PieceModel

SPM_FILES = ("spiece.model", "sentencepiece.model")

_TYPES = ("t5", "mt5")
_REFUSED = {"umt5": "has a table of relative positions in every layer; only one a stack is known"}
FEED_FORWARDS: Mapping[str, tuple[Activation, bool]] = {
    "relu": ("relu", False),
    "gelu": ("gelu", False),
    "gated-gelu": ("gelu-tanh", True),
    "gated-gelu_new": ("gelu-tanh", True),
    "gated-relu": ("relu", True),
    "gated-silu": ("silu", True),
}
"""The activation, and whether the inner layer is gated."""
TABLES = ("shared.weight", "decoder.embed_tokens.weight", "encoder.embed_tokens.weight")
OUTPUT = "lm_head.weight"
_FIRST_WITHOUT_FACTOR = 5
"""The version of transformers since which no mT5 divides its output by √d_model."""
_CROSS_BIAS = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
"""In old files, and never used."""
_PROJECTIONS = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "out_proj": "o"}
_HALF_PRECISION = (
    "Its activations grow beyond the range of float16: decode it in bfloat16, float32 or int8."
)


class T5Importer:
    """MADLAD-400, and networks of T5's kind that were trained to translate."""

    name = "Hugging Face T5"

    def recognises(self, source: Path) -> bool:
        """Whether config.json says that it is a T5 of some kind."""
        return model_type(source) in {*_TYPES, *_REFUSED}

    def read(self, source: Path, options: ImportOptions) -> ImportedModel:
        """The network, without its weights.

        Raises:
            ForeignModelError: With every problem.
        """
        folder = HuggingFaceFolder(source)
        reason = _REFUSED.get(str(folder.config.get("model_type")))
        if reason is not None:
            folder.problems.append(
                f"is of the family {folder.config['model_type']}, which {reason}"
            )
        spm_file = next((name for name in SPM_FILES if folder.has(name)), SPM_FILES[0])
        spm, pieces = folder.pieces(spm_file)
        weights = opened_weights(folder)
        is_tied, is_scaled = _head(folder, weights)
        network = _network(folder, is_tied=is_tied, is_scaled=is_scaled)
        added = folder.added_tokens
        asked = prompted_directions(
            pieces, options.pairs, added=None if added is None else set(added)
        )
        folder.problems += asked.problems
        if pieces is not None and network is not None:
            _check_size(folder, spm_file, len(pieces), network.vocab_size)
        network, tensors = checked_tensors(folder, weights, network, _tensors)
        assert pieces is not None
        return whole_model(
            folder,
            tensors,
            family="t5",
            description=f"{folder.name}, a T5, in {len(asked.pairs)} directions",
            network=network,
            tokens=_tokens(folder, network, pieces),
            pairs=asked.pairs,
            limits=LengthLimits(
                max_source_length=MAX_TRAINED_LENGTH, max_target_length=MAX_TRAINED_LENGTH
            ),
            tokenizer=TokenizerParts(source_pieces=spm),
            notes=(_HALF_PRECISION, *asked.notes),
            languages=asked.languages,
        )


def _check_size(folder: HuggingFaceFolder, name: str, num_pieces: int, num_rows: int) -> None:
    if num_pieces > num_rows:
        folder.problems.append(f"{name} has {num_pieces} pieces; vocab_size is {num_rows}")
    folder.problems += unfilled(name, num_pieces, num_rows)


def _head(folder: HuggingFaceFolder, weights: HuggingFaceWeights | None) -> tuple[bool, bool]:
    """Whether the output projection is the embedding, and whether it gets d_model^-0.5.

    Configurations contradict the weights here, so the weights decide: a projection of other values
    than the embedding's is one of its own, and only a tied one has the factor. What transformers
    has said of T5's factor since its version 5 is believed; of mT5 that version dropped it, and it
    was there before only where the configuration said that the two are tied.
    """
    said = folder.config.get("tie_word_embeddings")
    is_tied = weights is None or OUTPUT not in weights
    if weights is not None and not is_tied and said is not False:
        table = weights.first_of(TABLES)
        is_tied = table in weights and weights.same(table, OUTPUT)
    if folder.config.get("model_type") == "mt5":
        return is_tied, is_tied and said is True and _is_of_old_transformers(folder)
    is_scaled = is_tied and said is not False
    return is_tied, folder.flag("scale_decoder_outputs", default=is_scaled)


def _is_of_old_transformers(folder: HuggingFaceFolder) -> bool:
    """Whether config.json says that a version before 5 wrote it."""
    version = re.match(r"(\d{1,4})\.", str(folder.config.get("transformers_version")))
    return version is not None and int(version[1]) < _FIRST_WITHOUT_FACTOR


def _network(folder: HuggingFaceFolder, *, is_tied: bool, is_scaled: bool) -> ModelConfig | None:
    folder.only("relative_attention_num_buckets", NUM_BUCKETS)
    folder.only("relative_attention_max_distance", MAX_DISTANCE)
    activation, is_gated = folder.choice("feed_forward_proj", FEED_FORWARDS, "relu")
    num_layers, head = folder.layer_count("num_layers"), folder.size("d_kv")
    return folder.described(
        lambda: ModelConfig(
            vocab_size=folder.size("vocab_size"),
            d_model=folder.size("d_model"),
            num_heads=folder.size("num_heads"),
            d_k=head,
            d_v=head,
            d_ff=folder.size("d_ff"),
            num_encoder_layers=num_layers,
            num_decoder_layers=folder.layer_count("num_decoder_layers", num_layers),
            activation=activation,
            gated_feed_forward=is_gated,
            feed_forward_bias=False,
            attention_bias=False,
            norm="rmsnorm",
            norm_placement="pre",
            norm_epsilon=_epsilon(folder),
            position="relative",
            scale_embedding=False,
            scale_attention=False,
            scale_output=is_scaled,
            tie_output=is_tied,
            output_bias=False,
            pad_id=folder.integer("pad_token_id", default=0),
        ),
    )


def _epsilon(folder: HuggingFaceFolder) -> float:
    value = folder.config.get("layer_norm_epsilon", 1e-6)
    if isinstance(value, float) and 0 < value < 1:
        return value
    folder.problems.append(
        f"config.json: layer_norm_epsilon is {shown(value)}; it must be between 0 and 1"
    )
    return 1e-6


def _tokens(folder: HuggingFaceFolder, network: ModelConfig, pieces: PieceModel) -> SpecialTokens:
    """Padding is never generated, nor is a row without a piece."""
    return SpecialTokens(
        pad_id=network.pad_id,
        eos_id=folder.integer("eos_token_id", default=1),
        unk_id=pieces.unk_id,
        start_id=folder.start_id(default=network.pad_id),
        suppressed_ids=(
            *({network.pad_id} & set(range(len(pieces)))),
            *range(len(pieces), network.vocab_size),
        ),
    )


def _tensors(weights: HuggingFaceWeights, network: ModelConfig) -> TensorMap:
    tensors = TensorMap(weights)
    table = weights.first_of(TABLES)
    tensors.take("source_embedding.weight", table)
    tensors.drop_copies(table, *TABLES)
    if network.tie_output:
        tensors.drop(OUTPUT)
    else:
        tensors.take("output_projection.weight", OUTPUT)
    tensors.drop(_CROSS_BIAS)
    for ours, theirs in t5_names(network):
        tensors.take(ours, theirs)
    return tensors


def t5_names(network: ModelConfig) -> Iterator[tuple[str, str]]:
    """Our name and that of transformers of every tensor of both stacks; the tables are not there.

    Import and export go by these names.

    Args:
        network: Says how many layers there are, and whether they are gated.
    """
    for stack, num_layers in (
        ("encoder", network.num_encoder_layers),
        ("decoder", network.num_decoder_layers),
    ):
        bias = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        yield f"{stack}.position_bias.scores.weight", bias
        yield f"{stack}.final_norm.weight", f"{stack}.final_layer_norm.weight"
        for number in range(num_layers):
            for ours, theirs in _layer_names(stack, is_gated=network.gated_feed_forward):
                yield (
                    f"{stack}.layers.{number}.{ours}.weight",
                    f"{stack}.block.{number}.layer.{theirs}.weight",
                )


def _layer_names(stack: str, *, is_gated: bool) -> Iterator[tuple[str, str]]:
    """Of one block: its sub-layers are numbered, each with the norm before it."""
    attentions = {"self_attention": "SelfAttention"}
    if stack == "decoder":
        attentions["cross_attention"] = "EncDecAttention"
    for place, (name, theirs) in enumerate(attentions.items()):
        yield f"{name}_norm", f"{place}.layer_norm"
        for projection, letter in _PROJECTIONS.items():
            yield f"{name}.{projection}", f"{place}.{theirs}.{letter}"
    last = len(attentions)
    yield "feed_forward_norm", f"{last}.layer_norm"
    parts = {"up_proj": "wi_1", "gate_proj": "wi_0"} if is_gated else {"up_proj": "wi"}
    for part, theirs in {**parts, "down_proj": "wo"}.items():
        yield f"feed_forward.{part}", f"{last}.DenseReluDense.{theirs}"
