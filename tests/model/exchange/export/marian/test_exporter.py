"""Marian's own files, read back by the importer: the same network, to the bit."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from model.checkpoint.weights import Checkpoint, load_checkpoint
from model.errors import CheckpointError, UnsupportedVariantError
from model.exchange.export.marian.exporter import export_marian
from model.exchange.imports.convert import convert
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportOptions
from model.text.languages.tags import LanguagePair
from support.exchange_cases import Shape, exchange_checkpoint, random_ids
from support.marian_oracle import FIXTURES, network_of
from support.tiny_checkpoint import TINY_TOKENS

MARIANS: Shape = {"position": "sinusoidal-m2m100", "norm_epsilon": 1e-6}
SHAPES: dict[str, Shape] = {
    "self-attention": {},
    "SSRU": {"decoder_cell": "ssru"},
    "SSRU, pre-norm": {"decoder_cell": "ssru", "norm_placement": "pre"},
    "SSRU, RMSNorm": {"decoder_cell": "ssru", "norm": "rmsnorm", "norm_placement": "pre"},
    "pre-norm": {"norm_placement": "pre", "activation": "silu"},
    "RMSNorm": {"norm": "rmsnorm"},
    "norm of embeddings": {"embedding_norm": True},
    "two tables": {"share_embeddings": False},
    "own output projection": {"tie_output": False, "decoder_d_ff": 40},
    "three tables": {"share_embeddings": False, "tie_output": False, "activation": "gelu"},
}
FIXTURE_PATHS = {
    "student": "student",
    "int8": "int8/model.npz",
    "stored int8": "int8/model.intgemm8.bin",
    "prenorm": "prenorm",
    "opus": "opus",
}
PAIRS = {"opus": (("en", "de"), ("en", "fr"))}


def converted(source: Path, destination: Path, **options: object) -> Checkpoint:
    asked = ImportOptions(**options)  # type: ignore[arg-type]  # its own fields
    convert(source, destination, importers=IMPORTERS, compute="float32", options=asked)
    return load_checkpoint(destination)


def own_checkpoint(directory: Path, **shape: object) -> Checkpoint:
    return exchange_checkpoint(directory, **(MARIANS | shape))


def with_manifest(checkpoint: Checkpoint, **changes: object) -> Checkpoint:
    manifest = replace(checkpoint.manifest, **changes)  # type: ignore[arg-type]  # its own fields
    return replace(checkpoint, manifest=manifest)


@pytest.mark.parametrize("name", FIXTURE_PATHS)
def test_what_marian_trained_comes_back_to_the_bit(name: str, tmp_path: Path) -> None:
    source = FIXTURES / FIXTURE_PATHS[name]
    first = converted(source, tmp_path / "first", pairs=PAIRS.get(name, ()))
    export_marian(first, tmp_path / "marian")
    again = converted(tmp_path / "marian", tmp_path / "again")
    ours, theirs = (one.transformer.state_dict() for one in (first, again))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(values, theirs[key]) for key, values in ours.items())
    for told in ("network", "tokens", "pairs", "limits", "normalisation"):
        assert getattr(first.manifest, told) == getattr(again.manifest, told)
    for path in (tmp_path / "first").glob("*ocabulary.json"):
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
    for path in (tmp_path / "first").glob("*.spm"):
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


@torch.inference_mode()
@pytest.mark.parametrize("shape", SHAPES)
def test_a_network_of_our_own_says_the_same_after_the_way_there_and_back(
    shape: str, tmp_path: Path
) -> None:
    checkpoint = own_checkpoint(tmp_path, **SHAPES[shape])
    export_marian(checkpoint, tmp_path / "marian")
    again = converted(tmp_path / "marian", tmp_path / "again", pairs=(("en", "zh-Hans"),))
    size, pad = checkpoint.manifest.network.output_size, TINY_TOKENS.pad_id
    new = again.manifest.tokens
    assert (new.eos_id, new.unk_id, new.start_id) == (TINY_TOKENS.eos_id, TINY_TOKENS.unk_id, size)
    for source, target in zip(random_ids(6, seed=1), random_ids(6, seed=2), strict=True):
        sources = torch.tensor([[*source, TINY_TOKENS.eos_id]])
        ours = checkpoint.transformer(sources, torch.tensor([[TINY_TOKENS.start_id, *target]]))
        theirs = again.transformer(sources, torch.tensor([[new.start_id, *target]]))
        ours[..., pad] = -1e4
        found, expected = theirs.log_softmax(-1), ours.log_softmax(-1)
        assert torch.allclose(found[..., 1:size], expected[..., 1:], atol=1e-4)
        assert float(found[..., [pad, size]].max()) < -9e3  # padding of ours, and of Marian's


def test_the_exported_file_has_the_options_that_the_importer_reads(tmp_path: Path) -> None:
    export_marian(own_checkpoint(tmp_path, decoder_cell="ssru"), tmp_path / "marian")
    settings = yaml.safe_load((tmp_path / "marian" / "decoder.yml").read_text(encoding="utf-8"))
    assert settings["relative-paths"] is True
    assert settings["models"] == ["model.npz"]
    assert settings["vocabs"] == ["vocab.enzh_hans.spm"] * 2
    names = {path.name for path in (tmp_path / "marian").iterdir()}
    files = {"model.npz", "decoder.yml", "README.md", "dragoman.json", "vocab.enzh_hans.spm"}
    assert names == files


def test_the_readme_tells_how_marians_translations_may_differ(tmp_path: Path) -> None:
    checkpoint = own_checkpoint(tmp_path)
    export_marian(checkpoint, tmp_path / "marian")
    page = (tmp_path / "marian" / "README.md").read_text(encoding="utf-8")
    assert "Of 1 target tokens, which the checkpoint never writes" in page  # padding has a row
    assert "Marian never writes the 32 pieces of control bytes" in page
    assert "Apache-2.0" in page


def test_everything_that_marian_does_not_have_is_told_together(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path, output_bias=False)
    tokens = replace(TINY_TOKENS, suppressed_ids=(0,), start_id=1, has_source_eos=False)
    tagged = LanguagePair(source="en", target="zh-Hans", target_prefix=("<unk>",))
    changed = with_manifest(checkpoint, tokens=tokens, pairs=(tagged,), normalisation="opus-mt")
    with pytest.raises(UnsupportedVariantError, match="Marian cannot express this") as caught:
        export_marian(changed, tmp_path / "marian")
    for problem in (
        "network.norm_epsilon is 1e-05 (only 1e-06)",
        "network.position is 'sinusoidal-marian' (only 'sinusoidal-m2m100')",
        "network.output_bias is False",
        "tokens.start_id is 1",
        "tokens.suppressed_ids is without 2",
        "tokens.has_source_eos is False",
        "a source_prompt or a target_prefix",
        "normalisation is 'opus-mt' (only none",
    ):
        assert problem in str(caught.value)
    assert not (tmp_path / "marian").exists()


def test_a_start_that_is_no_vector_of_zeros_is_refused(tmp_path: Path) -> None:
    checkpoint = own_checkpoint(tmp_path)
    with torch.no_grad():
        checkpoint.transformer.target_embedding.weight[TINY_TOKENS.start_id, 3] = 0.5
    with pytest.raises(UnsupportedVariantError, match="a vector of zeros"):
        export_marian(checkpoint, tmp_path / "marian")


def test_pieces_of_moses_words_are_refused(tmp_path: Path) -> None:
    checkpoint = own_checkpoint(tmp_path)
    checkpoint.tokenizer.models = (object(), object())  # type: ignore[assignment]  # no pieces
    with pytest.raises(UnsupportedVariantError, match="only of SentencePiece"):
        export_marian(checkpoint, tmp_path / "marian")


def test_an_export_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "marian").mkdir()
    with pytest.raises(CheckpointError, match="exists; an export replaces nothing"):
        export_marian(own_checkpoint(tmp_path), tmp_path / "marian")
    assert list((tmp_path / "marian").iterdir()) == []


def test_the_oracle_reads_what_was_exported(tmp_path: Path) -> None:
    export_marian(own_checkpoint(tmp_path, decoder_cell="ssru"), tmp_path / "marian")
    (importer,) = [one for one in IMPORTERS if one.recognises(tmp_path / "marian")]
    found = importer.read(tmp_path / "marian", ImportOptions())
    assert found.network.decoder_cell == "ssru"
    assert [(pair.source, pair.target) for pair in found.pairs] == [("en", "zh-Hans")]
    assert found.unused == ()
    network_of(found)
