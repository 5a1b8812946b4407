"""A directory of `MarianMTModel`, read by `transformers`, against the checkpoint it is of."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import AutoTokenizer, MarianMTModel

from model.checkpoint.manifest import Licence, ShortlistEntry
from model.checkpoint.weights import Checkpoint, TokenizerParts
from model.config import SearchConfig, StoppingRule
from model.decode.session import DecodeRequest
from model.errors import CheckpointError, UnsupportedVariantError
from model.exchange.export.huggingface.exporter import export_huggingface
from model.offline.translator import Translator
from support.exchange_cases import MARIAN_SHAPES, exchange_checkpoint, random_ids
from support.huggingface import Comparison, generate, generate_greedily
from support.tiny_checkpoint import TINY_TOKENS, tiny_spm

EOS = TINY_TOKENS.eos_id


def exported_twin(checkpoint: Checkpoint, output: Path) -> MarianMTModel:
    export_huggingface(checkpoint, output)
    return MarianMTModel.from_pretrained(output).eval()


@pytest.mark.parametrize("shape", MARIAN_SHAPES)
@torch.inference_mode()
def test_logits_of_the_directory_are_ours(tmp_path: Path, shape: str) -> None:
    checkpoint = exchange_checkpoint(tmp_path, **MARIAN_SHAPES[shape])
    twin = exported_twin(checkpoint, tmp_path / "marian")
    assert twin.dtype is torch.float32
    source = torch.tensor([[5, 6, 7, 8, EOS], [90, EOS, 0, 0, 0]])
    target = torch.tensor([[0, 11, 12, 13], [0, 300, 4, 599]])
    found = twin(
        input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=target
    ).logits
    assert found.std() > 0.5
    torch.testing.assert_close(found, checkpoint.transformer(source, target), atol=1e-4, rtol=1e-5)


def requests_for(search: SearchConfig, *, count: int, seed: int) -> list[DecodeRequest]:
    return [
        DecodeRequest(source_ids=(*ids, EOS), prefix_ids=(TINY_TOKENS.start_id,), search=search)
        for ids in random_ids(count, seed=seed)
    ]


@pytest.mark.parametrize("rule", ["first", "heuristic", "bound"])
def test_hypotheses_and_scores_of_the_directory_are_ours(
    tmp_path: Path, rule: StoppingRule
) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    twin = exported_twin(checkpoint, tmp_path / "marian")
    search = SearchConfig(num_hypotheses=4, stopping=rule, max_length=20)
    requests = requests_for(search, count=20, seed=4)
    ours = Translator(checkpoint).search(requests)
    comparison = Comparison()
    for number, other in enumerate(generate(twin, TINY_TOKENS, requests)):
        comparison.add(str(number), ours[number], other)
    assert comparison.differences == []
    assert len(comparison.ties) <= 2
    assert len({found.token_ids for hypotheses in ours for found in hypotheses}) > 20


def test_greedy_hypotheses_of_the_directory_are_ours(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    twin = exported_twin(checkpoint, tmp_path / "marian")
    requests = requests_for(SearchConfig(beam_size=1, max_length=20), count=20, seed=5)
    ours = [found[0].token_ids for found in Translator(checkpoint).search(requests)]
    assert generate_greedily(twin, TINY_TOKENS, requests) == ours


def test_the_directory_alone_translates_as_we_do(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    twin = exported_twin(checkpoint, tmp_path / "marian")
    longest = checkpoint.manifest.limits.max_target_length
    requests = requests_for(SearchConfig(stopping="bound", max_length=longest), count=5, seed=6)
    ours = Translator(checkpoint).search(requests)
    for request, (best, *_) in zip(requests, ours, strict=True):
        found = twin.generate(torch.tensor([request.source_ids]))[0].tolist()
        assert found == [TINY_TOKENS.start_id, *best.token_ids, EOS]


def test_float16_weights_are_widened(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    checkpoint.transformer.half()
    export_huggingface(checkpoint, tmp_path / "marian")
    with safe_open(tmp_path / "marian" / "model.safetensors", framework="pt") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F32"}  # noqa: SIM118


def test_everything_that_marian_cannot_express_is_listed(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(
        tmp_path,
        norm="rmsnorm",
        norm_placement="pre",
        norm_epsilon=1e-6,
        position="sinusoidal-interleaved",
        position_offset=2,
        attention_bias=False,
        d_k=4,
        d_v=6,
    )
    manifest = checkpoint.manifest
    manifest = replace(
        manifest, tokens=replace(manifest.tokens, forced_first_id=7, has_source_eos=False)
    )
    with pytest.raises(UnsupportedVariantError) as caught:
        export_huggingface(replace(checkpoint, manifest=manifest), tmp_path / "marian")
    message = str(caught.value)
    for setting in ("norm", "norm_placement", "norm_epsilon", "position", "position_offset"):
        assert f"network.{setting} is {getattr(manifest.network, setting)!r} (only" in message
    for setting in ("network.attention_bias is False", "network.d_k is 4", "network.d_v is 6"):
        assert setting in message
    assert "tokens.forced_first_id is 7" in message
    assert "tokens.has_source_eos is False" in message
    assert not (tmp_path / "marian").exists()


def test_the_licences_of_weights_and_text_go_with_them(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    corpus = Licence(corpus="talk", licence="CC-BY-SA-3.0", url="https://example.org")
    shortlist = ShortlistEntry(num_always=1, num_ids=0, with_source=False)
    manifest = replace(checkpoint.manifest, licence="CC-BY-SA-4.0", licences=(corpus,))
    manifest = replace(manifest, shortlist=shortlist)
    export_huggingface(replace(checkpoint, manifest=manifest), tmp_path / "marian")
    page = (tmp_path / "marian" / "README.md").read_text(encoding="utf-8")
    assert "has a lexical shortlist, which this format has no place for" in page
    assert "The weights are under CC-BY-SA-4.0." in page
    assert "- talk: CC-BY-SA-3.0, https://example.org\n" in page


def test_nothing_is_replaced_and_nothing_is_left_half_written(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    standing = tmp_path / "standing"
    standing.mkdir()
    for output, problem in (
        (standing, "exists; an export replaces nothing"),
        (tmp_path / "none" / "marian", "cannot be written"),
    ):
        with pytest.raises(CheckpointError, match=problem):
            export_huggingface(checkpoint, output)
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint", "standing"}
    assert list(standing.iterdir()) == []


def test_tags_of_any_form_are_tokens_before_the_text(tmp_path: Path) -> None:
    checkpoint = exchange_checkpoint(tmp_path)
    pieces = checkpoint.tokenizer.source_pieces()
    tag = next(piece for index, piece in pieces.items() if index > 300 and len(piece) > 2)
    pair = replace(checkpoint.manifest.pairs[0], source_prefix=(tag,))
    manifest = replace(checkpoint.manifest, pairs=(pair,))
    tokenizer = TokenizerParts(source_pieces=tiny_spm()).build(manifest)
    tagged = replace(checkpoint, manifest=manifest, tokenizer=tokenizer)
    export_huggingface(tagged, tmp_path / "marian")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "marian")
    line = "The cat sees the river."
    assert theirs(f"{tag} {line}").input_ids == tokenizer.encode(line, pair)
