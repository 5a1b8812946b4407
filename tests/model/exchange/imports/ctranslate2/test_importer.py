"""The importer of CTranslate2 directories: what it keeps, what it refuses, and the way back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from transformers import MarianConfig, MarianMTModel

from model.checkpoint.weights import load_checkpoint
from model.errors import ForeignModelError
from model.exchange.export.ctranslate2 import export_ctranslate2
from model.exchange.imports.convert import convert
from model.exchange.imports.ctranslate2.file import VariableFile
from model.exchange.imports.ctranslate2.importer import CTranslate2Importer
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportedModel, ImportOptions, QuantisedRows
from model.text.subwords.pieces import PieceModel
from support.imported_models import imported_checkpoint, imported_state
from support.teacher_forcing import token_log_probs
from support.tiny_checkpoint import tiny_spm

ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

from ctranslate2.converters import TransformersConverter  # noqa: E402  # same
from ctranslate2.specs import TransformerSpec  # noqa: E402  # needs CTranslate2

from support.ctranslate2_files import model_bytes  # noqa: E402  # stands with them
from support.ctranslate2_models import (  # noqa: E402
    RandomSpec,
    changed_spec,
    opennmt_pieces,
    random_directory,
    random_spec,
    save_spec,
)

PAIRS = ImportOptions(pairs=(("en", "de"),))
TEXT, REFERENCE = "My friend sees the river.", "The cat paints a letter."


def read(directory: Path) -> ImportedModel:
    return CTranslate2Importer().read(directory, PAIRS)


def problems_of(directory: Path, options: ImportOptions = PAIRS) -> tuple[str, ...]:
    with pytest.raises(ForeignModelError) as caught:
        CTranslate2Importer().read(directory, options)
    return caught.value.problems


def gap(directory: Path, *, source_ending: tuple[str, ...] = ()) -> float:
    """Between the engine's log probabilities and ours, of one sentence."""
    checkpoint = imported_checkpoint(read(directory))
    tokenizer, pair = checkpoint.tokenizer, checkpoint.manifest.pairs[0]
    ours = token_log_probs(
        checkpoint.transformer,
        tokenizer.encode(TEXT, pair),
        tokenizer.target_prefix(pair),
        tokenizer.encode_target(REFERENCE),
    )
    model = PieceModel(tiny_spm())
    engine = ctranslate2.Translator(str(directory), compute_type="float32", intra_threads=1)
    (theirs,) = engine.score_batch(
        [[*model.pieces(TEXT), *source_ending]], [model.pieces(REFERENCE)]
    )
    return max(abs(one - two) for one, two in zip(ours, theirs.log_probs, strict=True))


def test_int8_bytes_of_the_file_are_those_of_the_checkpoint(tmp_path: Path) -> None:
    directory = random_directory(tmp_path / "engine", quantization="int8")
    convert(directory, tmp_path / "ours", importers=IMPORTERS, options=PAIRS)
    file = VariableFile(directory / "model.bin")
    rows = {
        "source_embedding.weight": ("decoder/embeddings/weight", 0, 601),
        "encoder.layers.1.self_attention.k_proj.weight": (
            "encoder/layer_1/self_attention/linear_0/weight",
            32,
            64,
        ),
        "decoder.layers.0.cross_attention.v_proj.weight": (
            "decoder/layer_0/attention/linear_1/weight",
            32,
            64,
        ),
        "decoder.layers.1.feed_forward.down_proj.weight": (
            "decoder/layer_1/ffn/linear_1/weight",
            0,
            32,
        ),
    }
    with safe_open(tmp_path / "ours" / "model.safetensors", framework="pt") as stored:
        for name, (path, start, stop) in rows.items():
            assert torch.equal(stored.get_tensor(name), file.values(path, start, stop))
            scale = 1 / file.values(f"{path}_scale", start, stop)
            assert torch.equal(stored.get_tensor(f"{name}.scale"), scale)
    load_checkpoint(tmp_path / "ours")


def test_every_matrix_of_an_int8_file_stays_quantised(tmp_path: Path) -> None:
    imported = read(random_directory(tmp_path / "engine", quantization="int8"))
    kinds = {
        name: isinstance(tensor.read(), QuantisedRows) for name, tensor in imported.tensors.items()
    }
    assert kinds == {name: len(each.shape) == 2 for name, each in imported.tensors.items()}


@pytest.mark.parametrize("version", [2, 3, 4, 5])
@pytest.mark.parametrize("quantization", [None, "int8"])
def test_older_files_are_read_as_the_engine_reads_them(
    tmp_path: Path, version: int, quantization: str | None
) -> None:
    directory = random_directory(tmp_path / "engine", quantization=quantization)
    file = VariableFile(directory / "model.bin")
    variables = {name: file.values(name) for name in file.variables}
    variables["unk_token"] = torch.tensor(list(b"<unk>"), dtype=torch.int8)
    (directory / "model.bin").write_bytes(model_bytes(variables, version=version))
    (directory / "config.json").unlink()
    pieces = json.loads((directory / "shared_vocabulary.json").read_text())
    (directory / "shared_vocabulary.json").unlink()
    (directory / "shared_vocabulary.txt").write_text("\n".join(pieces) + "\n")
    imported = read(directory)
    assert imported.network.share_embeddings
    assert imported.network.tie_output
    assert gap(directory) < 1e-4


def test_each_side_has_its_own_vocabulary(tmp_path: Path) -> None:
    pieces = opennmt_pieces()
    source = [*pieces[4:], "<unk>", "<blank>"]  # as OpenNMT-py made them: without <s> and </s>
    wanted = RandomSpec(source=source, target=pieces, is_shared=False)
    directory = random_directory(tmp_path / "engine", wanted)
    imported = read(directory)
    assert (imported.network.vocab_size, imported.network.target_vocab_size) == (601, None)
    assert gap(directory) < 1e-4


def test_a_source_begins_with_bos_where_the_engine_puts_it(tmp_path: Path) -> None:
    spec = random_spec(RandomSpec())
    spec.config.add_source_bos, spec.config.add_source_eos = True, True
    directory = save_spec(spec, tmp_path / "engine")
    imported = read(directory)
    assert imported.pairs[0].source_prefix == ("<s>",)
    assert imported.tokens.has_source_eos
    assert gap(directory) < 1e-4


def random_marian(directory: Path, num_pieces: int) -> MarianMTModel:
    """A network of Hugging Face's Marian, whose last piece is `<pad>`."""
    config = MarianConfig(
        vocab_size=num_pieces,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_position_embeddings=128,
        scale_embedding=True,
        activation_function="swish",
        pad_token_id=num_pieces - 1,
        decoder_start_token_id=num_pieces - 1,
        eos_token_id=0,
        forced_eos_token_id=0,
        init_std=0.3,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        network = MarianMTModel(config).eval()
    network.save_pretrained(directory)
    return network


def test_a_marian_network_by_transformers_converter(tmp_path: Path) -> None:
    names = ["</s>", "<unk>", *opennmt_pieces()[4:], "<pad>"]
    random_marian(tmp_path / "huggingface", len(names))

    class Names:
        eos_token, unk_token = "</s>", "<unk>"

        def get_vocab(self) -> dict[str, int]:
            return {name: index for index, name in enumerate(names)}

    class Converter(TransformersConverter):  # type: ignore[misc]  # untyped
        """Without the tokenizer, which the directory does not have."""

        def load_tokenizer(self, *_arguments: object, **_options: object) -> Names:
            return Names()

    Converter(str(tmp_path / "huggingface")).convert(str(tmp_path / "engine"))
    (tmp_path / "engine" / "sentencepiece.model").write_bytes(tiny_spm())
    imported = read(tmp_path / "engine")
    assert imported.family == "Marian"
    assert imported.network.position == "sinusoidal-marian"
    assert imported.network.norm_placement == "post"
    assert imported.tokens.has_source_eos
    assert imported.tokens.pad_id == imported.tokens.start_id == len(names) - 1
    assert gap(tmp_path / "engine", source_ending=("</s>",)) < 1e-4


def test_a_checkpoint_that_is_exported_again_has_the_same_tensors(tmp_path: Path) -> None:
    directory = random_directory(tmp_path / "engine")
    convert(directory, tmp_path / "ours", importers=IMPORTERS, options=PAIRS, compute="float32")
    export_ctranslate2(load_checkpoint(tmp_path / "ours"), tmp_path / "back")
    before, after = (
        VariableFile(folder / "model.bin") for folder in (directory, tmp_path / "back")
    )
    positions = {name for name in before.variables if "position_encodings" in name}
    assert len(positions) == 2
    for name in before.variables.keys() - positions:
        assert torch.equal(before.values(name), after.values(name)), name
    for name in positions:
        rows = before.values(name)
        assert torch.allclose(rows, after.values(name, 0, len(rows)), atol=1e-6)
    config = json.loads((tmp_path / "back" / "config.json").read_text())
    assert (config["add_source_eos"], config["decoder_start_token"]) == (False, "<s>")
    first, second = read(directory), read(tmp_path / "back")
    assert second.tokens == first.tokens
    again = imported_state(second)
    for name, value in imported_state(first).items():
        assert torch.equal(value, again[name])


def _set(path: str, value: object) -> Callable[[TransformerSpec], object]:
    def change(spec: Any) -> None:
        *scope, name = path.split("/")
        for part in scope:
            spec = spec[int(part)] if part.isdigit() else getattr(spec, part)
        object.__setattr__(spec, name, value)

    return change


TABLE = np.ones((3, 8), dtype=np.float32)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_set("encoder/layer/0/self_attention/relative_attention_bias", TABLE), "relative_att"),
        (_set("decoder/layer/1/self_attention/relative_position_keys", TABLE), "relative_pos"),
        (_set("decoder/layer/1/self_attention/rotary_dim", np.int32(8)), "rotary_dim"),
        (_set("encoder/layer/0/self_attention/num_heads_kv", np.int32(1)), "num_heads_kv"),
        (_set("encoder/layer/0/self_attention/head_dim", np.int32(4)), "head_dim is not 8"),
        (_set("decoder/layer/0/self_attention/queries_scale", np.float32(1)), "queries_scale"),
        (_set("decoder/alibi", True), "alibi"),
        (_set("encoder/multi_query_attention", True), "multi_query_attention"),
        (_set("decoder/scale_outputs", np.float32(0.5)), "scale_outputs"),
        (_set("decoder/final_logit_softcapping", np.float32(30)), "softcapping"),
        (
            _set("encoder/activation", np.int8(5)),
            "activation is 5 in the encoder, 0 in the decoder",
        ),
        (_set("encoder/pre_norm", False), "pre_norm is 0 in the encoder, 1 in the decoder"),
        (_set("encoder/num_heads", np.int16(5)), "5 heads do not divide 32 columns"),
        (_set("encoder/scale_embeddings", 3.0), "scale_embeddings is 3; it must be 1 or √32"),
        (_set("decoder/scale_embeddings", False), "embeddings are scaled on one side only"),
        (_set("decoder/position_encodings/encodings", TABLE), "has the shape [3, 8]"),
        (
            _set("encoder/layer/0/ffn/linear_1/bias", np.zeros(7, dtype=np.float32)),
            "encoder/layer_0/ffn/linear_1/bias has the shape [7]; it must be [32]",
        ),
    ],
)
def test_what_has_no_word_here_is_refused_by_its_name(
    tmp_path: Path, change: Callable[[TransformerSpec], object], problem: str
) -> None:
    spec = changed_spec(random_spec(RandomSpec()), change)
    found = problems_of(save_spec(spec, tmp_path / "engine"))
    assert any(problem in each for each in found), found


def test_variables_that_differ_in_a_number_are_one_problem(tmp_path: Path) -> None:
    spec = random_spec(RandomSpec())
    for index in (0, 1):
        _set(f"encoder/layer/{index}/self_attention/sliding_window", np.int32(9))(spec)
    (problem,) = problems_of(save_spec(spec, tmp_path / "engine"))
    assert (
        problem == "'encoder/layer_*/self_attention/sliding_window' (2 variables) is not supported"
    )


def test_a_missing_variable_is_named(tmp_path: Path) -> None:
    directory = random_directory(tmp_path / "engine")
    file = VariableFile(directory / "model.bin")
    gone = "decoder/layer_1/attention/linear_1/weight"
    variables = {name: file.values(name) for name in file.variables if name != gone}
    (directory / "model.bin").write_bytes(model_bytes(variables))
    assert problems_of(directory) == (f"it lacks {gone}",)


EXTRA, GONE = "encoder/odd", "decoder/layer_1/attention/linear_1/weight"


def with_other_variables(directory: Path, *gone: str, **changes: torch.Tensor) -> Path:
    """The same directory without some variables, with one that nothing reads, and with changes."""
    file = VariableFile(directory / "model.bin")
    variables = {name: file.values(name) for name in file.variables if name not in gone}
    data = model_bytes({**variables, EXTRA: torch.ones(2), **changes})
    (directory / "model.bin").write_bytes(data)
    return directory


@pytest.mark.parametrize(
    "damage",
    [
        {"config.json": '{"layer_norm_epsilon": -1}'},
        {"config.json": '{"unk_token": 3}'},
        {"config.json": "{"},
        {"shared_vocabulary.json": "{}"},
        {"shared_vocabulary.json": json.dumps([f"word{number}" for number in range(601)])},
        {"sentencepiece.model": "damaged"},
    ],
)
def test_variables_are_told_whatever_else_is_wrong(tmp_path: Path, damage: dict[str, str]) -> None:
    directory = with_other_variables(random_directory(tmp_path / "engine"), GONE)
    for name, text in damage.items():
        (directory / name).write_text(text, encoding="utf-8")
    found = problems_of(directory)
    assert f"it lacks {GONE}" in found
    assert f"'{EXTRA}' is not supported" in found
    assert len(found) >= 3
    assert not any(" shape " in problem or "rows" in problem for problem in found)


def test_directions_are_told_whatever_config_json_says(tmp_path: Path) -> None:
    directory = random_directory(tmp_path / "engine")
    (directory / "config.json").write_text('{"unk_token": 3}', encoding="utf-8")
    found = problems_of(directory, ImportOptions())
    assert len(found) == 2
    assert "name the directions" in found[1]


@pytest.mark.parametrize(
    "gone",
    [
        "encoder/layer_0/self_attention/linear_0/weight",
        "encoder/layer_0/ffn/linear_0/weight",
        "decoder/layer_0/ffn/linear_0/weight",
        "encoder/embeddings_0/weight",
    ],
)
def test_without_a_matrix_that_shows_a_size_others_are_told_still(
    tmp_path: Path, gone: str
) -> None:
    directory = random_directory(tmp_path / "engine")
    before = {*VariableFile(directory / "model.bin").variables}
    names = {gone} if gone in before else {gone.replace("_0", "")}
    found = problems_of(with_other_variables(directory, *names, GONE))
    told = {f"it lacks {name}" for name in {*names, GONE}}
    assert {*found} == {*told, f"'{EXTRA}' is not supported"}


def test_a_number_that_is_several_is_told_with_variables(tmp_path: Path) -> None:
    directory = random_directory(tmp_path / "engine")
    changes = {"encoder/num_heads": torch.tensor([4, 4], dtype=torch.int16)}
    found = problems_of(with_other_variables(directory, GONE, **changes))
    assert any("encoder/num_heads" in problem for problem in found)
    assert f"it lacks {GONE}" in found


def test_all_that_is_missing_beside_the_file_is_told_at_once(tmp_path: Path) -> None:
    directory = random_directory(tmp_path / "engine")
    (directory / "sentencepiece.model").unlink()
    (directory / "shared_vocabulary.json").unlink()
    (directory / "config.json").write_text('{"unk_token": 3, "layer_norm_epsilon": -1}')
    found = "; ".join(problems_of(directory))
    for problem in (
        "config.json: unk_token is 3; it must be a string",
        "config.json: layer_norm_epsilon is -1",
        "source_vocabulary.json, and shared_vocabulary.json, are missing",
        "it lacks a SentencePiece file (source.spm with target.spm, sentencepiece.model",
    ):
        assert problem in found


def test_pieces_of_another_model_are_refused(tmp_path: Path) -> None:
    pieces = [*opennmt_pieces()[:4], *(f"word{number}" for number in range(597))]
    (problem, _) = problems_of(random_directory(tmp_path / "engine", RandomSpec(source=pieces)))
    assert "it belongs to another model" in problem


def test_a_start_that_callers_choose_is_refused(tmp_path: Path) -> None:
    spec = random_spec(RandomSpec())
    spec.config.decoder_start_token = None
    found = problems_of(save_spec(spec, tmp_path / "engine"))
    assert found == ("its first target token is chosen by its callers, which is not supported",)


def test_a_table_of_another_size_than_its_vocabulary_is_refused(tmp_path: Path) -> None:
    directory = random_directory(tmp_path / "engine")
    pieces = json.loads((directory / "shared_vocabulary.json").read_text())
    (directory / "shared_vocabulary.json").write_text(json.dumps([*pieces, "more"]))
    assert any("[601, 32]; it must be [602, 32]" in each for each in problems_of(directory))


def test_other_specifications_are_recognised_and_refused(tmp_path: Path) -> None:
    data = model_bytes({"decoder/num_heads": torch.tensor(8, dtype=torch.int16)})
    (tmp_path / "model.bin").write_bytes(
        data.replace(b"\x10\0TransformerSpec", b"\x0c\0WhisperSpec")
    )
    assert CTranslate2Importer().recognises(tmp_path)
    (problem,) = problems_of(tmp_path)
    assert "is of specification 'WhisperSpec', revision 7; only encoder-decoder" in problem


def test_a_vocabulary_map_is_noted(tmp_path: Path) -> None:
    directory = random_directory(tmp_path / "engine")
    assert not any("vmap.txt" in note for note in read(directory).notes)
    (directory / "vmap.txt").write_text("\tthe\n")
    assert any("vmap.txt is not used" in note for note in read(directory).notes)


def test_a_learned_table_bounds_the_lengths(tmp_path: Path) -> None:
    imported = read(random_directory(tmp_path / "engine", RandomSpec(positions="learned")))
    assert imported.network.position == "learned"
    assert imported.network.max_positions == 90
    assert (imported.limits.max_source_length, imported.limits.max_target_length) == (90, 90)
