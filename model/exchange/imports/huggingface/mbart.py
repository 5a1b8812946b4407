"""mBART-50 (Tang et al. 2020) in Hugging Face's layout.

Owns what its config.json means, its numbering of pieces and language tags, and where its tensors
go. Its layers are `model.exchange.imports.huggingface.bart`'.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

from model.checkpoint.weights import TokenizerParts
from model.config import Activation, LengthLimits, ModelConfig, SpecialTokens
from model.exchange.imports.completeness import unfilled
from model.exchange.imports.huggingface.bart import (
    DECODER_TABLE,
    ENCODER_TABLE,
    FINAL_BIAS,
    HEAD,
    SHARED,
    bart_layers,
    equal_heads,
)
from model.exchange.imports.huggingface.folder import (
    MAX_TRAINED_LENGTH,
    HuggingFaceFolder,
    model_type,
)
from model.exchange.imports.huggingface.forced import Directions, forced_language, into_forced
from model.exchange.imports.huggingface.weights import (
    HuggingFaceWeights,
    TensorMap,
    opened_weights,
)
from model.exchange.imports.huggingface.whole import checked_tensors, whole_model
from model.exchange.imports.imported import ImportedModel, ImportOptions
from model.exchange.imports.language_tokens import FAMILIES, MBART_CODES, chosen_directions
from model.text.subwords.pieces import PieceModel

SPM_FILE = "sentencepiece.bpe.model"
_NUM_FIRST_CODES = 25
"""How many of them the first mBART (cc25) has."""
_BOS, _PAD, _EOS, _UNK = range(4)
_NUM_OWN_SPECIALS = 3
"""SentencePiece's own <unk>, <s> and </s>, in whose place those four are."""
OFFSET = 2
ACTIVATIONS: Mapping[str, Activation] = {"gelu": "gelu", "relu": "relu", "gelu_new": "gelu-tanh"}
POSITIONS: Mapping[str, str] = {
    "source_positions.vectors.weight": "model.encoder.embed_positions.weight",
    "target_positions.vectors.weight": "model.decoder.embed_positions.weight",
}
"""The learned tables, by our names."""
_TABLES = (SHARED, ENCODER_TABLE, DECODER_TABLE)


class MBartImporter:
    """The networks from, to and between 50 languages, and what was fine-tuned of them."""

    name = "Hugging Face mBART-50"

    def recognises(self, source: Path) -> bool:
        """Whether config.json says that it is mBART."""
        return model_type(source) == "mbart"

    def read(self, source: Path, options: ImportOptions) -> ImportedModel:
        """The network, without its weights.

        Raises:
            ForeignModelError: With every problem.
        """
        folder = HuggingFaceFolder(source)
        spm, pieces = folder.pieces(SPM_FILE)
        weights = opened_weights(folder)
        has_output_bias = weights is not None and weights.is_more_than_zeros(FINAL_BIAS)
        network = _network(folder, has_output_bias=has_output_bias)
        if pieces is not None:
            _check_vocabulary(folder, len(pieces))
        num_pieces = 0 if pieces is None else len(pieces)
        languages, pairs, notes = _directions(folder, options, num_pieces)
        network, tensors = checked_tensors(folder, weights, network, _tensors)
        assert pieces is not None
        table = mbart_table(pieces, {code for pair in pairs for code in pair.source_prefix})
        target_table = mbart_table(pieces, {code for pair in pairs for code in pair.target_prefix})
        length = min(MAX_TRAINED_LENGTH, network.max_positions - OFFSET - 1)
        return whole_model(
            folder,
            tensors,
            family="mbart",
            description=f"mBART-50 in {len(pairs)} directions",
            network=network,
            tokens=_tokens(network, target_table),
            pairs=pairs,
            limits=LengthLimits(max_source_length=length, max_target_length=length),
            tokenizer=TokenizerParts(
                source_pieces=spm, source_table=table, target_table=target_table
            ),
            notes=notes,
            languages=languages,
        )


def _network(folder: HuggingFaceFolder, *, has_output_bias: bool) -> ModelConfig | None:
    folder.only("static_position_embeddings", False)
    for name in ("normalize_before", "normalize_embedding", "add_final_layer_norm"):
        folder.only(name, True)
    for name, index in (("pad_token_id", _PAD), ("eos_token_id", _EOS)):
        folder.only(name, index)
    folder.only_start(_EOS)
    return folder.described(
        lambda: ModelConfig(
            vocab_size=folder.size("vocab_size"),
            d_model=folder.size("d_model", 1024),
            num_heads=equal_heads(folder, 16),
            d_ff=folder.size("encoder_ffn_dim", 4096),
            decoder_d_ff=folder.size("decoder_ffn_dim", 4096),
            num_encoder_layers=folder.layer_count("encoder_layers", 12),
            num_decoder_layers=folder.layer_count("decoder_layers", 12),
            activation=folder.choice("activation_function", ACTIVATIONS, "gelu"),
            norm_placement="pre",
            embedding_norm=True,
            position="learned",
            position_offset=OFFSET,
            max_positions=folder.size("max_position_embeddings", 1024) + OFFSET,
            scale_embedding=folder.flag("scale_embedding", default=False),
            tie_output=folder.flag("tie_word_embeddings", default=True),
            output_bias=has_output_bias,
            pad_id=_PAD,
        ),
    )


def _check_vocabulary(folder: HuggingFaceFolder, num_pieces: int) -> None:
    """Refuse the first mBART, and what has no row for every language tag."""
    rows, tags = folder.integer("vocab_size"), num_pieces + 1
    if rows == tags + _NUM_FIRST_CODES + 1:
        folder.problems.append(
            "is the first mBART (cc25), whose language tags stand behind sentences; only mBART-50"
            " can be converted"
        )
    elif rows < tags + len(MBART_CODES):
        folder.problems.append(
            f"config.json: vocab_size is {rows}; {num_pieces} pieces and {len(MBART_CODES)}"
            f" language tags need {tags + len(MBART_CODES)}"
        )
    folder.problems += unfilled(f"{SPM_FILE} with its tags", tags + len(MBART_CODES), rows)


def _directions(folder: HuggingFaceFolder, options: ImportOptions, num_pieces: int) -> Directions:
    """Those asked for, or all that the network was trained for."""
    family = FAMILIES["mbart-50"]
    languages, pairs, problems = chosen_directions(
        family.languages(MBART_CODES), options.pairs, names=folder.names
    )
    folder.problems += problems
    if options.pairs:
        return languages, pairs, ()
    tagged = (
        (num_pieces + 1 + MBART_CODES.index(code), language)
        for language in family.languages(MBART_CODES)
        for code in language.target_prefix
    )
    return into_forced(folder, languages, pairs, forced_language(folder, tagged))


def mbart_table(pieces: PieceModel, codes: Collection[str]) -> dict[str, int]:
    """Fairseq's numbering: one above SentencePiece's, then the tags, of which one side has some."""
    size = len(pieces)
    table = {pieces.own_piece(index): index + 1 for index in range(_NUM_OWN_SPECIALS, size)}
    tags = {code: size + 1 + number for number, code in enumerate(MBART_CODES) if code in codes}
    return table | tags


def _tokens(network: ModelConfig, table: Mapping[str, int]) -> SpecialTokens:
    """Everything that has no piece is never generated."""
    named = {*table.values(), _EOS, _UNK}
    return SpecialTokens(
        pad_id=_PAD,
        eos_id=_EOS,
        unk_id=_UNK,
        start_id=_EOS,
        suppressed_ids=tuple(index for index in range(network.vocab_size) if index not in named),
    )


def _tensors(weights: HuggingFaceWeights, network: ModelConfig) -> TensorMap:
    tensors = TensorMap(weights)
    table = weights.first_of(_TABLES)
    tensors.take("source_embedding.weight", table)
    tensors.drop_copies(table, *_TABLES)
    if network.tie_output:
        tensors.drop_copies(table, HEAD)
    else:
        tensors.take("output_projection.weight", HEAD)
    tensors.drop(FINAL_BIAS)
    if network.output_bias:
        tensors.take("output_bias", FINAL_BIAS, shape=(network.vocab_size,))
    for ours, theirs in POSITIONS.items():
        tensors.take(ours, theirs)
    bart_layers(network, tensors)
    return tensors
