"""Which family a network is of, and what each of them refuses."""

from dataclasses import replace
from pathlib import Path

import pytest

from model.checkpoint.weights import Checkpoint, TokenizerParts, load_checkpoint
from model.config import ModelConfig
from model.errors import UnsupportedVariantError
from model.exchange.export.ctranslate2 import export_ctranslate2
from model.exchange.export.huggingface.exporter import export_huggingface, family_of
from model.exchange.export.huggingface.family import generation, inverse
from model.exchange.imports.convert import convert
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportOptions
from support.exchange_cases import Shape, exchange_checkpoint
from support.huggingface_folders import m2m100_folder
from support.tiny_checkpoint import tiny_spm

M2M100: Shape = {
    "position": "sinusoidal-m2m100",
    "position_offset": 2,
    "norm_placement": "pre",
    "output_bias": False,
}
SHAPES: dict[str, Shape] = {
    "Hugging Face Marian": {},
    "Hugging Face M2M100": M2M100,
    "Hugging Face FSMT": {**M2M100, "norm_placement": "post"},
    "Hugging Face mBART": {"position": "learned", "embedding_norm": True, "norm_placement": "pre"},
    "Hugging Face T5": {
        "position": "relative",
        "norm": "rmsnorm",
        "norm_placement": "pre",
        "scale_attention": False,
        "scale_embedding": False,
        "feed_forward_bias": False,
        "attention_bias": False,
        "output_bias": False,
    },
}


def refusal(checkpoint: Checkpoint, output: Path) -> str:
    with pytest.raises(UnsupportedVariantError) as caught:
        export_huggingface(checkpoint, output)
    assert not output.exists()
    return str(caught.value)


@pytest.mark.parametrize("name", SHAPES)
def test_a_network_is_of_the_family_of_its_positions_and_norms(name: str) -> None:
    network = ModelConfig(vocab_size=9, d_model=16, num_heads=2, **SHAPES[name])  # type: ignore[arg-type]
    assert family_of(network).fields.by == name


def test_marians_own_positions_are_those_of_no_other_family() -> None:
    network = ModelConfig(vocab_size=9, d_model=16, num_heads=2, position="sinusoidal-m2m100")
    assert family_of(network).fields.by == "Hugging Face Marian"


def test_of_several_names_the_first_is_taken() -> None:
    assert inverse({"gelu": 1, "gelu_new": 2, "gelu_pytorch_tanh": 2}) == {1: "gelu", 2: "gelu_new"}


def test_both_exports_refuse_the_ssru_by_its_name(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path, decoder_cell="ssru")
    assert "network.decoder_cell is 'ssru' (only 'self-attention')" in refusal(
        checkpoint, tmp_path / "out"
    )
    with pytest.raises(UnsupportedVariantError, match="decoder_cell is 'ssru'"):
        export_ctranslate2(checkpoint, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        ("Hugging Face M2M100", ["tokens.pad_id is 0 (only 1)", "pairs do not have one tag"]),
        ("Hugging Face mBART", ["tokens.eos_id is 1 (only 2)", "one of mBART-50's tags before"]),
        ("Hugging Face FSMT", ["network.pad_id is 0 (only 1)", "is not Moses' words and merges"]),
        ("Hugging Face T5", ["the SentencePiece file has byte pairs (only unigrams)"]),
    ],
)
def test_a_tokenizer_that_the_family_does_not_have_is_refused(
    tmp_path: Path, name: str, problems: list[str]
) -> None:
    message = refusal(exchange_checkpoint(tmp_path, **SHAPES[name]), tmp_path / "out")
    assert message.startswith(f"{name} cannot express this: ")
    for problem in problems:
        assert problem in message


def test_marian_refuses_prompts_and_text_that_is_cleaned_first(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    manifest = checkpoint.manifest
    prompted = tuple(replace(pair, source_prompt=("▁",)) for pair in manifest.pairs)
    cleaned = replace(manifest, pairs=prompted, normalisation="opus-mt")
    tokenizer = TokenizerParts(source_pieces=tiny_spm()).build(cleaned)
    changed = replace(checkpoint, manifest=cleaned, tokenizer=tokenizer)
    message = refusal(changed, tmp_path / "out")
    assert "normalisation is 'opus-mt' (only what SentencePiece files do themselves)" in message
    assert "pairs have a source_prompt (only a source_prefix)" in message


def test_t5_refuses_what_it_has_no_word_for(tmp_path: Path) -> None:
    shape = SHAPES["Hugging Face T5"]
    more: Shape = {
        "gated_feed_forward": True,
        "activation": "gelu",
        "scale_output": True,
        "tie_output": False,
        "d_k": 6,
        "d_v": 4,
        "decoder_d_ff": 7,
    }
    message = refusal(exchange_checkpoint(tmp_path, **{**shape, **more}), tmp_path / "out")
    for name in ("gated_feed_forward", "scale_output", "d_v", "decoder_d_ff"):
        assert f"network.{name} is {more[name]!r} (only " in message


def test_tags_of_the_target_alone_are_refused(tmp_path: Path) -> None:
    folder = m2m100_folder(tmp_path / "small100", kind="small100")
    convert(folder, tmp_path / "ours", importers=IMPORTERS, compute="float32")
    message = refusal(load_checkpoint(tmp_path / "ours"), tmp_path / "out")
    assert "pairs do not have one tag before the source and one before the target" in message


def test_a_target_that_is_the_only_one_is_asked_for(tmp_path: Path) -> None:
    folder = m2m100_folder(tmp_path / "m2m100")
    options = ImportOptions(pairs=(("en", "de"), ("en", "fr")))
    convert(folder, tmp_path / "ours", importers=IMPORTERS, options=options)
    checkpoint = load_checkpoint(tmp_path / "ours")
    assert generation(checkpoint)["forced_bos_token_id"] is None
    first = checkpoint.manifest.pairs[0]
    narrowed = replace(checkpoint, manifest=replace(checkpoint.manifest, pairs=(first,)))
    expected = checkpoint.tokenizer.target_prefix(first)[1]
    assert generation(narrowed)["forced_bos_token_id"] == expected
