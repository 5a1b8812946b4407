"""fairseq's WMT19 networks (Ng et al. 2019) in Hugging Face's layout, which is called FSMT.

Owns what its config.json means, its vocabularies and merges, and where its tensors go. Its layers
are `model.exchange.imports.huggingface.bart`', its text `model.text.subwords.moses`'.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from model.checkpoint.weights import TokenizerParts
from model.config import Activation, LengthLimits, ModelConfig, SpecialTokens
from model.errors import ConfigError, shown
from model.exchange.imports.completeness import unfilled
from model.exchange.imports.huggingface.bart import (
    DECODER_TABLE,
    ENCODER_TABLE,
    bart_layers,
    equal_heads,
)
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
from model.exchange.imports.languages import language_tag, nearest_pairs
from model.text.languages.tags import LanguagePair
from model.text.subwords.bpe import MAX_MERGES_BYTES, Merges
from model.text.subwords.moses import MosesBpe

SOURCE_VOCABULARY = "vocab-src.json"
TARGET_VOCABULARY = "vocab-tgt.json"
MERGES = "merges.txt"

_BOS, _PAD, _EOS, _UNK = range(4)
SPECIALS: Mapping[str, int] = {"<s>": _BOS, "<pad>": _PAD, "</s>": _EOS, "<unk>": _UNK}
OFFSET = 2
ACTIVATIONS: Mapping[str, Activation] = {"relu": "relu", "gelu": "gelu"}
OUTPUT = "model.decoder.output_projection.weight"
SINUSOIDS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")


class FsmtImporter:
    """The WMT19 networks between English, German and Russian, and others of their kind."""

    name = "Hugging Face FSMT"

    def recognises(self, source: Path) -> bool:
        """Whether config.json says that it is FSMT."""
        return model_type(source) == "fsmt"

    def read(self, source: Path, options: ImportOptions) -> ImportedModel:
        """The network, without its weights.

        Raises:
            ForeignModelError: With every problem.
        """
        folder = HuggingFaceFolder(source)
        tables = (_vocabulary(folder, SOURCE_VOCABULARY), _vocabulary(folder, TARGET_VOCABULARY))
        merges, rules = _merges(folder), _rules(folder)
        pair = _pair(folder, rules, options)
        weights = opened_weights(folder)
        network = _network(folder, weights, is_joint=tables[0] == tables[1])
        if network is not None:
            _check_sizes(folder, tables, network)
        network, tensors = checked_tensors(folder, weights, network, _tensors)
        assert rules is not None
        assert pair is not None
        return whole_model(
            folder,
            tensors,
            family="fsmt",
            description=f"{folder.name}, from {pair.source} to {pair.target}",
            network=network,
            tokens=_tokens(network, tables[1]),
            pairs=(pair,),
            limits=LengthLimits(
                max_source_length=MAX_TRAINED_LENGTH, max_target_length=MAX_TRAINED_LENGTH
            ),
            tokenizer=TokenizerParts(
                source_pieces=merges, source_table=tables[0], target_table=tables[1], moses=rules
            ),
        )


def _vocabulary(folder: HuggingFaceFolder, name: str) -> dict[str, int]:
    """A table; problems where the special tokens are not where fairseq has them."""
    num_problems = len(folder.problems)
    table = folder.vocabulary(name)
    if len(folder.problems) == num_problems:
        folder.problems += [
            f"{name} has {piece} as {table.get(piece)}; it must be {index}"
            for piece, index in SPECIALS.items()
            if table.get(piece) != index
        ]
    return table


def _check_sizes(
    folder: HuggingFaceFolder, tables: Sequence[Mapping[str, int]], network: ModelConfig
) -> None:
    """Tables that are there must fill the network's; what is beyond it is told with the ids."""
    names = (SOURCE_VOCABULARY, TARGET_VOCABULARY)
    sizes = (network.vocab_size, network.output_size)
    for name, table, size in zip(names, tables, sizes, strict=True):
        folder.problems += unfilled(name, len(table), size) if table else ()


def _merges(folder: HuggingFaceFolder) -> bytes:
    num_problems = len(folder.problems)
    data = folder.data(MERGES, max_bytes=MAX_MERGES_BYTES)
    if len(folder.problems) == num_problems:
        try:
            Merges(data, "word-end")
        except ConfigError as error:
            folder.problems.append(f"{MERGES} {error}")
    return data


def _rules(folder: HuggingFaceFolder) -> MosesBpe | None:
    """How its text becomes pieces, which its two languages decide."""
    if folder.tokenizer.get("do_lower_case", False) is not False:
        folder.problems.append("tokenizer_config.json: do_lower_case is true; only false is known")
    langs = folder.config.get("langs", folder.tokenizer.get("langs"))
    if not isinstance(langs, list) or len(langs) != 2:
        folder.problems.append(f"config.json: langs is {shown(langs)}; it must be two languages")
        return None
    try:
        return MosesBpe(
            source_language=str(langs[0]), target_language=str(langs[1]), marks="word-end"
        )
    except ConfigError as error:
        folder.problems.append(f"config.json: langs: {error}")
        return None


def _pair(
    folder: HuggingFaceFolder, rules: MosesBpe | None, options: ImportOptions
) -> LanguagePair | None:
    if rules is None:
        return None
    tags = [language_tag(code) for code in (rules.source_language, rules.target_language)]
    if tags[0] is None or tags[1] is None:
        folder.problems.append("config.json: langs are no languages")
        return None
    found = (tags[0], tags[1])
    folder.problems += [
        f"translates from {found[0]} to {found[1]}, not from {source} to {target}"
        for source, target in nearest_pairs(options.pairs, found[:1], found[1:])
        if (source, target) != found
    ]
    return LanguagePair(source=found[0], target=found[1])


def _network(
    folder: HuggingFaceFolder, weights: HuggingFaceWeights | None, *, is_joint: bool
) -> ModelConfig | None:
    for name, index in (("pad_token_id", _PAD), ("eos_token_id", _EOS)):
        folder.only(name, index)
    folder.only_start(_EOS)
    sizes = (folder.size("src_vocab_size"), folder.size("tgt_vocab_size"))
    is_tied = weights is None or _are_same(weights, OUTPUT, DECODER_TABLE)
    is_shared = (
        is_joint
        and sizes[0] == sizes[1]
        and weights is not None
        and _are_same(weights, ENCODER_TABLE, DECODER_TABLE)
    )
    return folder.described(
        lambda: ModelConfig(
            vocab_size=sizes[0],
            target_vocab_size=None if is_shared else sizes[1],
            d_model=folder.size("d_model", 1024),
            num_heads=equal_heads(folder, 16),
            d_ff=folder.size("encoder_ffn_dim", 4096),
            decoder_d_ff=folder.size("decoder_ffn_dim", 4096),
            num_encoder_layers=folder.layer_count("encoder_layers", 12),
            num_decoder_layers=folder.layer_count("decoder_layers", 12),
            activation=folder.choice("activation_function", ACTIVATIONS, "relu"),
            position="sinusoidal-m2m100",
            position_offset=OFFSET,
            scale_embedding=folder.flag("scale_embedding", default=True),
            share_embeddings=is_shared,
            tie_output=is_tied,
            output_bias=False,
            pad_id=_PAD,
        ),
    )


def _are_same(weights: HuggingFaceWeights, name: str, other: str) -> bool:
    """Whether a tensor is another one, or is left out because it is."""
    if name not in weights or other not in weights:
        return True
    return weights.same(name, other)


def _tokens(network: ModelConfig, table: Mapping[str, int]) -> SpecialTokens:
    """Padding and what begins sentences are never generated, nor is a row without a piece."""
    named = set(table.values()) - {_BOS, _PAD}
    return SpecialTokens(
        pad_id=_PAD,
        eos_id=_EOS,
        unk_id=_UNK,
        start_id=_EOS,
        suppressed_ids=tuple(index for index in range(network.output_size) if index not in named),
    )


def _tensors(weights: HuggingFaceWeights, network: ModelConfig) -> TensorMap:
    """Tables that are left out of a file are those that others are tied with."""
    tensors = TensorMap(weights)
    source = weights.first_of((ENCODER_TABLE, DECODER_TABLE, OUTPUT))
    tensors.take("source_embedding.weight", source)
    if network.share_embeddings:
        tensors.drop(DECODER_TABLE)
    else:
        target = weights.first_of((DECODER_TABLE, OUTPUT, ENCODER_TABLE))
        tensors.take("target_embedding.weight", target)
    if network.tie_output:
        tensors.drop(OUTPUT)
    else:
        tensors.take("output_projection.weight", OUTPUT)
    tensors.drop(*SINUSOIDS)
    bart_layers(network, tensors)
    return tensors
