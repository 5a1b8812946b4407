import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from model.errors import ForeignModelError
from model.exchange.imports.huggingface.marian import HuggingFaceMarian
from model.exchange.imports.imported import ImportedModel, ImportOptions
from support.huggingface_folders import MARIAN_TAGS, ODD_LINES, SENTENCES, marian_folder
from support.imported_twins import Twins, compare_hypotheses, compare_network, imported_twins

Json = dict[str, object]
FOLDERS: dict[str, Json] = {
    "one target": {},
    "several targets": {"tags": MARIAN_TAGS},
    "two vocabularies": {"is_separate": True},
    "relu, own projection": {"activation": "relu", "tie_word_embeddings": False},
}


@pytest.fixture(scope="module", params=FOLDERS)
def twins(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Twins:
    base = tmp_path_factory.mktemp("marian")
    folder = marian_folder(base / "opus-mt-en-zh", **FOLDERS[request.param])  # type: ignore[arg-type]
    return imported_twins(folder, base / "out")


def pair_of(twins: Twins) -> tuple[str, str]:
    pair = twins.checkpoint.manifest.pairs[0]
    return pair.source, pair.target


def test_encoder_output_and_logits_are_those_of_transformers(twins: Twins) -> None:
    compare_network(twins, SENTENCES[:12], twins.pair(*pair_of(twins)))


def test_hypotheses_and_scores_are_those_of_generate(twins: Twins) -> None:
    comparison = compare_hypotheses(twins, SENTENCES[:20], twins.pair(*pair_of(twins)))
    assert comparison.differences == []
    assert len(comparison.ties) <= 1
    assert comparison.num_hypotheses == 80


def test_tokens_are_those_of_the_tokenizer_of_transformers(twins: Twins) -> None:
    theirs = MarianTokenizer.from_pretrained(twins.folder)
    ours, pair = twins.checkpoint.tokenizer, twins.pair(*pair_of(twins))
    before = "".join(pair.source_prefix)
    for line in [*SENTENCES, *ODD_LINES]:
        source_ids = theirs(before + line).input_ids
        target_ids = theirs(text_target=line).input_ids
        assert ours.encode(line, pair) == source_ids
        assert ours.encode_target(line) == target_ids
        # Of a joint table, pieces that the target's file lacks are text too.
        for ids in (target_ids, *([] if theirs.separate_vocabs else [source_ids])):
            assert ours.decode(ids).strip() == theirs.decode(ids, skip_special_tokens=True)


def imported(folder: Path, *pairs: tuple[str, str]) -> ImportedModel:
    return HuggingFaceMarian().read(folder, ImportOptions(pairs=pairs))


def directions(model: ImportedModel) -> dict[tuple[str, str], tuple[str, ...]]:
    return {(pair.source, pair.target): pair.source_prefix for pair in model.pairs}


def test_targets_have_the_tags_of_bcp_47(tmp_path: Path) -> None:
    folder = marian_folder(tmp_path / "m", tags=MARIAN_TAGS, languages=("eng", "mul"))
    assert directions(imported(folder)) == {
        ("en", "de"): (">>deu<<",),
        ("en", "zh-Hans"): (">>cmn_Hans<<",),
        ("en", "pt-BR"): (">>pt_br<<",),
    }
    narrowed = imported(folder, ("fr", "de"), ("en", "pt-BR"))
    assert directions(narrowed) == {("fr", "de"): (">>deu<<",), ("en", "pt-BR"): (">>pt_br<<",)}
    assert problems_of(folder, ("en", "ja")) == (
        "has no token for the target ja; it has de, pt-BR, zh-Hans",
    )


def test_of_several_tags_of_a_language_one_that_says_the_script_is_taken(tmp_path: Path) -> None:
    tags = (">>cmn<<", ">>deu<<", ">>cmn_Hans<<")
    folder = marian_folder(tmp_path / "m", tags=tags, languages=("eng", "mul"))
    assert directions(imported(folder)) == {
        ("en", "zh-Hans"): (">>cmn_Hans<<",),
        ("en", "de"): (">>deu<<",),
    }


def test_languages_come_from_the_tokenizer_or_the_name_or_a_person(tmp_path: Path) -> None:
    assert list(directions(imported(marian_folder(tmp_path / "a")))) == [("en", "zh-Hans")]
    named = marian_folder(tmp_path / "opus-mt-tc-big-fra-deu", languages=None)
    assert list(directions(imported(named))) == [("fr", "de")]
    several = marian_folder(tmp_path / "several", languages=("cat_oci_spa", "en"))
    assert list(directions(imported(several))) == [("ca", "en"), ("oc", "en"), ("es", "en")]
    tuned = marian_folder(tmp_path / "tuned", languages=None)
    edit_json("config.json", _name_or_path="Helsinki-NLP/opus-mt-en-ro")(tuned)
    assert (list(directions(imported(tuned))), imported(tuned).name) == ([("en", "ro")], "tuned")
    nameless = marian_folder(tmp_path / "b", languages=("gem", "en"))
    assert list(directions(imported(nameless, ("nl", "en")))) == [("nl", "en")]
    (problem,) = problems_of(nameless)
    assert "name the directions" in problem


def test_special_tokens_are_those_of_the_configuration(tmp_path: Path) -> None:
    folder = marian_folder(tmp_path / "m")
    vocabulary = json.loads((folder / "vocab.json").read_text())
    tokens = imported(folder).tokens
    assert tokens.eos_id == vocabulary["</s>"] != 0
    assert tokens.pad_id == tokens.start_id == vocabulary["<pad>"]
    assert tokens.suppressed_ids == (vocabulary["<pad>"],)


def test_the_decoder_starts_where_generate_does(tmp_path: Path) -> None:
    folder = marian_folder(tmp_path / "m")
    edit_json("generation_config.json", decoder_start_token_id=64)(folder)
    theirs = MarianMTModel.from_pretrained(folder, dtype=torch.float32)
    with torch.inference_mode():
        output = theirs.generate(torch.tensor([[5, 6, 7]]), max_new_tokens=2)
    assert int(output[0, 0]) == imported(folder).tokens.start_id == 64


def test_embeddings_are_not_scaled_where_the_config_does_not_say(tmp_path: Path) -> None:
    folder = marian_folder(tmp_path / "opus-mt-en-de")
    config = json.loads((folder / "config.json").read_text())
    del config["scale_embedding"]
    (folder / "config.json").write_text(json.dumps(config))
    expected = MarianConfig.from_pretrained(folder).scale_embedding
    assert imported(folder).network.scale_embedding is expected is False


def test_the_licence_is_that_of_the_card(tmp_path: Path) -> None:
    folder = marian_folder(tmp_path / "m")
    assert imported(folder).licence is None
    (folder / "README.md").write_text("---\nlanguage: en\nlicense: cc-by-4.0\n---\n# Model\n")
    model = imported(folder)
    assert model.licence == "CC-BY-4.0"
    assert [each.licence for each in model.licences] == ["CC-BY-4.0"]


def problems_of(folder: Path, *pairs: tuple[str, str]) -> tuple[str, ...]:
    with pytest.raises(ForeignModelError) as caught:
        imported(folder, *pairs)
    return caught.value.problems


def edit_json(name: str, **values: object) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        stated = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(stated | values))

    return edit


def edit_weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    return edit


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edit_json("config.json", normalize_before=True), "normalize_before is true"),
        (edit_json("config.json", activation_function="mish"), "only relu, gelu"),
        (edit_json("config.json", decoder_attention_heads=2), "only equal numbers"),
        (
            edit_json("config.json", encoder_layers=10**9),
            "network.num_encoder_layers is 1000000000; at most 1024 is read",
        ),
        (edit_json("config.json", d_model=None), "d_model is missing; it must be an integer"),
        (edit_json("config.json", eos_token_id=5), "config.json has eos_token_id 5"),
        (edit_json("config.json", forced_bos_token_id=7), "forced_bos_token_id is set"),
        (
            edit_json("generation_config.json", bad_words_ids=[[1, 2]]),
            "only single tokens are suppressed",
        ),
        (lambda folder: (folder / "source.spm").unlink(), "source.spm is missing"),
        (lambda folder: (folder / "vocab.json").write_text("[1]"), "vocab.json is no JSON object"),
        (
            edit_weights(lambda tensors: tensors.pop("model.encoder.layers.1.fc1.bias")),
            "model.encoder.layers.1.fc1.bias is missing",
        ),
        (
            edit_weights(
                lambda tensors: tensors.update(
                    {"lm_head.weight": tensors["model.shared.weight"] + 1}
                )
            ),
            "lm_head.weight differs from model.shared.weight",
        ),
        (
            edit_weights(
                lambda tensors: tensors.update(
                    {"model.encoder.embed_positions.weight": torch.zeros(128, 32)}
                )
            ),
            "is not the table of sinusoids",
        ),
    ],
)
def test_what_cannot_be_converted_is_named(
    tmp_path: Path, change: Callable[[Path], object], message: str
) -> None:
    folder = marian_folder(tmp_path / "m")
    change(folder)
    assert message in "; ".join(problems_of(folder))


def test_tied_tables_may_be_there_under_several_names(tmp_path: Path) -> None:
    folder = marian_folder(tmp_path / "m")
    edit_weights(
        lambda tensors: tensors.update(
            {
                name: tensors["model.shared.weight"].clone()
                for name in (
                    "lm_head.weight",
                    "model.encoder.embed_tokens.weight",
                    "model.decoder.embed_tokens.weight",
                )
            }
        )
    )(folder)
    model = imported(folder)
    assert model.unused == ()
    edit_weights(lambda tensors: tensors.update(extra=torch.zeros(3)))(folder)
    assert imported(folder).unused == ("extra",)


def test_an_older_folder_of_a_pickle_with_every_table_in_16_bits(tmp_path: Path) -> None:
    folder = marian_folder(tmp_path / "m")
    theirs = MarianMTModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    state = {
        name: value if "embed_positions" in name else value.half()
        for name, value in theirs.state_dict().items()
    }
    assert {"lm_head.weight", "model.decoder.embed_positions.weight"} <= state.keys()
    torch.save(state, folder / "pytorch_model.bin")
    model = imported(folder)
    assert model.unused == ()
    twins = imported_twins(folder, tmp_path / "out")
    compare_network(twins, SENTENCES[:3], twins.pair("en", "zh-Hans"))


def test_several_problems_are_told_at_once(tmp_path: Path) -> None:
    folder = marian_folder(tmp_path / "m")
    (folder / "source.spm").unlink()
    edit_json("config.json", normalize_before=True)(folder)
    edit_weights(lambda tensors: tensors.pop("model.encoder.layers.1.fc1.bias"))(folder)
    assert len(problems_of(folder)) == 3


def test_tensors_and_options_that_are_in_the_way_are_told_together(tmp_path: Path) -> None:
    folder = marian_folder(tmp_path / "m")

    def change(tensors: dict[str, torch.Tensor]) -> None:
        layer = "model.encoder.layers.1"
        tensors[f"{layer}.renamed"] = tensors.pop(f"{layer}.fc1.bias")
        tensors[f"{layer}.fc2.bias"] = torch.zeros(7)

    edit_weights(change)(folder)
    edit_json("config.json", activation_function="prelu")(folder)
    found = problems_of(folder)
    assert len(found) == 4
    for part in (
        "activation_function is 'prelu'",
        "model.encoder.layers.1.fc1.bias is missing",
        "encoder.layers.1.feed_forward.down_proj.bias has shape [7], expected [32]",
        "model.encoder.layers.1.renamed is in the source and nothing reads it",
    ):
        assert any(part in problem for problem in found), part


def test_weights_that_cannot_be_read_hide_no_other_problem(tmp_path: Path) -> None:
    folder = marian_folder(tmp_path / "m")
    (folder / "model.safetensors").write_bytes(b"no tensors")
    (folder / "source.spm").unlink()
    edit_json("config.json", encoder_layers="two")(folder)
    assert [problem.split()[0] for problem in problems_of(folder)] == [
        "config.json:",
        "model.safetensors:",
        "source.spm",
    ]
