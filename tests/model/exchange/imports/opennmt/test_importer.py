"""OpenNMT-py checkpoints of random networks, against CTranslate2's own converter of them."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from model.checkpoint.weights import load_checkpoint
from model.errors import ForeignModelError
from model.exchange.imports.convert import convert
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportOptions
from model.exchange.imports.opennmt.importer import OpenNMTImporter
from model.nn.positions import sinusoidal_table
from model.text.pieces import PieceModel
from support.imported_models import imported_checkpoint
from support.teacher_forcing import token_log_probs
from support.tiny_checkpoint import tiny_spm

ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

from ctranslate2.converters import OpenNMTPyConverter  # noqa: E402  # needs CTranslate2

from support.ctranslate2_models import (  # noqa: E402  # same
    opennmt_pieces,
    real_looking_sentences,
)

PAIRS = ImportOptions(pairs=(("en", "de"),))
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


def saved(folder: Path, parts: Parts) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "model_step_100.pt"
    torch.save(parts, path)
    (folder / "sentencepiece.model").write_bytes(tiny_spm())
    return path


@pytest.mark.parametrize(
    "shape", [{}, {"is_shared": False}, {"is_old": True}], ids=["shared", "three tables", "old"]
)
def test_every_piece_has_the_log_probability_of_ctranslate2s_conversion(
    tmp_path: Path, shape: dict[str, bool]
) -> None:
    path = saved(tmp_path / "opennmt", random_parts(**shape))
    checkpoint = imported_checkpoint(OpenNMTImporter().read(path, PAIRS))
    assert checkpoint.manifest.network.norm_epsilon == 1e-6
    OpenNMTPyConverter(str(path), unsafe_deserialization=True).convert(str(tmp_path / "engine"))
    config = json.loads((tmp_path / "engine" / "config.json").read_text())
    config["layer_norm_epsilon"] = 1e-6  # OpenNMT-py's own, which the conversion forgets
    (tmp_path / "engine" / "config.json").write_text(json.dumps(config))
    engine = ctranslate2.Translator(str(tmp_path / "engine"), compute_type="float32")
    model, pair = PieceModel(tiny_spm()), checkpoint.manifest.pairs[0]
    sentences = real_looking_sentences(12)
    references = sentences[::-1]
    found = engine.score_batch(
        list(map(model.pieces, sentences)), list(map(model.pieces, references))
    )
    for sentence, reference, theirs in zip(sentences, references, found, strict=True):
        ours = token_log_probs(
            checkpoint.transformer,
            checkpoint.tokenizer.encode(sentence, pair),
            checkpoint.tokenizer.target_prefix(pair),
            checkpoint.tokenizer.encode_target(reference),
        )
        assert theirs.log_probs == pytest.approx(ours, abs=1e-4)


def test_a_folder_with_a_checkpoint_is_converted(tmp_path: Path) -> None:
    path = saved(tmp_path / "opennmt", random_parts(is_gated=True))
    manifest = convert(path.parent, tmp_path / "ours", importers=IMPORTERS, options=PAIRS)
    assert manifest.name == "model_step_100"
    assert manifest.network.gated_feed_forward
    assert manifest.network.activation == "silu"
    assert (manifest.network.share_embeddings, manifest.network.tie_output) == (True, True)
    assert not manifest.tokens.has_source_eos
    load_checkpoint(tmp_path / "ours")


@pytest.mark.parametrize("has_bias", [False, True])
def test_padding_that_is_added_has_no_probability(tmp_path: Path, has_bias: bool) -> None:
    parts = random_parts()
    pieces = [piece.replace("<blank>", "<unused>") for piece in parts["vocab"]["src"]]
    parts["vocab"] |= {"src": pieces, "tgt": pieces}
    stored = parts["generator"]["bias"] if has_bias else torch.zeros(len(pieces))
    if not has_bias:
        del parts["generator"]["bias"]
    imported = OpenNMTImporter().read(saved(tmp_path / "opennmt", parts), PAIRS)
    assert imported.network.output_bias
    assert imported.tokens.pad_id == len(pieces)
    bias = imported.tensors["output_bias"].read()
    assert isinstance(bias, Tensor)
    assert imported.tensors["output_bias"].shape == bias.shape == (len(pieces) + 1,)
    assert torch.equal(bias[:-1], stored)
    assert bias[-1] == -1e4


def problems_of(path: Path, options: ImportOptions = PAIRS) -> str:
    with pytest.raises(ForeignModelError) as caught:
        OpenNMTImporter().read(path, options)
    return "; ".join(caught.value.problems)


def test_every_option_that_is_not_supported_is_told_at_once(tmp_path: Path) -> None:
    parts = random_parts()
    for name, value in {
        "encoder_type": "brnn",
        "max_relative_positions": 20,
        "position_encoding": False,
        "self_attn_type": "average",
        "layer_norm": "rms",
        "copy_attn": True,
        "multiquery": True,
        "pos_ffn_activation_fn": "tanh",
        "heads": "many",
        "norm_eps": 3,
    }.items():
        setattr(parts["opt"], name, value)
    found = problems_of(saved(tmp_path, parts), ImportOptions())
    for problem in (
        "encoder_type is 'brnn'",
        "max_relative_positions is 20; only 0",
        "position_encoding is False; only True",
        "self_attn_type is 'average'",
        "layer_norm is 'rms'",
        "copy_attn is True",
        "multiquery is True",
        "pos_ffn_activation_fn is 'tanh'; it must be one of relu, gelu, fast_gelu, silu",
        "num_heads is 'many'",
        "norm_eps is 3",
        "do not say which languages",
    ):
        assert problem in found


def drop(part: str, name: str) -> Callable[[Parts], object]:
    return lambda parts: parts[part].pop(name)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (drop("model", "encoder.layer_norm.weight"), "it lacks encoder.layer_norm.weight"),
        (drop("generator", "weight"), "it lacks generator.weight"),
        (drop("vocab", "tgt"), "its vocabulary has no list of pieces as 'tgt'"),
        (lambda parts: parts["vocab"]["src"].append("more"), "has 601 rows for 602 pieces"),
        (lambda parts: parts["model"].update(step=3), "'step' is no tensor"),
        (lambda parts: parts.update(opt={}), "its options (opt) are no argparse.Namespace"),
        (lambda parts: parts.update(vocab=Path("x")), "wants to run code"),
        (
            lambda parts: parts["model"].update(
                {"encoder.embeddings.make_embedding.pe.pe": torch.randn(300, 1, WIDTH)}
            ),
            "its position tables are none that are computed here",
        ),
    ],
)
def test_what_is_missing_or_odd_is_named(
    tmp_path: Path, change: Callable[[Parts], object], problem: str
) -> None:
    parts = random_parts()
    change(parts)
    assert problem in problems_of(saved(tmp_path, parts))


def test_a_tensor_that_nothing_reads_stops_the_conversion(tmp_path: Path) -> None:
    parts = random_parts()
    parts["model"]["encoder.extra.weight"] = torch.ones(2, 2)
    path = saved(tmp_path / "opennmt", parts)
    with pytest.raises(ForeignModelError, match=r"encoder\.extra\.weight is in the source and"):
        convert(path, tmp_path / "ours", importers=IMPORTERS, options=PAIRS)
    assert not (tmp_path / "ours").exists()


def test_a_checkpoint_is_recognised_by_its_content(tmp_path: Path) -> None:
    importer = OpenNMTImporter()
    path = saved(tmp_path / "opennmt", random_parts())
    assert importer.recognises(path)
    assert importer.recognises(path.parent)
    assert not importer.recognises(tmp_path)
    assert not importer.recognises(tmp_path / "missing.pt")
    (tmp_path / "text.pt").write_bytes(b"model generator vocab opt")
    assert not importer.recognises(tmp_path / "text.pt")
    torch.save({"model": torch.ones(2)}, tmp_path / "other.pt")
    assert not importer.recognises(tmp_path / "other.pt")


def test_a_truncated_checkpoint_is_one_clear_error(tmp_path: Path) -> None:
    path = saved(tmp_path, random_parts())
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert "is no checkpoint of OpenNMT-py" in problems_of(path)
