"""CTranslate2 directories of random networks, made with the engine's own specification."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import torch
from ctranslate2.specs import TransformerSpec, common_spec, model_spec

from model.nn.positions import sinusoidal_table
from model.text.subwords.pieces import PieceModel
from support.tiny_checkpoint import generated_pairs, tiny_spm

ROOT = Path(__file__).parents[2]
SPECIALS = ("<unk>", "<blank>", "<s>", "</s>")
WIDTH, INNER = 32, 48


def opennmt_pieces() -> list[str]:
    """OpenNMT's special tokens and the pieces of the tiny SentencePiece file, in another order."""
    pieces = sorted(set(PieceModel(tiny_spm()).table()).difference({"<pad>", "</s>", "<unk>"}))
    return [*SPECIALS, *pieces]


def real_looking_sentences(count: int = 500) -> list[str]:
    """Sentences written for this project, and generated ones."""
    written = (ROOT / "tests/support/sentences.en").read_text(encoding="utf-8").splitlines()
    generated = [english for english, _ in generated_pairs(count, seed=23)]
    return (written + generated)[:count]


def translations_of(package: Path, sentences: Sequence[str]) -> list[str]:
    """What the engine and SentencePiece make of an unpacked Argos package's own files.

    Bytes that are no text, as a random network writes them, are left out.
    """
    pieces = PieceModel((package / "sentencepiece.model").read_bytes())
    engine = ctranslate2.Translator(str(package / "model"), compute_type="float32", intra_threads=1)
    found = engine.translate_batch(
        [pieces.pieces(sentence) for sentence in sentences],
        beam_size=4,
        length_penalty=1.0,
        min_decoding_length=0,
    )
    texts = [pieces.text(each.hypotheses[0]) for each in found]
    return [text.replace("\ufffd", "").strip() for text in texts]


@dataclass(frozen=True, kw_only=True)
class RandomSpec:
    """What a random network of the engine's specification is like; by default as Argos' are."""

    source: Sequence[str] = ()
    target: Sequence[str] = ()
    num_layers: tuple[int, int] = (2, 2)
    pre_norm: bool = True
    activation: common_spec.Activation = common_spec.Activation.RELU
    is_gated: bool = False
    is_rms: bool = False
    has_embedding_norm: bool = False
    has_biases: bool = True
    is_shared: bool = True
    is_tied: bool = True
    positions: str | None = "sinusoidal-interleaved"
    scale_embeddings: bool | float = True
    starts_from_zero: bool = False
    num_heads: int = 4
    weight_width: float = 2.4
    eos_bias: float = 8.0
    seed: int = 7


def random_spec(wanted: RandomSpec) -> TransformerSpec:
    """A specification of random values, validated and ready to be quantised and saved."""
    source = list(wanted.source) or opennmt_pieces()
    target = list(wanted.target) or source
    spec = TransformerSpec.from_config(
        wanted.num_layers,
        wanted.num_heads,
        pre_norm=wanted.pre_norm,
        activation=wanted.activation,
        layernorm_embedding=wanted.has_embedding_norm,
        ffn_glu=wanted.is_gated,
        rms_norm=wanted.is_rms,
    )
    random = np.random.default_rng(wanted.seed)
    _fill_linears(spec, wanted, random)
    _fill_norms(spec, random)
    _fill_tables(spec, wanted, random, len(source), len(target))
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.decoder_start_token = "<s>" if "<s>" in target else "</s>"
    return spec


def save_spec(spec: TransformerSpec, directory: Path, *, quantization: str | None = None) -> Path:
    """Write a specification as the engine's converters do, with the tiny SentencePiece file."""
    directory.mkdir(parents=True)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(directory))
    (directory / "sentencepiece.model").write_bytes(tiny_spm())
    return directory


def random_directory(
    directory: Path, wanted: RandomSpec | None = None, *, quantization: str | None = None
) -> Path:
    """A directory of a random network."""
    return save_spec(random_spec(wanted or RandomSpec()), directory, quantization=quantization)


def changed_spec(spec: TransformerSpec, change: Callable[[Any], object]) -> TransformerSpec:
    """The same specification after a change that its own class does not foresee."""
    object.__setattr__(spec, "_frozen", False)
    change(spec)
    return spec


def _values(random: np.random.Generator, *shape: int, width: float = 1.0) -> np.ndarray:
    return (random.standard_normal(shape) * width).astype(np.float32)


def _fill_linears(spec: TransformerSpec, wanted: RandomSpec, random: np.random.Generator) -> None:
    for stack in (spec.encoder, spec.decoder):
        for layer in stack.layer:
            sizes = [(layer.self_attention.linear[0], 3 * WIDTH, WIDTH)]
            sizes.append((layer.self_attention.linear[1], WIDTH, WIDTH))
            if stack is spec.decoder:
                cross = layer.attention.linear
                sizes += [(cross[0], WIDTH, WIDTH), (cross[1], 2 * WIDTH, WIDTH)]
                sizes.append((cross[2], WIDTH, WIDTH))
            sizes.append((layer.ffn.linear_0, INNER, WIDTH))
            if wanted.is_gated:
                sizes.append((layer.ffn.linear_0_noact, INNER, WIDTH))
            sizes.append((layer.ffn.linear_1, WIDTH, INNER))
            for linear, outputs, inputs in sizes:
                linear.weight = _values(
                    random, outputs, inputs, width=wanted.weight_width / inputs**0.5
                )
                if wanted.has_biases:
                    linear.bias = _values(random, outputs, width=0.3)


def _fill_norms(spec: TransformerSpec, random: np.random.Generator) -> None:
    def fill(owner: object, name: str, value: object) -> None:
        if value is None and name.endswith(("gamma", "beta")):
            attribute = name.rpartition("/")[2]
            mean = 1.0 if attribute == "gamma" else 0.0
            setattr(owner, attribute, mean + _values(random, WIDTH, width=0.3))

    model_spec.visit_spec(spec, fill)


def _fill_tables(
    spec: TransformerSpec,
    wanted: RandomSpec,
    random: np.random.Generator,
    num_source: int,
    num_target: int,
) -> None:
    source = _values(random, num_source, WIDTH, width=2 * WIDTH**-0.5)
    target = (
        source if wanted.is_shared else _values(random, num_target, WIDTH, width=2 * WIDTH**-0.5)
    )
    spec.encoder.embeddings[0].weight = source
    spec.decoder.embeddings.weight = target
    projection = target if wanted.is_tied else _values(random, num_target, WIDTH, width=0.2)
    spec.decoder.projection.weight = projection
    if wanted.has_biases:
        spec.decoder.projection.bias = _values(random, num_target, width=0.5)
        pieces = list(wanted.target or wanted.source or SPECIALS)
        spec.decoder.projection.bias[pieces.index("</s>")] = wanted.eos_bias
        for piece in {"<unk>", "<blank>", "<s>"}.intersection(pieces):  # as training leaves them
            spec.decoder.projection.bias[pieces.index(piece)] = -20.0
    spec.decoder.start_from_zero_embedding = wanted.starts_from_zero
    for stack in (spec.encoder, spec.decoder):
        stack.scale_embeddings = wanted.scale_embeddings
        if wanted.positions == "learned":
            stack.position_encodings.encodings = _values(random, 90, WIDTH, width=0.5)
        elif wanted.positions is not None:
            table = sinusoidal_table(wanted.positions, torch.arange(400), WIDTH)  # type: ignore[arg-type]
            stack.position_encodings.encodings = table.numpy()
