"""T5 and MADLAD-400 as transformers has them, `T5ForConditionalGeneration`.

Owns which networks it expresses, its config.json, and its tables. The tokenizer is
`model.exchange.export.huggingface.unigram`'s.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from model.checkpoint.manifest import Manifest
from model.checkpoint.weights import Checkpoint
from model.config import ModelConfig
from model.exchange.export.huggingface.family import (
    TOKENIZER_CONFIG,
    Family,
    TokenizerFiles,
    inverse,
    numbering_problems,
    one_sentencepiece_model,
    special_ids,
)
from model.exchange.export.huggingface.unigram import unigram_tokenizer
from model.exchange.export.output import some_layers
from model.exchange.imports.fast_tokenizer import FAST_TOKENIZER
from model.exchange.imports.huggingface.t5 import (
    FEED_FORWARDS,
    OUTPUT,
    SPM_FILES,
    TABLES,
    t5_names,
)
from model.honoured import EVERY_VALUE, Condition, HonouredFields
from model.nn.positions import MAX_DISTANCE, NUM_BUCKETS
from model.text.subwords.pieces import PieceModel

_NAMES = inverse(FEED_FORWARDS)

T5_FIELDS = HonouredFields(
    by="Hugging Face T5",
    fields={
        "vocab_size": EVERY_VALUE,
        "target_vocab_size": EVERY_VALUE,
        "d_model": EVERY_VALUE,
        "num_heads": EVERY_VALUE,
        "d_ff": EVERY_VALUE,
        "num_encoder_layers": some_layers("num_encoder_layers"),
        "num_decoder_layers": some_layers("num_decoder_layers"),
        "d_k": EVERY_VALUE,
        "d_v": Condition(
            name="d_k", holds=lambda network: network.value_width == network.query_width
        ),
        "decoder_d_ff": Condition(
            name="d_ff", holds=lambda network: network.decoder_inner_width == network.d_ff
        ),
        "decoder_cell": ("self-attention",),
        "gated_feed_forward": Condition(
            name="what there is with the activation",
            holds=lambda network: (network.activation, network.gated_feed_forward) in _NAMES,
        ),
        "feed_forward_bias": (False,),
        "embedding_norm": (False,),
        "scale_attention": (False,),
        "scale_output": Condition(
            name="False, or with tie_output",
            holds=lambda network: network.tie_output or not network.scale_output,
        ),
        "activation": tuple(dict.fromkeys(activation for activation, _ in _NAMES)),
        "norm": ("rmsnorm",),
        "norm_placement": ("pre",),
        "norm_epsilon": EVERY_VALUE,
        "position": ("relative",),
        "position_offset": EVERY_VALUE,
        "max_positions": EVERY_VALUE,
        "scale_embedding": (False,),
        "share_embeddings": (True,),
        "tie_output": EVERY_VALUE,
        "output_bias": (False,),
        "attention_bias": (False,),
        "dropout": EVERY_VALUE,
        "attention_dropout": EVERY_VALUE,
        "activation_dropout": EVERY_VALUE,
        "pad_id": EVERY_VALUE,
    },
)
"""What `T5ForConditionalGeneration` can be told of a network."""


def _is_tied(network: ModelConfig) -> bool:
    """Whether the output projection is left out.

    transformers divides what enters a tied one by √d_model, and what enters no other: an embedding
    that is tied without that factor is stated a second time.
    """
    return network.tie_output and network.scale_output


def _config(manifest: Manifest) -> dict[str, object]:
    network = manifest.network
    return {
        "model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"],
        "vocab_size": network.vocab_size,
        "d_model": network.d_model,
        "d_kv": network.query_width,
        "d_ff": network.d_ff,
        "num_heads": network.num_heads,
        "num_layers": network.num_encoder_layers,
        "num_decoder_layers": network.num_decoder_layers,
        "feed_forward_proj": _NAMES[network.activation, network.gated_feed_forward],
        "layer_norm_epsilon": network.norm_epsilon,
        "relative_attention_num_buckets": NUM_BUCKETS,
        "relative_attention_max_distance": MAX_DISTANCE,
        "dropout_rate": network.dropout,
        "tie_word_embeddings": _is_tied(network),
        "scale_decoder_outputs": network.scale_output,
        **special_ids(manifest.tokens),
    }


@torch.no_grad()
def _tensors(checkpoint: Checkpoint) -> Iterator[tuple[str, Tensor]]:
    network, state = checkpoint.manifest.network, checkpoint.transformer.state_dict()
    weights = {name: value.float() for name, value in state.items()}
    table = weights["source_embedding.weight"]
    yield TABLES[0], table
    if not _is_tied(network):
        yield OUTPUT, weights.get("output_projection.weight", table).clone()
    for ours, theirs in t5_names(network):
        yield theirs, weights[ours]


def t5_tokenizer(checkpoint: Checkpoint) -> TokenizerFiles:
    """tokenizer.json, and SentencePiece's own file beside it.

    `T5Tokenizer` has a fixed id for what is unknown, which MADLAD-400's is not, and so it is not
    named.
    """
    files = TokenizerFiles()
    manifest, model = checkpoint.manifest, one_sentencepiece_model(checkpoint, files)
    if any(pair.target_prefix for pair in manifest.pairs):
        files.problems.append("pairs have a target_prefix (only a source_prefix)")
    if model is None:
        return files
    own = {index: model.own_piece(index) for index in range(len(model))}
    files.problems += numbering_problems(checkpoint, own)
    specials = {
        "pad_token": manifest.tokens.pad_id,
        "eos_token": manifest.tokens.eos_id,
        "unk_token": manifest.tokens.unk_id,
    }
    files.problems += [
        f"the {name} has id {index} and is no piece (only pieces)"
        for name, index in specials.items()
        if index not in own
    ]
    if files.problems:
        return files
    _add(files, checkpoint, model, {name: own[index] for name, index in specials.items()})
    return files


def _add(
    files: TokenizerFiles, checkpoint: Checkpoint, model: PieceModel, specials: dict[str, str]
) -> None:
    manifest = checkpoint.manifest
    prompted = [pair for pair in manifest.pairs if not pair.source_prompt]
    # A tag that SentencePiece sees has the space before it that it puts before every text.
    tags = sorted({piece for pair in prompted for piece in pair.source_prefix})
    described, problems = unigram_tokenizer(
        model, specials=list(specials.values()), end=specials["eos_token"], tags=tags
    )
    files.problems += problems
    files.contents[SPM_FILES[0]] = model.data
    files.add_json(FAST_TOKENIZER, described)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": manifest.limits.max_source_length,
        **specials,
    }
    files.add_json(TOKENIZER_CONFIG, settings)


T5 = Family(fields=T5_FIELDS, config=_config, tensors=_tensors, tokenizer=t5_tokenizer)
"""Networks with relative positions, RMSNorm, and neither biases nor scales."""
