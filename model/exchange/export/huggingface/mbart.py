"""mBART-50 as transformers has it, `MBartForConditionalGeneration`.

Owns which networks it expresses, its config.json, its position tables, and the files of
`MBart50Tokenizer`, whose tags are fixed.
"""

from collections.abc import Iterator

import torch
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
from model.exchange.imports.huggingface.bart import FINAL_BIAS
from model.exchange.imports.huggingface.mbart import (
    ACTIVATIONS,
    OFFSET,
    POSITIONS,
    SPM_FILE,
    mbart_table,
)
from model.exchange.imports.language_tokens import MBART_CODES
from model.exchange.piece_file import read_header
from model.honoured import Condition, HonouredFields

MBART_FIELDS = HonouredFields(
    by="Hugging Face mBART",
    fields={
        **BART_FIELDS,
        "activation": tuple(dict.fromkeys(ACTIVATIONS.values())),
        "norm_placement": ("pre",),
        "embedding_norm": (True,),
        "position": ("learned",),
        "position_offset": (OFFSET,),
        "max_positions": Condition(
            name=f"more than {OFFSET}", holds=lambda network: network.max_positions > OFFSET
        ),
        "pad_id": (1,),
        "share_embeddings": (True,),
    },
)
"""What `MBartForConditionalGeneration` can be told of a network."""


def _config(manifest: Manifest) -> dict[str, object]:
    network = manifest.network
    return {
        "model_type": "mbart",
        "architectures": ["MBartForConditionalGeneration"],
        "vocab_size": network.vocab_size,
        "tie_word_embeddings": network.tie_output,
        "normalize_before": True,
        "normalize_embedding": True,
        "add_final_layer_norm": True,
        "static_position_embeddings": False,
        **bart_shape(network, max_positions=network.max_positions - OFFSET),
        **special_ids(manifest.tokens),
    }


@torch.no_grad()
def _tensors(checkpoint: Checkpoint) -> Iterator[tuple[str, Tensor]]:
    transformer = checkpoint.transformer
    network, bias = transformer.config, transformer.output_bias
    positions = {ours: (theirs,) for ours, theirs in POSITIONS.items()}
    yield from bart_tensors(transformer, shared_tables(network) | positions)
    yield FINAL_BIAS, torch.zeros(1, network.vocab_size) if bias is None else bias.float()[None]


def mbart_tokenizer(checkpoint: Checkpoint) -> TokenizerFiles:
    """The files of `MBart50Tokenizer`."""
    manifest = checkpoint.manifest
    files = TokenizerFiles(problems=fairseq_problems(manifest.tokens))
    model = one_sentencepiece_model(checkpoint, files)
    tags = {(*pair.source_start, "|", *pair.target_prefix) for pair in manifest.pairs}
    if any(len(tag) != 3 or not {tag[0], tag[2]} <= set(MBART_CODES) for tag in tags):
        files.problems.append(
            "pairs do not have one of mBART-50's tags before the source and one before the target"
        )
        return files
    if model is None:
        return files
    known = {index: piece for piece, index in mbart_table(model, MBART_CODES).items()}
    files.problems += numbering_problems(checkpoint, {0: "<s>", **known})
    files.problems += read_header(model.data).problems("unigrams", has_byte_fallback=False)
    files.contents[SPM_FILE] = model.data
    first = manifest.pairs[0]
    settings = {
        "tokenizer_class": "MBart50Tokenizer",
        "src_lang": first.source_prefix[0],
        "tgt_lang": first.target_prefix[0],
        "model_max_length": manifest.limits.max_source_length,
    }
    files.add_json(TOKENIZER_CONFIG, settings)
    return files


MBART = Family(fields=MBART_FIELDS, config=_config, tensors=_tensors, tokenizer=mbart_tokenizer)
"""Pre-norm networks with learned positions and a norm of the embeddings."""
