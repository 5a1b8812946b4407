"""Hugging Face's Marian: OPUS-MT and its larger successors, bilingual or of several targets.

Owns config.json's meaning for `MarianMTModel` and the tokenizer's files: two SentencePiece models,
and a table, or one a side, whose ids are not theirs. A network of several targets is told which by
a piece `>>xx<<` before the source. The table of positions differs a little from that of Marian
itself (exponent 2i/d), and a network is converted as transformers runs it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from model.checkpoint.weights import TokenizerParts
from model.config import ModelConfig
from model.exchange.imports.completeness import unfilled
from model.exchange.imports.huggingface.bart import (
    bart_layers,
    bart_limits,
    bart_network,
    bart_tables,
    bart_tokens,
    with_nameless,
)
from model.exchange.imports.huggingface.folder import HuggingFaceFolder, model_type
from model.exchange.imports.huggingface.weights import (
    HuggingFaceWeights,
    TensorMap,
    opened_weights,
)
from model.exchange.imports.huggingface.whole import complete, whole_model
from model.exchange.imports.imported import ImportedModel, ImportOptions
from model.exchange.imports.language_tokens import opus_directions, opus_name_pairs, opus_pairs
from model.exchange.imports.problems import NAME_DIRECTIONS
from model.nn.positions import sinusoidal_table
from model.text.languages.tags import LanguagePair

_POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
_POSITION_TOLERANCE = 1e-3
"""Of tables that were stored in 16 bits."""
_UNKNOWN_FLAGS = ("normalize_before", "normalize_embedding", "add_final_layer_norm")
_NOTES = (
    "Positions are those of transformers, whose exponent differs from Marian's own.",
    "`</s>`, `<unk>` and `>>xx<<` in a text are text; transformers takes them for tokens.",
)


class HuggingFaceMarian:
    """The importer of `MarianMTModel` folders."""

    name = "Hugging Face Marian"

    def recognises(self, source: Path) -> bool:
        """Whether config.json says so."""
        return model_type(source) == "marian"

    def read(self, source: Path, options: ImportOptions) -> ImportedModel:
        """Everything but the weights.

        Raises:
            ForeignModelError: With every problem.
        """
        folder = HuggingFaceFolder(source)
        _refuse_flags(folder)
        found = _network(folder)
        tokenizer, vocabulary, target = _tokenizer(folder)
        tokens = bart_tokens(folder, unk_id=vocabulary.get("<unk>", 0))
        _check_specials(folder, tokens.eos_id, vocabulary, target)
        if found is not None:
            _check_sizes(folder, found[0], vocabulary, target)
        pairs = _pairs(folder, sorted(vocabulary, key=vocabulary.__getitem__), options)
        limits = bart_limits(folder)
        network, tensors = complete(folder, found)
        return whole_model(
            folder,
            tensors,
            family="Marian",
            description=f"{folder.name}, converted from Hugging Face",
            network=network,
            tokens=with_nameless(tokens, target, network.output_size),
            pairs=pairs,
            limits=limits,
            tokenizer=tokenizer,
            notes=_NOTES,
        )


def _network(folder: HuggingFaceFolder) -> tuple[ModelConfig, TensorMap] | None:
    """The network and its tensors; None, and problems, where it or its files cannot be read."""
    shape = bart_network(folder, activation="gelu", scale_embedding=False)
    weights = opened_weights(folder)
    if shape is None or weights is None:
        return None
    tensors = TensorMap(weights)
    shape = replace(shape, position="sinusoidal-marian")
    network = _tables(folder, shape, weights, tensors)
    bart_layers(network, tensors)
    _check_positions(folder, network, weights, tensors)
    return network, tensors


def _refuse_flags(folder: HuggingFaceFolder) -> None:
    folder.problems += [
        f"config.json: {name} is true; only networks that are normalised after each layer are known"
        for name in _UNKNOWN_FLAGS
        if folder.config.get(name)
    ]
    if folder.setting("forced_bos_token_id") is not None:
        folder.problems.append("forced_bos_token_id is set; no network of this family has one")


def _tables(
    folder: HuggingFaceFolder,
    network: ModelConfig,
    weights: HuggingFaceWeights,
    tensors: TensorMap,
) -> ModelConfig:
    is_shared = folder.flag("share_encoder_decoder_embeddings", default=True)
    is_tied = folder.flag("tie_word_embeddings", default=True)
    if not is_shared:
        size = folder.integer("decoder_vocab_size", default=network.vocab_size)
        network = replace(network, share_embeddings=False, target_vocab_size=size)
    return bart_tables(network, weights, tensors, is_shared=is_shared, is_tied=is_tied)


def _check_positions(
    folder: HuggingFaceFolder,
    network: ModelConfig,
    weights: HuggingFaceWeights,
    tensors: TensorMap,
) -> None:
    """Tables of positions that are stored must be those that are computed."""
    for name in _POSITIONS:
        if name not in weights:
            continue
        stored = weights.read(name).float()
        kind, width = network.position, network.d_model
        expected = sinusoidal_table(kind, torch.arange(len(stored)), width)
        is_same = stored.shape == expected.shape and bool(
            torch.allclose(stored, expected, rtol=0, atol=_POSITION_TOLERANCE)
        )
        if not is_same:
            folder.problems.append(f"{name} is not the table of sinusoids that is computed")
    tensors.drop(*_POSITIONS)


def _tokenizer(
    folder: HuggingFaceFolder,
) -> tuple[TokenizerParts, Mapping[str, int], Mapping[str, int]]:
    """The files, the source's table, the target's."""
    vocabulary = folder.vocabulary("vocab.json")
    is_separate = folder.tokenizer.get("separate_vocabs") is True
    target = folder.vocabulary("target_vocab.json") if is_separate else vocabulary
    parts = TokenizerParts(
        source_pieces=folder.data("source.spm"),
        source_table=vocabulary,
        target_pieces=folder.data("target.spm"),
        target_table=target,
    )
    return parts, vocabulary, target


def _check_specials(
    folder: HuggingFaceFolder, eos_id: int, source: Mapping[str, int], target: Mapping[str, int]
) -> None:
    if source and "<unk>" not in source:
        folder.problems.append("vocab.json lacks <unk>")
    for name, table in (("vocab.json", source), ("target_vocab.json", target)):
        if table and table.get("</s>", eos_id) != eos_id:
            folder.problems.append(
                f"{name} has </s> as {table['</s>']}, config.json has eos_token_id {eos_id}"
            )


def _check_sizes(
    folder: HuggingFaceFolder,
    network: ModelConfig,
    source: Mapping[str, int],
    target: Mapping[str, int],
) -> None:
    """Tables that are there must fill the network's; what is beyond it is told with the ids."""
    if source:
        folder.problems += unfilled("vocab.json", len(source), network.vocab_size)
    if target and target is not source:
        folder.problems += unfilled("target_vocab.json", len(target), network.output_size)


def _pairs(
    folder: HuggingFaceFolder, pieces: Sequence[str], options: ImportOptions
) -> tuple[LanguagePair, ...]:
    wanted = options.pairs or _stated_pairs(folder, pieces)
    if not wanted:
        folder.problems.append(
            f"its files do not say from which language to which it translates; {NAME_DIRECTIONS}"
        )
    pairs, problems = opus_directions(pieces, wanted)
    folder.problems += problems
    return pairs


def _stated_pairs(folder: HuggingFaceFolder, pieces: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """What tokenizer_config.json says, or a name of the model."""
    stated = (
        str(folder.tokenizer.get("source_lang") or ""),
        str(folder.tokenizer.get("target_lang") or ""),
    )
    if all(stated):
        return opus_pairs(stated, pieces)
    found = (opus_name_pairs(name, pieces) for name in folder.names)
    return next(filter(None, found), ())
