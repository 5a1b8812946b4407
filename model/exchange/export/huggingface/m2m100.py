"""M2M100 and NLLB-200 as transformers has them, `M2M100ForConditionalGeneration`.

Owns which networks it expresses, its config.json, and the files of both tokenizers: which of the
two it is, the tags say.
"""

from collections.abc import Iterator, Mapping

from torch import Tensor

from model.checkpoint.manifest import Manifest
from model.checkpoint.weights import Checkpoint
from model.exchange.export.huggingface.bart import (
    BART_FIELDS,
    bart_shape,
    bart_tensors,
    shared_tables,
)
from model.exchange.export.huggingface.family import (
    TOKENIZER_CONFIG,
    Family,
    TokenizerFiles,
    fairseq_problems,
    numbering_problems,
    one_sentencepiece_model,
    special_ids,
)
from model.exchange.export.output import num_positions
from model.exchange.imports.huggingface.fsmt import SPECIALS
from model.exchange.imports.huggingface.m2m100 import (
    LANGUAGE_CODES,
    SPM_FILE,
    code_piece,
    nllb_pieces,
)
from model.exchange.imports.languages import flores_tag
from model.exchange.piece_file import read_header
from model.honoured import Condition, HonouredFields
from model.text.subwords.pieces import PieceModel

M2M100_FIELDS = HonouredFields(
    by="Hugging Face M2M100",
    fields={
        **BART_FIELDS,
        "norm_placement": ("pre",),
        "position": ("sinusoidal-m2m100",),
        "position_offset": (2,),
        "pad_id": (1,),
        "target_vocab_size": Condition(
            name="vocab_size", holds=lambda network: network.output_size == network.vocab_size
        ),
        "share_embeddings": Condition(
            name="True, or without tie_output",
            holds=lambda network: network.share_embeddings or not network.tie_output,
        ),
        "output_bias": (False,),
    },
)
"""What `M2M100ForConditionalGeneration` can be told of a network."""


def _config(manifest: Manifest) -> dict[str, object]:
    network = manifest.network
    return {
        "model_type": "m2m_100",
        "architectures": ["M2M100ForConditionalGeneration"],
        "vocab_size": network.vocab_size,
        "tie_word_embeddings": network.tie_output,
        **bart_shape(network, max_positions=num_positions(manifest)),
        **special_ids(manifest.tokens),
    }


def _tensors(checkpoint: Checkpoint) -> Iterator[tuple[str, Tensor]]:
    transformer = checkpoint.transformer
    return bart_tensors(transformer, shared_tables(transformer.config))


def m2m100_tokenizer(checkpoint: Checkpoint) -> TokenizerFiles:
    """The files of `NllbTokenizer` where the tags are FLORES' codes, else of `M2M100Tokenizer`."""
    files = TokenizerFiles(problems=fairseq_problems(checkpoint.manifest.tokens))
    model = one_sentencepiece_model(checkpoint, files)
    tags = _tags(checkpoint.manifest)
    if tags is None:
        files.problems.append(
            "pairs do not have one tag before the source and one before the target (only one each)"
        )
        return files
    if model is None:
        return files
    files.contents[SPM_FILE] = model.data
    is_nllb = all(flores_tag(tag) is not None for tag in tags)
    if is_nllb:
        header = read_header(model.data)
        files.problems += header.problems("byte pairs", has_byte_fallback=False)
    known, settings = _nllb(checkpoint, model) if is_nllb else _m2m100(checkpoint, files)
    files.problems += numbering_problems(checkpoint, known)
    first = checkpoint.manifest.pairs[0]
    languages = {"src_lang": first.source_prefix[0], "tgt_lang": first.target_prefix[0]}
    if not is_nllb:
        languages = {side: tag.strip("_") for side, tag in languages.items()}
    files.add_json(TOKENIZER_CONFIG, {**settings, **languages})
    return files


def _tags(manifest: Manifest) -> set[str] | None:
    """All tags; None where a direction has none, or more than one a side."""
    prefixes = {(*pair.source_start, "|", *pair.target_prefix) for pair in manifest.pairs}
    is_usual = all(len(prefix) == 3 and prefix[1] == "|" for prefix in prefixes)
    return {tag for prefix in prefixes for tag in prefix} - {"|"} if is_usual else None


def _nllb(checkpoint: Checkpoint, model: PieceModel) -> tuple[dict[int, str], dict[str, object]]:
    """Pieces by their ids, and settings that state the tags, which stand behind the pieces."""
    own = {index: piece for piece, index in nllb_pieces(model).items()}
    named = checkpoint.tokenizer.source_pieces()
    tags = {
        index: named[index]
        for index in range(len(own), checkpoint.manifest.network.vocab_size)
        if flores_tag(named.get(index, "")) is not None
    }
    is_whole = list(tags) == list(range(len(own), len(own) + len(tags)))
    known = own | (tags if is_whole else {})
    added = {**tags, len(own) + len(tags): "<mask>"}
    settings: dict[str, object] = {
        "tokenizer_class": "NllbTokenizer",
        "added_tokens_decoder": {str(index): _special(tag) for index, tag in added.items()},
        "additional_special_tokens": list(tags.values()),
        "model_max_length": checkpoint.manifest.limits.max_source_length,
    }
    return known, settings


def _special(content: str) -> Mapping[str, object]:
    flags = ("lstrip", "normalized", "rstrip", "single_word")
    return {"content": content, **dict.fromkeys(flags, False), "special": True}


def _m2m100(
    checkpoint: Checkpoint, files: TokenizerFiles
) -> tuple[dict[int, str], dict[str, object]]:
    """Pieces by their ids, and settings; the table ends where the tags begin."""
    named = checkpoint.tokenizer.source_pieces()
    ids = {piece: index for index, piece in named.items()}
    codes = next((name for name, known in LANGUAGE_CODES.items() if _are_in(known, ids)), "m2m100")
    tags = [code_piece(code) for code in LANGUAGE_CODES[codes].split()]
    size = ids.get(tags[0], 0)
    table = {**SPECIALS, **{piece: index for index, piece in named.items() if index < size}}
    if len(table) != size:
        files.problems.append(
            f"the source vocabulary has {len(table)} pieces before the first tag, whose id is"
            f" {size} (only one piece an id)"
        )
    files.add_json("vocab.json", table)
    known = {index: piece for piece, index in table.items()}
    known |= {size + number: tag for number, tag in enumerate(tags)}
    settings: dict[str, object] = {
        "tokenizer_class": "M2M100Tokenizer",
        "language_codes": codes,
        "additional_special_tokens": tags,
        "num_madeup_words": max(0, checkpoint.manifest.network.vocab_size - len(known)),
        "model_max_length": checkpoint.manifest.limits.max_source_length,
    }
    return known, settings


def _are_in(codes: str, ids: Mapping[str, int]) -> bool:
    """Whether there is a tag of every code, one behind the other."""
    found = [ids.get(code_piece(code), -1) for code in codes.split()]
    return found[0] > 0 and found == list(range(found[0], found[0] + len(found)))


M2M100 = Family(
    fields=M2M100_FIELDS,
    config=_config,
    tensors=_tensors,
    tokenizer=m2m100_tokenizer,
)
"""Pre-norm networks with sinusoids from position 2."""
