"""Checkpoints as OpenNMT-py saves them, of random networks, in the forms of its versions."""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from ctranslate2.converters import OpenNMTPyConverter
from torch import Tensor

from model.nn.positions import sinusoidal_table
from support.ctranslate2_models import opennmt_pieces
from support.tiny_checkpoint import tiny_spm

WIDTH, INNER = 32, 48
Parts = dict[str, Any]


def random_parts(*, is_shared: bool = True, is_gated: bool = False, is_old: bool = False) -> Parts:
    """What `torch.save` is given by OpenNMT-py: a Transformer of two layers a side."""
    generator = torch.Generator().manual_seed(6)
    weight_name, bias_name = ("a_2", "b_2") if is_old else ("weight", "bias")
    pieces = opennmt_pieces()
    model: dict[str, Tensor] = {}

    def values(*shape: int, width: float = 0.3) -> Tensor:
        return torch.randn(shape, generator=generator) * width

    def linear(name: str, outputs: int, inputs: int) -> None:
        model[f"{name}.weight"] = values(outputs, inputs, width=2.4 / inputs**0.5)
        model[f"{name}.bias"] = values(outputs)

    def norm(name: str) -> None:
        model[f"{name}.{weight_name}"] = 1 + values(WIDTH)
        model[f"{name}.{bias_name}"] = values(WIDTH)

    def attention(name: str) -> None:
        for part in ("linear_query", "linear_keys", "linear_values", "final_linear"):
            linear(f"{name}.{part}", WIDTH, WIDTH)

    def feed_forward(name: str) -> None:
        norm(f"{name}.layer_norm")
        linear(f"{name}.w_1", INNER, WIDTH)
        linear(f"{name}.w_2", WIDTH, INNER)
        if is_gated:
            linear(f"{name}.w_3", INNER, WIDTH)

    table = values(len(pieces), WIDTH, width=0.35)
    positions = sinusoidal_table("sinusoidal-interleaved", torch.arange(300), WIDTH)[:, None]
    for side in ("encoder", "decoder"):
        embeddings = f"{side}.embeddings.make_embedding"
        model[f"{embeddings}.emb_luts.0.weight"] = table if is_shared else values(*table.shape)
        model[f"{embeddings}.pe.pe"] = positions
        norm(f"{side}.layer_norm")
    for number in range(2):
        layer = f"encoder.transformer.{number}"
        norm(f"{layer}.layer_norm")
        attention(f"{layer}.self_attn")
        feed_forward(f"{layer}.feed_forward")
        layer = f"decoder.transformer_layers.{number}"
        norm(f"{layer}.layer_norm_1")
        norm(f"{layer}.layer_norm_2")
        attention(f"{layer}.self_attn")
        attention(f"{layer}.context_attn")
        feed_forward(f"{layer}.feed_forward")
    projection = table.clone() if is_shared else values(*table.shape)
    prefix = "0." if is_old else ""
    return {
        "model": model,
        "generator": {f"{prefix}weight": projection, f"{prefix}bias": values(len(pieces))},
        "vocab": {"src": pieces, "tgt": pieces, "src_feats": {}, "data_task": "seq2seq"},
        "opt": argparse.Namespace(
            encoder_type="transformer",
            decoder_type="transformer",
            enc_layers=2,
            dec_layers=2,
            heads=4,
            position_encoding=True,
            max_relative_positions=0,
            self_attn_type="scaled-dot",
            pos_ffn_activation_fn="silu" if is_gated else "relu",
            save_model="run/model",
        ),
        "optim": {"state": {}, "training_step": 100},
    }


def saved(folder: Path, parts: Parts, *, is_archive: bool = True) -> Path:
    """A folder with the checkpoint and its SentencePiece file; before PyTorch 1.6 no archive."""
    folder.mkdir(exist_ok=True)
    path = folder / "model_step_100.pt"
    torch.save(parts, path, _use_new_zipfile_serialization=is_archive)
    (folder / "sentencepiece.model").write_bytes(tiny_spm())
    return path


class Pickled:
    """What the classes below are made of."""

    def __init__(self, **values: object) -> None:
        vars(self).update(values)


@contextmanager
def old_libraries() -> Iterator[dict[str, Any]]:
    """Classes and functions with the names that torchtext and OpenNMT-py 1 pickle."""
    made: dict[str, Any] = {}
    names = {
        "torchtext.vocab": "Vocab",
        "torchtext.data.field": "Field",
        "onmt.inputters.text_dataset": "TextMultiField",
    }
    modules = {
        ".".join(name.split(".")[:size]): ModuleType(".".join(name.split(".")[:size]))
        for name in names
        for size in range(1, name.count(".") + 2)
    }
    for module, name in names.items():
        made[name] = type(name, (Pickled,), {"__module__": module})
        setattr(modules[module], name, made[name])

    def tokenize(text: str, **_options: object) -> list[str]:
        raise AssertionError("a pickle ran code")

    tokenize.__module__, tokenize.__qualname__ = "onmt.inputters.text_dataset", "tokenize"
    made["tokenize"] = tokenize
    modules["onmt.inputters.text_dataset"].tokenize = tokenize  # type: ignore[attr-defined]
    with patch.dict(sys.modules, modules):
        yield made


def with_old_vocabulary(parts: Parts, made: dict[str, Any], *, version: int) -> Parts:
    """The same checkpoint with a vocabulary as OpenNMT-py 0 or 1 keeps it."""
    pieces = parts["vocab"]["src"]
    vocabulary = made["Vocab"](
        itos=pieces,
        stoi=defaultdict(made["tokenize"], {piece: index for index, piece in enumerate(pieces)}),
        freqs=Counter(pieces),
        vectors=None,
    )
    field = made["Field"](
        vocab=vocabulary,
        tokenize=partial(made["tokenize"], layer=0, truncate=None),
        dtype=torch.long,
        lower=False,
    )
    multi = made["TextMultiField"](fields=[("src", field)], is_target=False)
    of_version: dict[int, object] = {
        0: [("src", vocabulary), ("tgt", vocabulary)],
        1: {"src": multi, "tgt": multi, "indices": made["Field"](dtype=torch.long)},
    }
    masks = {
        f"decoder.transformer_layers.{number}.mask": torch.ones(1, 5, 5, dtype=torch.uint8)
        for number in range(2)
    }
    return {**parts, "vocab": of_version[version], "model": {**parts["model"], **masks}}


def converted_checkpoint(path: Path, directory: Path) -> Path:
    """The directory that CTranslate2's own converter makes of a checkpoint."""
    OpenNMTPyConverter(str(path), unsafe_deserialization=True).convert(str(directory))
    config = json.loads((directory / "config.json").read_text())
    config["layer_norm_epsilon"] = 1e-6  # OpenNMT-py's own, which the conversion forgets
    (directory / "config.json").write_text(json.dumps(config))
    return directory
