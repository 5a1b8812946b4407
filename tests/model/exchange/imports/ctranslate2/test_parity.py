"""Imported CTranslate2 directories against CTranslate2 itself, float32, on 500 sentences."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from model.checkpoint.weights import Checkpoint
from model.config import SearchConfig
from model.decode.session import DecodeRequest
from model.exchange.imports.ctranslate2.importer import CTranslate2Importer
from model.exchange.imports.imported import ImportOptions
from model.offline.translator import Translator
from model.text.subwords.pieces import PieceModel
from support.imported_models import imported_checkpoint
from support.teacher_forcing import token_log_probs
from support.tiny_checkpoint import tiny_spm

ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

from support.ctranslate2_models import (  # noqa: E402  # needs CTranslate2
    RandomSpec,
    common_spec,
    opennmt_pieces,
    random_directory,
    real_looking_sentences,
)

PAIRS = ImportOptions(pairs=(("en", "de"),))
TIE = 1e-4
MAX_LENGTH = 40
GELU = common_spec.Activation
SHAPES = {
    "Argos": RandomSpec(),
    "post-norm": RandomSpec(pre_norm=False, seed=8),
    "generated positions": RandomSpec(positions=None),
    "halves from 0": RandomSpec(positions="sinusoidal-marian"),
    "learned positions": RandomSpec(positions="learned"),
    "unscaled": RandomSpec(scale_embeddings=False),
    "scaled by a number": RandomSpec(scale_embeddings=32**0.5),
    "embedding norm": RandomSpec(has_embedding_norm=True),
    "RMSNorm and gate": RandomSpec(is_rms=True, is_gated=True, activation=GELU.GELUTanh),
    "silu": RandomSpec(activation=GELU.SWISH),
    "gelu": RandomSpec(activation=GELU.GELU),
    "gelu by sigmoid": RandomSpec(activation=GELU.GELUSigmoid),
    "two tables": RandomSpec(is_shared=False),
    "three tables": RandomSpec(is_shared=False, is_tied=False),
    "no biases": RandomSpec(has_biases=False),
    "unequal depths": RandomSpec(num_layers=(3, 1)),
    "Marian": RandomSpec(
        starts_from_zero=True,
        pre_norm=False,
        positions="sinusoidal-marian",
        weight_width=1.6,
    ),
}


@dataclass(frozen=True)
class Rivals:
    checkpoint: Checkpoint
    engine: "ctranslate2.Translator"

    @property
    def has_source_eos(self) -> bool:
        return self.checkpoint.manifest.tokens.has_source_eos

    def sources(self, sentences: Sequence[str]) -> list[list[str]]:
        """What a caller of the engine gives it."""
        ending = ["</s>"] if self.has_source_eos else []
        model = PieceModel(tiny_spm())
        return [[*model.pieces(sentence), *ending] for sentence in sentences]


def rivals(directory: Path, wanted: RandomSpec) -> Rivals:
    random_directory(directory, wanted)
    checkpoint = imported_checkpoint(CTranslate2Importer().read(directory, PAIRS))
    engine = ctranslate2.Translator(str(directory), compute_type="float32", intra_threads=1)
    return Rivals(checkpoint, engine)


def largest_gap(found: Rivals, sentences: Sequence[str]) -> float:
    """Of the log probability of every target piece, with EOS, between the engine and us."""
    pair = found.checkpoint.manifest.pairs[0]
    tokenizer, transformer = found.checkpoint.tokenizer, found.checkpoint.transformer
    references = sentences[::-1]
    model = PieceModel(tiny_spm())
    scored = found.engine.score_batch(
        found.sources(sentences), [model.pieces(text) for text in references]
    )
    gap = 0.0
    for sentence, reference, theirs in zip(sentences, references, scored, strict=True):
        ours = token_log_probs(
            transformer,
            tokenizer.encode(sentence, pair),
            tokenizer.target_prefix(pair),
            tokenizer.encode_target(reference),
        )
        assert len(ours) == len(theirs.log_probs)
        gap = max(gap, *(abs(a - b) for a, b in zip(ours, theirs.log_probs, strict=True)))
    return gap


@pytest.mark.parametrize("shape", SHAPES)
def test_every_piece_has_the_engines_log_probability(tmp_path: Path, shape: str) -> None:
    found = rivals(tmp_path / "engine", SHAPES[shape])
    assert largest_gap(found, real_looking_sentences(12)) < TIE


def test_beam_search_finds_what_the_engine_finds_on_500_sentences(tmp_path: Path) -> None:
    found = rivals(tmp_path / "engine", RandomSpec())
    sentences = real_looking_sentences(500)
    assert largest_gap(found, sentences) < TIE
    manifest, tokenizer = found.checkpoint.manifest, found.checkpoint.tokenizer
    # The engine takes suppressed pieces out before the softmax, and we after it: here nobody does.
    tokens = replace(manifest.tokens, suppressed_ids=())
    checkpoint = replace(found.checkpoint, manifest=replace(manifest, tokens=tokens))
    pair = manifest.pairs[0]
    search = SearchConfig(beam_size=4, stopping="first", max_length=MAX_LENGTH + 1)
    requests = [
        DecodeRequest(
            source_ids=tuple(tokenizer.encode(sentence, pair)),
            prefix_ids=tuple(tokenizer.target_prefix(pair)),
            search=search,
        )
        for sentence in sentences
    ]
    ours = [hypotheses[0] for hypotheses in Translator(checkpoint).search(requests)]
    pieces = opennmt_pieces()
    theirs = found.engine.translate_batch(
        found.sources(sentences),
        beam_size=4,
        length_penalty=1.0,
        return_scores=True,
        min_decoding_length=0,
        max_decoding_length=MAX_LENGTH,
    )
    ended, ties = 0, 0
    for mine, other in zip(ours, theirs, strict=True):
        if mine.is_truncated or len(other.hypotheses[0]) >= MAX_LENGTH:
            continue
        ended += 1
        if [pieces[index] for index in mine.token_ids] == other.hypotheses[0]:
            assert mine.score == pytest.approx(other.scores[0], abs=TIE)
        else:
            assert abs(mine.score - other.scores[0]) < TIE
            ties += 1
    assert ended > 300
    assert len({mine.token_ids for mine in ours}) > 100
    assert ties <= 2


@pytest.mark.parametrize("quantization", ["float16", "bfloat16", "int16", "int8", "int8_float16"])
def test_stored_weights_are_those_of_the_engine_in_float32(
    tmp_path: Path, quantization: str
) -> None:
    wanted = RandomSpec(positions=None)  # a stored table would be rounded, and is not read as such
    random_directory(tmp_path / "engine", wanted, quantization=quantization)
    checkpoint = imported_checkpoint(CTranslate2Importer().read(tmp_path / "engine", PAIRS))
    engine = ctranslate2.Translator(
        str(tmp_path / "engine"), compute_type="float32", intra_threads=1
    )
    assert largest_gap(Rivals(checkpoint, engine), real_looking_sentences(12)) < TIE
