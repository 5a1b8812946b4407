"""Marian as transformers has it, `MarianMTModel`, with equal logits in float32.

Owns which networks it expresses, its config.json, its tables, and the files of `MarianTokenizer`:
SentencePiece files with a table of pieces apart from them.
"""

import re
from collections.abc import Iterator

import torch
from torch import Tensor

from model.checkpoint.manifest import Manifest
from model.checkpoint.weights import Checkpoint
from model.config import ModelConfig, SpecialTokens
from model.exchange.export.huggingface.bart import (
    BART_FIELDS,
    bart_shape,
    bart_tensors,
    one_table,
)
from model.exchange.export.huggingface.family import (
    TOKENIZER_CONFIG,
    Family,
    TokenizerFiles,
    sentencepiece_models,
    special_ids,
)
from model.exchange.export.output import num_positions
from model.exchange.export.vocabulary import name_problems
from model.exchange.imports.huggingface.bart import (
    DECODER_TABLE,
    ENCODER_TABLE,
    FINAL_BIAS,
    HEAD,
    SHARED,
)
from model.honoured import HonouredFields
from model.nn.transformer import Transformer

MARIAN_FIELDS = HonouredFields(
    by="Hugging Face Marian",
    fields={**BART_FIELDS, "position": ("sinusoidal-marian",), "position_offset": (0,)},
)
"""What `MarianMTModel` can be told of a network."""

_TAG = re.compile(r">>[^<>]+<<")


def marian_config(
    network: ModelConfig, tokens: SpecialTokens, *, max_positions: int
) -> dict[str, object]:
    """What `MarianConfig` has to say for a network that Marian expresses.

    An output projection of its own goes with two tables there, so a shared table is then
    stated twice.
    """
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "vocab_size": network.vocab_size,
        "decoder_vocab_size": network.output_size,
        "share_encoder_decoder_embeddings": one_table(network),
        "tie_word_embeddings": network.tie_output,
        "static_position_embeddings": True,
        **bart_shape(network, max_positions=max_positions),
        **special_ids(tokens),
    }


@torch.no_grad()
def marian_tensors(transformer: Transformer) -> Iterator[tuple[str, Tensor]]:
    """Names and float32 weights of `MarianMTModel`; those it ties or computes are left out."""
    network = transformer.config
    yield from bart_tensors(transformer, marian_tables(network))
    bias = transformer.output_bias
    size = network.output_size
    yield FINAL_BIAS, torch.zeros(1, size) if bias is None else bias.float()[None]


def marian_tables(network: ModelConfig) -> dict[str, tuple[str, ...]]:
    """Names of `MarianMTModel`'s tables by ours; some stand under several."""
    head = {} if network.tie_output else {"output_projection.weight": (HEAD,)}
    if one_table(network):
        return {"source_embedding.weight": (SHARED,)}
    if network.share_embeddings:
        return {"source_embedding.weight": (ENCODER_TABLE, DECODER_TABLE), **head}
    return {
        "source_embedding.weight": (ENCODER_TABLE,),
        "target_embedding.weight": (DECODER_TABLE,),
        **head,
    }


def _config(manifest: Manifest) -> dict[str, object]:
    positions = num_positions(manifest)
    return marian_config(manifest.network, manifest.tokens, max_positions=positions)


def marian_tokenizer(checkpoint: Checkpoint) -> TokenizerFiles:
    """The files of `MarianTokenizer`; tags of target languages stand before the text."""
    manifest, tokenizer, files = checkpoint.manifest, checkpoint.tokenizer, TokenizerFiles()
    models = sentencepiece_models(checkpoint, files)
    sides = {"source": tokenizer.source_pieces(), "target": tokenizer.target_pieces()}
    for side, pieces in sides.items():
        files.problems += name_problems(side, pieces, manifest.tokens)
    if any(pair.source_prompt for pair in manifest.pairs):
        files.problems.append("pairs have a source_prompt (only a source_prefix)")
    if models is None:
        return files
    files.contents |= {"source.spm": models[0].data, "target.spm": models[1].data}
    tables = [_table(pieces, manifest.tokens) for pieces in sides.values()]
    files.add_json("vocab.json", tables[0])
    is_separate = tables[0] != tables[1]
    if is_separate:
        files.add_json("target_vocab.json", tables[1])
    files.add_json(TOKENIZER_CONFIG, _settings(manifest, is_separate=is_separate))
    return files


def _table(pieces: dict[int, str], tokens: SpecialTokens) -> dict[str, int]:
    """Piece → id, special tokens under the names that the tokenizer looks for."""
    specials = {"</s>": tokens.eos_id, "<unk>": tokens.unk_id, "<pad>": tokens.pad_id}
    table = {piece: index for index, piece in pieces.items()} | specials
    if tokens.start_id not in specials.values():
        table["<s>"] = tokens.start_id
    return table


def _settings(manifest: Manifest, *, is_separate: bool) -> dict[str, object]:
    """What tokenizer_config.json says; languages where there is one."""
    sources, targets = ({getattr(pair, side) for pair in manifest.pairs} for side in _SIDES)
    tags = {piece for pair in manifest.pairs for piece in pair.source_prefix}
    settings: dict[str, object] = {
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": is_separate,
        "model_max_length": manifest.limits.max_source_length,
    }
    if len(sources) == 1:
        settings["source_lang"] = min(sources)
    if len(targets) == 1:
        settings["target_lang"] = min(targets)
    others = sorted(tag for tag in tags if _TAG.fullmatch(tag) is None)
    return settings | ({"additional_special_tokens": others} if others else {})


_SIDES = ("source", "target")

MARIAN = Family(
    fields=MARIAN_FIELDS,
    config=_config,
    tensors=lambda checkpoint: marian_tensors(checkpoint.transformer),
    tokenizer=marian_tokenizer,
)
"""Post-norm networks whose sinusoids are transformers' form of Marian's."""
