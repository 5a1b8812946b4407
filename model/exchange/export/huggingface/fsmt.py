"""fairseq's WMT19 networks as transformers has them, `FSMTForConditionalGeneration`.

Owns which networks it expresses, its config.json, its tables, and the files of `FSMTTokenizer`,
which cuts text by Moses' rules and merges.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from model.checkpoint.manifest import Manifest
from model.checkpoint.weights import Checkpoint
from model.config import ModelConfig
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
    fairseq_problems,
    special_ids,
)
from model.exchange.export.output import num_positions
from model.exchange.export.vocabulary import name_problems
from model.exchange.imports.huggingface.bart import DECODER_TABLE, ENCODER_TABLE
from model.exchange.imports.huggingface.fsmt import (
    ACTIVATIONS,
    MERGES,
    OFFSET,
    OUTPUT,
    SINUSOIDS,
    SOURCE_VOCABULARY,
    SPECIALS,
    TARGET_VOCABULARY,
)
from model.honoured import HonouredFields
from model.nn.positions import sinusoidal_table
from model.text.subwords.moses import MosesBpe, MosesPieces

FSMT_FIELDS = HonouredFields(
    by="Hugging Face FSMT",
    fields={
        **BART_FIELDS,
        "activation": tuple(ACTIVATIONS.values()),
        "position": ("sinusoidal-m2m100",),
        "position_offset": (OFFSET,),
        "pad_id": (1,),
        "output_bias": (False,),
    },
)
"""What `FSMTForConditionalGeneration` can be told of a network."""


def _config(manifest: Manifest) -> dict[str, object]:
    network = manifest.network
    return {
        "model_type": "fsmt",
        "architectures": ["FSMTForConditionalGeneration"],
        "langs": _languages(manifest.moses),
        "src_vocab_size": network.vocab_size,
        "tgt_vocab_size": network.output_size,
        "tie_word_embeddings": one_table(network),
        **bart_shape(network, max_positions=num_positions(manifest)),
        **special_ids(manifest.tokens),
    }


@torch.no_grad()
def _tensors(checkpoint: Checkpoint) -> Iterator[tuple[str, Tensor]]:
    """Sinusoids too: transformers computes them, and warns of their absence."""
    transformer = checkpoint.transformer
    yield from bart_tensors(transformer, _tables(transformer.config))
    rows = num_positions(checkpoint.manifest)
    for name in SINUSOIDS:
        places = torch.arange(OFFSET, OFFSET + rows)
        table = sinusoidal_table("sinusoidal-m2m100", places, transformer.config.d_model)
        unused = torch.zeros(OFFSET, transformer.config.d_model)
        yield name, torch.cat((unused, table))


def _tables(network: ModelConfig) -> dict[str, tuple[str, ...]]:
    """Either all three are one table, or each is stated."""
    if one_table(network):
        return {"source_embedding.weight": (DECODER_TABLE,)}
    outputs = (OUTPUT,) if network.tie_output else ()
    head = {} if network.tie_output else {"output_projection.weight": (OUTPUT,)}
    if network.share_embeddings:
        return {"source_embedding.weight": (ENCODER_TABLE, DECODER_TABLE), **head}
    return {
        "source_embedding.weight": (ENCODER_TABLE,),
        "target_embedding.weight": (DECODER_TABLE, *outputs),
        **head,
    }


def fsmt_tokenizer(checkpoint: Checkpoint) -> TokenizerFiles:
    """The files of `FSMTTokenizer`."""
    manifest, tokenizer = checkpoint.manifest, checkpoint.tokenizer
    files = TokenizerFiles(problems=fairseq_problems(manifest.tokens))
    source, target = tokenizer.models
    if not isinstance(source, MosesPieces) or not isinstance(target, MosesPieces):
        files.problems.append("the tokenizer is not Moses' words and merges (only those)")
        return files
    files.problems += _rule_problems(manifest)
    if source.merges.data != target.merges.data:
        files.problems.append("source and target have merges each (only one file)")
    if any(pair.source_start or pair.target_prefix for pair in manifest.pairs):
        files.problems.append("pairs have tags (only pairs without)")
    sides = {"source": tokenizer.source_pieces(), "target": tokenizer.target_pieces()}
    for side, pieces in sides.items():
        files.problems += name_problems(side, pieces, manifest.tokens)
    files.contents[MERGES] = source.merges.data
    for name, pieces in zip((SOURCE_VOCABULARY, TARGET_VOCABULARY), sides.values(), strict=True):
        files.add_json(name, {**SPECIALS, **{piece: index for index, piece in pieces.items()}})
    settings = {
        "tokenizer_class": "FSMTTokenizer",
        "langs": _languages(manifest.moses),
        "do_lower_case": False,
        "model_max_length": manifest.limits.max_source_length,
    }
    files.add_json(TOKENIZER_CONFIG, settings)
    return files


def _languages(rules: MosesBpe | None) -> list[str]:
    return [] if rules is None else [rules.source_language, rules.target_language]


def _rule_problems(manifest: Manifest) -> list[str]:
    """Rules that the tokenizer does not have."""
    rules = manifest.moses
    if rules is None:
        return []
    known = {
        "marks": "word-end",
        "replaces_punctuation": True,
        "removes_control_characters": True,
        "splits_dashes": True,
    }
    return [
        f"moses.{name} is {getattr(rules, name)!r} (only {value!r})"
        for name, value in known.items()
        if getattr(rules, name) != value
    ]


FSMT = Family(fields=FSMT_FIELDS, config=_config, tensors=_tensors, tokenizer=fsmt_tokenizer)
"""Post-norm networks with sinusoids from position 2, over Moses' words."""
