"""FSMT as transformers writes it, against transformers."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import FSMTTokenizer, PreTrainedModel

from model.checkpoint.weights import load_checkpoint
from model.config import SearchConfig
from model.errors import ForeignModelError
from model.exchange.imports.convert import convert
from model.exchange.imports.huggingface.fsmt import FsmtImporter
from model.exchange.imports.imported import ImportOptions
from model.offline.translator import Translator
from support.foreign_folders import change_json, write_fsmt
from support.learned_merges import real_lines
from support.reference_parity import check_hypotheses, check_logits

ANY = ImportOptions()


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PreTrainedModel]:
    folder = tmp_path_factory.mktemp("hub") / "wmt19-en-ru"
    return folder, write_fsmt(folder, is_joint=False)


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PreTrainedModel]:
    folder = tmp_path_factory.mktemp("hub") / "wmt19-en-de"
    return folder, write_fsmt(folder, is_joint=True)


@pytest.fixture
def folder(split: tuple[Path, PreTrainedModel], tmp_path: Path) -> Path:
    """A copy to damage."""
    copy = tmp_path / split[0].name
    copy.mkdir()
    for path in split[0].iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    return copy


def problems(folder: Path, options: ImportOptions = ANY) -> tuple[str, ...]:
    with pytest.raises(ForeignModelError) as caught:
        FsmtImporter().read(folder, options)
    return caught.value.problems


def change_weights(folder: Path, **changes: torch.Tensor | None) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path) | changes
    kept = {name: value for name, value in weights.items() if value is not None}
    save_file(kept, path, metadata={"format": "pt"})


def test_it_is_recognised_by_its_config(folder: Path, tmp_path: Path) -> None:
    assert FsmtImporter().recognises(folder)
    change_json(folder / "config.json", model_type="bart")
    assert not FsmtImporter().recognises(folder)
    assert not FsmtImporter().recognises(tmp_path)


@pytest.mark.parametrize("name", ["split", "joint"])
def test_encoder_output_and_logits_are_those_of_transformers(
    request: pytest.FixtureRequest, name: str
) -> None:
    folder, reference = request.getfixturevalue(name)
    imported = FsmtImporter().read(folder, ANY)
    assert imported.network.decoder_d_ff == 28 != imported.network.d_ff
    assert imported.network.share_embeddings is (name == "joint")
    assert imported.network.tie_output is (name == "joint")
    check_logits(reference, imported)


@pytest.mark.parametrize("beam_size", [1, 5])
@pytest.mark.parametrize("name", ["split", "joint"])
def test_hypotheses_and_scores_are_those_of_generate(
    request: pytest.FixtureRequest, name: str, beam_size: int
) -> None:
    folder, reference = request.getfixturevalue(name)
    check_hypotheses(reference, FsmtImporter().read(folder, ANY), beam_size=beam_size)


def test_tables_that_say_the_same_are_one(
    joint: tuple[Path, PreTrainedModel], folder: Path
) -> None:
    for path in joint[0].iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    names = ("encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection")
    weights = load_file(folder / "model.safetensors")
    full = [f"model.{name}.weight" for name in names]
    table = next(weights[name] for name in full if name in weights)
    change_weights(folder, **{name: table.clone() for name in full})
    imported = FsmtImporter().read(folder, ANY)
    assert imported.network.share_embeddings
    assert imported.network.tie_output
    check_logits(joint[1], imported)


@pytest.mark.parametrize("name", ["split", "joint"])
def test_ids_of_text_are_those_of_its_tokenizer_and_text_comes_back(
    request: pytest.FixtureRequest, name: str, tmp_path: Path
) -> None:
    folder, _ = request.getfixturevalue(name)
    convert(folder, tmp_path / "out", importers=[FsmtImporter()], licence="Apache-2.0")
    checkpoint = load_checkpoint(tmp_path / "out")
    (pair,) = checkpoint.manifest.pairs
    theirs = FSMTTokenizer(
        langs=["en", "de"],
        src_vocab_file=str(folder / "vocab-src.json"),
        tgt_vocab_file=str(folder / "vocab-tgt.json"),
        merges_file=str(folder / "merges.txt"),
    )
    target_ids = json.loads((folder / "vocab-tgt.json").read_bytes())
    for line in real_lines()[:500]:
        ids = checkpoint.tokenizer.encode(line, pair)
        assert ids == theirs(line, split_special_tokens=True)["input_ids"]
        written = [target_ids[piece] for piece in theirs.tokenize(line) if piece in target_ids]
        expected = theirs.decode(
            written, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        assert checkpoint.tokenizer.decode(written) == expected


def test_text_can_be_translated_with_what_was_converted(
    split: tuple[Path, PreTrainedModel], tmp_path: Path
) -> None:
    convert(split[0], tmp_path / "out", importers=[FsmtImporter()], licence="Apache-2.0")
    checkpoint = load_checkpoint(tmp_path / "out")
    translator = Translator(checkpoint, max_rows=2)
    (translation,) = translator.translate(
        ["Two men are outside."], checkpoint.manifest.pairs[0], SearchConfig(beam_size=2)
    )
    assert translation.segments[0].num_source_tokens > 4


def test_the_pair_is_that_of_its_languages(folder: Path) -> None:
    pair = FsmtImporter().read(folder, ANY).pairs[0]
    assert (pair.source, pair.target) == ("en", "de")
    assert FsmtImporter().read(folder, ImportOptions(pairs=(("en", "de"),))).pairs == (pair,)
    assert problems(folder, ImportOptions(pairs=(("de", "en"),))) == (
        "translates from en to de, not from de to en",
    )


def test_rows_without_a_piece_and_what_begins_sentences_are_never_written(folder: Path) -> None:
    table = json.loads((folder / "vocab-tgt.json").read_bytes())
    (last,) = [piece for piece, index in table.items() if index == len(table) - 1]
    change_json(folder / "vocab-tgt.json", **{last: None})
    imported = FsmtImporter().read(folder, ANY)
    assert imported.tokens.suppressed_ids == (0, 1, len(table) - 1)


def test_all_problems_are_told_together(folder: Path) -> None:
    name = "model.encoder.layers.0.self_attn.q_proj.bias"
    change_weights(folder, **{name: None})
    (folder / "merges.txt").write_bytes(b"not merges\nbut\n")
    change_json(folder / "vocab-src.json", **{"<pad>": 9_999})
    (folder / "vocab-tgt.json").write_text('{"a": "b"}')
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    change_json(
        folder / "config.json",
        langs=["en"],
        activation_function="swish",
        encoder_layers=10**9,
    )
    change_json(folder / "generation_config.json", decoder_start_token_id=0)
    found = problems(folder)
    for part in (
        "vocab-src.json has <pad> as 9999; it must be 1",
        "vocab-tgt.json is no JSON object from pieces to integers",
        "merges.txt has 'but' on line 2; a merge is two symbols",
        "do_lower_case is true; only false is known",
        "langs is ['en']; it must be two languages",
        "activation_function is 'swish'; only relu, gelu",
        "decoder_start_token_id is 0; only 2",
        "encoder_layers is 1000000000; it must be from 1 to 1024",
        f"{name} is missing",
    ):
        assert any(part in problem for problem in found), (part, found)


@pytest.mark.parametrize("name", ["merges.txt", "vocab-src.json", "vocab-tgt.json"])
def test_a_file_that_is_missing_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert f"{name} is missing" in problems(folder)
