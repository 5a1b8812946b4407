"""The CTranslate2 directory, run by CTranslate2 in float32, against our own network."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.checkpoint.manifest import Licence
from model.checkpoint.weights import Checkpoint, TokenizerParts, load_checkpoint, save_checkpoint
from model.config import SearchConfig
from model.decode.session import DecodeRequest
from model.errors import CheckpointError, ConfigError, UnsupportedVariantError
from model.exchange.export.ctranslate2 import export_ctranslate2
from model.exchange.imports.convert import convert
from model.exchange.imports.ctranslate2.file import VariableFile
from model.exchange.imports.ctranslate2.importer import CTranslate2Importer
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportOptions
from model.offline.translator import Translator
from model.text.subwords.pieces import PieceModel
from support.exchange_cases import MARIAN_SHAPES, Shape, exchange_checkpoint, random_ids
from support.foreign_folders import (
    change_json,
    trained_spm,
    write_mbart,
    write_t5,
)
from support.marian_oracle import FIXTURES
from support.teacher_forcing import token_log_probs
from support.tiny_checkpoint import TINY_TOKENS, TINY_VOCABULARY_SIZE, tiny_spm

ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
TransformersConverter = ctranslate2.converters.TransformersConverter

EOS, START = TINY_TOKENS.eos_id, TINY_TOKENS.start_id
PIECES = [piece for piece, _ in sorted(PieceModel(tiny_spm()).table().items(), key=lambda i: i[1])]
IDS = {piece: index for index, piece in enumerate(PIECES)}
SUPPRESSED = [[PIECES[index]] for index in TINY_TOKENS.suppressed_ids]
T5: Shape = {
    "position": "relative",
    "norm": "rmsnorm",
    "norm_placement": "pre",
    "scale_attention": False,
    "scale_embedding": False,
    "feed_forward_bias": False,
    "attention_bias": False,
    "output_bias": False,
}
SHAPES: dict[str, Shape] = MARIAN_SHAPES | {
    "pre-norm": {"norm_placement": "pre", "activation": "gelu"},
    "RMSNorm": {"norm": "rmsnorm", "norm_placement": "pre"},
    "wide epsilon": {"norm_epsilon": 1e-2},
    "without attention bias": {"attention_bias": False},
    "interleaved positions": {"position": "sinusoidal-interleaved"},
    "M2M100": {"position": "sinusoidal-m2m100", "position_offset": 2, "norm_placement": "pre"},
    "mBART": {
        "position": "learned",
        "max_positions": 80,
        "position_offset": 2,
        "norm_placement": "pre",
        "embedding_norm": True,
    },
    "T5": {**T5, "scale_output": True},
    "MADLAD": {
        **T5,
        "tie_output": False,
        "gated_feed_forward": True,
        "activation": "gelu-tanh",
        "d_k": 12,
        "d_v": 12,
    },
    "FSMT": {"position": "sinusoidal-m2m100", "position_offset": 2, "decoder_d_ff": 64},
    "wide heads": {"d_k": 12, "d_v": 12},
    "Marian's GELU": {"activation": "gelu-sigmoid"},
}


def exported(
    checkpoint: Checkpoint, output: Path, *, quantization: str | None = None
) -> "ctranslate2.Translator":
    export_ctranslate2(checkpoint, output, quantization=quantization)
    kind = "float32" if quantization is None else quantization
    return ctranslate2.Translator(str(output), compute_type=kind, intra_threads=1)


def names(sentences: Sequence[Sequence[int]]) -> list[list[str]]:
    return [[PIECES[index] for index in ids] for ids in sentences]


def ids_of(pieces: Sequence[str]) -> tuple[int, ...]:
    return tuple(IDS[piece] for piece in pieces)


def masked_sum(checkpoint: Checkpoint, source: Sequence[int], target: Sequence[int]) -> float:
    """Σ log p of a hypothesis as a search sees it that never generates the suppressed ids."""
    return sum(
        token_log_probs(
            checkpoint.transformer,
            [*source, EOS],
            [START],
            target,
            suppressed_ids=TINY_TOKENS.suppressed_ids,
        )
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_every_token_has_our_log_probability(tmp_path: Path, shape: str) -> None:
    checkpoint = exchange_checkpoint(tmp_path, **SHAPES[shape])
    rival = exported(checkpoint, tmp_path / "rival")
    sources, targets = random_ids(8, seed=1), random_ids(8, seed=2)
    if checkpoint.manifest.network.position == "relative":
        sources[0] *= 150 // len(sources[0]) + 1  # past the last bucket
    found = rival.score_batch(names(sources), names(targets))
    spread = set()
    for source, target, theirs in zip(sources, targets, found, strict=True):
        ours = token_log_probs(checkpoint.transformer, [*source, EOS], [START], [*target, EOS])
        assert theirs.log_probs == pytest.approx(ours, abs=1e-4)
        spread |= {round(4 * log_prob) for log_prob in ours}
    assert len(spread) > 3


def test_greedy_search_gives_our_hypotheses_and_scores(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    rival = exported(checkpoint, tmp_path / "rival")
    sources = random_ids(30, seed=3)
    search = SearchConfig(beam_size=1, max_length=20)
    ours = Translator(checkpoint).search(
        [
            DecodeRequest(source_ids=(*ids, EOS), prefix_ids=(START,), search=search)
            for ids in sources
        ]
    )
    theirs = rival.translate_batch(
        names(sources),
        beam_size=1,
        return_scores=True,
        max_decoding_length=19,
        min_decoding_length=0,
        suppress_sequences=SUPPRESSED,
    )
    for source, (mine,), other in zip(sources, ours, theirs, strict=True):
        assert ids_of(other.hypotheses[0]) == mine.token_ids
        # The cap takes one token less there, and no EOS: n counts what is there.
        ending = () if mine.is_truncated else (EOS,)
        target = (*mine.token_ids, *ending)
        expected = masked_sum(checkpoint, source, target) / len(target)
        assert other.scores[0] == pytest.approx(expected, abs=1e-4)
    assert {mine.is_truncated for (mine,) in ours} == {True, False}


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_beam_search_scores_are_those_of_our_network(tmp_path: Path, alpha: float) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    rival = exported(checkpoint, tmp_path / "rival")
    sources = random_ids(15, seed=4)
    theirs = rival.translate_batch(
        names(sources),
        beam_size=4,
        num_hypotheses=4,
        length_penalty=alpha,
        return_scores=True,
        max_decoding_length=20,
        min_decoding_length=0,
        suppress_sequences=SUPPRESSED,
    )
    lengths = set()
    for source, other in zip(sources, theirs, strict=True):
        for pieces, score in zip(other.hypotheses, other.scores, strict=True):
            ending = () if len(pieces) == 20 else (EOS,)
            target = (*ids_of(pieces), *ending)
            expected = masked_sum(checkpoint, source, target) / len(target) ** alpha
            assert score == pytest.approx(expected, abs=1e-3)
            lengths.add(len(pieces))
    assert len(lengths) > 3


def test_int8_weights_are_smaller_and_leave_the_network_as_it_was(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    before = {name: value.clone() for name, value in checkpoint.transformer.state_dict().items()}
    sources = names(random_ids(3, seed=5))
    sizes = []
    for quantization in (None, "int8"):
        output = tmp_path / f"rival-{quantization}"
        rival = exported(checkpoint, output, quantization=quantization)
        assert len(rival.translate_batch(sources, max_decoding_length=8)) == 3
        sizes.append((output / "model.bin").stat().st_size)
    tables = 2 * 1024 * 32  # positions stay float
    assert sizes[1] < sizes[0] / 2 + tables
    for name, value in checkpoint.transformer.state_dict().items():
        assert torch.equal(value, before[name])


def test_one_table_is_written_once(tmp_path: Path) -> None:
    sizes = {}
    for name, shape in (("one", {}), ("three", MARIAN_SHAPES["three tables"])):
        (tmp_path / name).mkdir()
        checkpoint = exchange_checkpoint(tmp_path / name, **shape)
        export_ctranslate2(checkpoint, tmp_path / name / "rival")
        sizes[name] = (tmp_path / name / "rival" / "model.bin").stat().st_size
    table = TINY_VOCABULARY_SIZE * 32 * 4
    assert sizes["three"] - sizes["one"] == pytest.approx(2 * table, abs=200)


def test_each_side_has_its_own_vocabulary(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    table = PieceModel(tiny_spm()).table()
    ordinary = [piece for piece, index in table.items() if index > 2]
    reverse = dict(
        zip(ordinary, sorted((table[piece] for piece in ordinary), reverse=True), strict=True)
    )
    target_table = {piece: index for piece, index in table.items() if index <= 2} | reverse
    manifest = checkpoint.manifest
    save_checkpoint(
        tmp_path / "two",
        transformer=checkpoint.transformer,
        name="two",
        description="",
        licence="Apache-2.0",
        tokens=manifest.tokens,
        pairs=manifest.pairs,
        limits=manifest.limits,
        licences=manifest.licences,
        tokenizer=TokenizerParts(source_pieces=tiny_spm(), target_table=target_table),
        card="",
        quantise=False,
    )
    checkpoint = load_checkpoint(tmp_path / "two")
    rival = exported(checkpoint, tmp_path / "rival")
    stored = {
        side: json.loads((tmp_path / "rival" / f"{side}_vocabulary.json").read_text())
        for side in ("source", "target")
    }
    assert stored["source"] == PIECES
    assert {piece: index for index, piece in enumerate(stored["target"])} == target_table
    source, target = [5, 77, 400], [9, 311, 312, 20]
    (found,) = rival.score_batch(names([source]), [[stored["target"][i] for i in target]])
    ours = token_log_probs(checkpoint.transformer, [*source, EOS], [START], [*target, EOS])
    assert found.log_probs == pytest.approx(ours, abs=1e-4)


def test_everything_that_ctranslate2_cannot_express_is_listed(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path, position="rope", d_k=6, d_v=4, num_encoder_layers=0)
    manifest = checkpoint.manifest
    manifest = replace(manifest, tokens=replace(manifest.tokens, forced_first_id=7))
    with pytest.raises(UnsupportedVariantError) as caught:
        export_ctranslate2(replace(checkpoint, manifest=manifest), tmp_path / "rival")
    for problem in (
        "network.position is 'rope'",
        "network.d_v is 4",
        "network.num_encoder_layers is 0",
        "tokens.forced_first_id is 7",
    ):
        assert problem in str(caught.value)
    assert not (tmp_path / "rival").exists()


def test_the_licences_of_weights_and_text_go_with_them(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    corpus = Licence(corpus="talk", licence="CC-BY-SA-3.0", url="https://example.org")
    manifest = replace(checkpoint.manifest, licence="CC-BY-SA-4.0", licences=(corpus,))
    export_ctranslate2(replace(checkpoint, manifest=manifest), tmp_path / "rival")
    page = (tmp_path / "rival" / "README.md").read_text(encoding="utf-8")
    assert "The weights are under CC-BY-SA-4.0." in page
    assert "- talk: CC-BY-SA-3.0, https://example.org\n" in page


def test_a_release_of_opus_mt_has_its_pieces_and_says_how_text_is_cleaned(tmp_path: Path) -> None:
    options = ImportOptions(pairs=(("en", "de"), ("en", "fr")))
    convert(
        FIXTURES / "opus",
        tmp_path / "ours",
        importers=IMPORTERS,
        compute="float32",
        options=options,
    )
    ours = load_checkpoint(tmp_path / "ours")
    assert ours.manifest.normalisation == "opus-mt"
    export_ctranslate2(ours, tmp_path / "rival")
    for name in ("source.spm", "target.spm"):
        assert (tmp_path / "rival" / name).read_bytes() == (FIXTURES / "opus" / name).read_bytes()
    page = (tmp_path / "rival" / "README.md").read_text(encoding="utf-8")
    assert "The source must be cleaned before SentencePiece cuts it" in page
    again = CTranslate2Importer().read(tmp_path / "rival", options)
    assert [pair.target for pair in again.pairs] == ["de", "fr"]


def test_a_wrong_quantization_or_a_standing_directory_changes_nothing(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    with pytest.raises(ConfigError, match="quantization is 'int3'; it must be one of"):
        export_ctranslate2(checkpoint, tmp_path / "rival", quantization="int3")
    (tmp_path / "standing").write_text("kept")
    with pytest.raises(CheckpointError, match="exists; an export replaces nothing"):
        export_ctranslate2(checkpoint, tmp_path / "standing")
    assert (tmp_path / "standing").read_text() == "kept"
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint", "standing"}


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    with pytest.raises(ConfigError, match=r"ctranslate2 is not installed.*dragoman\[bench\]"):
        export_ctranslate2(checkpoint, tmp_path / "rival")


def mbart(folder: Path) -> None:
    write_mbart(folder, activation_function="relu")
    stated = {"normalize_before": True, "normalize_embedding": True}  # as published ones do
    change_json(folder / "config.json", tokenizer_class="MBart50Tokenizer", **stated)


def first_t5(folder: Path) -> None:
    """Tied: transformers says of every T5 that it is, and the converter believes it."""
    spm = trained_spm(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    write_t5(folder, spm=spm, head="tied", decoder_start_token_id=0)


@pytest.mark.parametrize("write", [mbart, first_t5], ids=lambda write: write.__name__)
def test_every_variable_is_that_of_the_engines_own_converter(
    tmp_path: Path, write: Callable[[Path], None]
) -> None:
    write(tmp_path / "hub")
    options = ImportOptions(pairs=(("en", "de"), ("de", "en")))
    convert(
        tmp_path / "hub",
        tmp_path / "ours",
        importers=IMPORTERS,
        compute="float32",
        options=options,
    )
    export_ctranslate2(load_checkpoint(tmp_path / "ours"), tmp_path / "rival")
    names = json.loads((tmp_path / "rival" / "shared_vocabulary.json").read_text())

    class Names:
        bos_token, eos_token, unk_token, pad_token = "<s>", "</s>", "<unk>", "<pad>"

        def get_vocab(self) -> dict[str, int]:
            return {name: index for index, name in enumerate(names)}

        def convert_ids_to_tokens(self, index: int) -> str:
            return str(names[index])

    class Converter(TransformersConverter):  # type: ignore[misc]  # untyped
        """Without the tokenizer, which the folder does not have whole."""

        def load_tokenizer(self, *_arguments: object, **_options: object) -> Names:
            return Names()

    Converter(str(tmp_path / "hub")).convert(str(tmp_path / "engine"))
    ours, theirs = (VariableFile(tmp_path / name / "model.bin") for name in ("rival", "engine"))
    assert ours.variables.keys() == theirs.variables.keys()
    said_otherwise = {f"{side}/scale_embeddings" for side in ("encoder", "decoder")}
    for name in theirs.variables.keys() - said_otherwise:  # the factor, or that there is one
        assert torch.equal(ours.values(name), theirs.values(name)), name
    configs = [
        json.loads((tmp_path / name / "config.json").read_text()) for name in ("rival", "engine")
    ]
    assert configs[0]["decoder_start_token"] == configs[1]["decoder_start_token"]
