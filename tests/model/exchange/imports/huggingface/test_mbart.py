"""mBART-50 as transformers writes it, against transformers."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import MBart50Tokenizer, PreTrainedModel

from model.checkpoint.weights import load_checkpoint
from model.errors import ForeignModelError
from model.exchange.imports.convert import convert
from model.exchange.imports.huggingface.mbart import MBartImporter
from model.exchange.imports.imported import ImportOptions
from model.exchange.imports.language_tokens import MBART_CODES
from support.foreign_folders import change_json, write_mbart
from support.learned_merges import real_lines
from support.reference_parity import check_hypotheses, check_logits

OPTIONS = ImportOptions(pairs=(("en", "de"), ("zh-Hans", "ro")))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PreTrainedModel]:
    folder = tmp_path_factory.mktemp("hub") / "mbart-large-50-many-to-many-mmt"
    return folder, write_mbart(folder)


@pytest.fixture
def folder(written: tuple[Path, PreTrainedModel], tmp_path: Path) -> Path:
    """A copy to damage."""
    copy = tmp_path / written[0].name
    copy.mkdir()
    for path in written[0].iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    return copy


def problems(folder: Path, options: ImportOptions = OPTIONS) -> tuple[str, ...]:
    with pytest.raises(ForeignModelError) as caught:
        MBartImporter().read(folder, options)
    return caught.value.problems


def test_it_is_recognised_by_its_config(folder: Path, tmp_path: Path) -> None:
    assert MBartImporter().recognises(folder)
    change_json(folder / "config.json", model_type="bart")
    assert not MBartImporter().recognises(folder)
    assert not MBartImporter().recognises(tmp_path)


def test_encoder_output_and_logits_are_those_of_transformers(
    written: tuple[Path, PreTrainedModel],
) -> None:
    check_logits(written[1], MBartImporter().read(written[0], OPTIONS))


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_activations_are_those_of_the_config(tmp_path: Path, activation: str) -> None:
    reference = write_mbart(tmp_path / "mbart", activation_function=activation)
    imported = MBartImporter().read(tmp_path / "mbart", OPTIONS)
    assert imported.network.activation == activation
    check_logits(reference, imported)


def test_a_bias_of_zeros_is_none(folder: Path) -> None:
    assert MBartImporter().read(folder, OPTIONS).network.output_bias
    weights = load_file(folder / "model.safetensors")
    weights["final_logits_bias"].zero_()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    imported = MBartImporter().read(folder, OPTIONS)
    assert not imported.network.output_bias
    assert imported.unused == ()


@pytest.mark.parametrize("beam_size", [1, 5])
def test_hypotheses_and_scores_are_those_of_generate(
    written: tuple[Path, PreTrainedModel], beam_size: int
) -> None:
    imported = MBartImporter().read(written[0], OPTIONS)
    check_hypotheses(written[1], imported, beam_size=beam_size)


def test_ids_of_text_are_those_of_its_tokenizer(
    written: tuple[Path, PreTrainedModel], tmp_path: Path
) -> None:
    convert(
        written[0], tmp_path / "out", importers=[MBartImporter()], options=OPTIONS, licence="MIT"
    )
    checkpoint = load_checkpoint(tmp_path / "out")
    ours = checkpoint.tokenizer
    theirs = MBart50Tokenizer.from_pretrained(written[0], src_lang="en_XX", tgt_lang="de_DE")
    pair = checkpoint.manifest.pairs[0]
    lines = [line for line in real_lines()[:1000] if "<" not in line]
    ties = 0
    for line in lines:
        ids, expected = ours.encode(line, pair), theirs(line)["input_ids"]
        assert len(ids) == len(expected)
        ties += ids != expected  # of two ways to cut a word that are equally likely
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
    assert ties <= 2
    assert len(lines) > 900
    assert ours.target_prefix(pair) == [2, theirs.convert_tokens_to_ids("de_DE")]


def test_all_directions_are_there_unless_some_are_asked_for(folder: Path) -> None:
    imported = MBartImporter().read(folder, ImportOptions())
    assert len(imported.languages) == len(MBART_CODES)
    assert len(imported.pairs) == len(MBART_CODES) * (len(MBART_CODES) - 1)
    assert [(pair.source, pair.target) for pair in MBartImporter().read(folder, OPTIONS).pairs] == [
        ("en", "de"),
        ("zh-Hans", "ro"),
    ]
    unknown = ImportOptions(pairs=(("en", "tlh"),))
    (problem,) = problems(folder, unknown)
    assert problem.startswith("does not have tlh; it has af, ar, ")


def test_a_forced_first_token_is_the_only_target(folder: Path) -> None:
    size = json.loads((folder / "config.json").read_bytes())["vocab_size"]
    english = size - 1 - len(MBART_CODES) + MBART_CODES.index("en_XX")
    change_json(folder / "config.json", forced_bos_token_id=english)
    assert len(MBartImporter().read(folder, ImportOptions()).languages) == len(MBART_CODES)
    change_json(folder / "generation_config.json", forced_bos_token_id=english)
    imported = MBartImporter().read(folder, ImportOptions())
    assert {pair.target for pair in imported.pairs} == {"en"}
    assert len(imported.pairs) == len(MBART_CODES) - 1
    (note,) = imported.notes
    assert note == (
        "It forces en (forced_bos_token_id), its only target; a conversion that names directions"
        " has others."
    )
    assert MBartImporter().read(folder, OPTIONS).notes == ()
    (folder / "generation_config.json").unlink()
    assert MBartImporter().read(folder, ImportOptions()).pairs == imported.pairs


def test_a_network_from_english_has_no_other_source(folder: Path) -> None:
    renamed = folder.rename(folder.with_name("mbart-large-50-one-to-many-mmt"))
    assert {pair.source for pair in MBartImporter().read(renamed, ImportOptions()).pairs} == {"en"}


def test_tags_of_directions_that_were_not_asked_for_are_never_written(folder: Path) -> None:
    imported = MBartImporter().read(folder, OPTIONS)
    source, target = imported.tokenizer.tables()
    assert {code for code in MBART_CODES if code in source} == {"en_XX", "zh_CN"}
    assert {code for code in MBART_CODES if code in target} == {"de_DE", "ro_RO"}
    nameless = set(range(imported.network.vocab_size)) - set(target.values()) - {2, 3}
    assert nameless == set(imported.tokens.suppressed_ids)


def test_the_first_mbart_is_refused_by_its_name(tmp_path: Path) -> None:
    reference = write_mbart(tmp_path / "mbart")
    first = reference.config.vocab_size - len(MBART_CODES) + 25
    (tmp_path / "cc25").mkdir()
    write_mbart(tmp_path / "cc25", vocab_size=first)
    (problem,) = problems(tmp_path / "cc25")
    assert "is the first mBART (cc25), whose language tags stand behind sentences" in problem


def test_all_problems_are_told_together(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["model.decoder.layers.1.fc1.bias"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "sentencepiece.bpe.model").unlink()
    change_json(
        folder / "config.json",
        decoder_attention_heads=2,
        activation_function="tanh",
        encoder_layers=True,
        decoder_ffn_dim=0,
        add_final_layer_norm=False,
    )
    change_json(folder / "generation_config.json", decoder_start_token_id=0)
    found = problems(folder)
    for part in (
        "sentencepiece.bpe.model is missing",
        "encoder_attention_heads is 4, decoder_attention_heads is 2",
        "activation_function is 'tanh'; only gelu, relu",
        "encoder_layers is True; it must be an integer",
        "decoder_ffn_dim is 0; it must be from 1",
        "decoder_start_token_id is 0; only 2",
        "add_final_layer_norm is False; only True",
        "model.decoder.layers.1.fc1.bias is missing",
    ):
        assert any(part in problem for problem in found), part
    assert len(found) == 8


def test_what_nothing_reads_fails_the_conversion(folder: Path, tmp_path: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["model.encoder.adapter.weight"] = torch.zeros(2, 2)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ForeignModelError, match=r"adapter\.weight is in the source and nothing"):
        convert(folder, tmp_path / "out", importers=[MBartImporter()], options=OPTIONS)
