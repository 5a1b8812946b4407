"""T5 and MADLAD-400 as transformers writes them, against transformers."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentencepiece import SentencePieceProcessor
from transformers import PreTrainedModel, T5ForConditionalGeneration, T5Tokenizer

from model.checkpoint.weights import load_checkpoint
from model.errors import ForeignModelError
from model.exchange.imports.convert import convert
from model.exchange.imports.huggingface.t5 import T5Importer
from model.exchange.imports.imported import ImportOptions
from model.text.subwords.pieces import PieceModel
from support.foreign_folders import MADLAD_SYMBOLS, change_json, trained_spm, write_t5
from support.learned_merges import real_lines
from support.reference_parity import check_hypotheses, check_logits

MADLAD = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
T5 = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
TO_GERMAN = ImportOptions(pairs=(("en", "de"),))


def madlad_spm() -> bytes:
    return trained_spm(symbols=MADLAD_SYMBOLS, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)


def t5_spm() -> bytes:
    return trained_spm(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)


@pytest.fixture(scope="module")
def madlad(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PreTrainedModel]:
    folder = tmp_path_factory.mktemp("hub") / "madlad400-3b-mt"
    return folder, write_t5(folder, spm=madlad_spm(), **MADLAD)


@pytest.fixture(scope="module")
def first_t5(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PreTrainedModel]:
    folder = tmp_path_factory.mktemp("hub") / "t5-small"
    settings = {**T5, "feed_forward_proj": "relu"}
    return folder, write_t5(folder, spm=t5_spm(), head="tied", **settings)


@pytest.fixture
def folder(madlad: tuple[Path, PreTrainedModel], tmp_path: Path) -> Path:
    """A copy of MADLAD to damage."""
    return copied(madlad[0], tmp_path)


def copied(folder: Path, parent: Path) -> Path:
    copy = parent / folder.name
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    return copy


def change_weights(folder: Path, **changes: torch.Tensor | None) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path) | changes
    kept = {name: value for name, value in weights.items() if value is not None}
    save_file(kept, path, metadata={"format": "pt"})


def problems(folder: Path, options: ImportOptions = TO_GERMAN) -> tuple[str, ...]:
    with pytest.raises(ForeignModelError) as caught:
        T5Importer().read(folder, options)
    return caught.value.problems


def test_it_is_recognised_by_its_config(folder: Path, tmp_path: Path) -> None:
    for kind in ("t5", "mt5", "umt5"):
        change_json(folder / "config.json", model_type=kind)
        assert T5Importer().recognises(folder)
    change_json(folder / "config.json", model_type="longt5")
    assert not T5Importer().recognises(folder)
    assert not T5Importer().recognises(tmp_path)


def test_madlads_logits_are_those_of_transformers(madlad: tuple[Path, PreTrainedModel]) -> None:
    imported = T5Importer().read(madlad[0], TO_GERMAN)
    assert not imported.network.tie_output
    assert not imported.network.scale_output
    assert (imported.tokens.start_id, imported.tokens.pad_id) == (0, 1)
    check_logits(madlad[1], imported)


def test_the_first_t5s_logits_are_those_of_transformers(
    first_t5: tuple[Path, PreTrainedModel],
) -> None:
    imported = T5Importer().read(first_t5[0], TO_GERMAN)
    assert imported.network.tie_output
    assert imported.network.scale_output
    check_logits(first_t5[1], imported)


@pytest.fixture(scope="module")
def mt5(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PreTrainedModel]:
    folder = tmp_path_factory.mktemp("hub") / "mt5-small"
    return folder, write_t5(folder, spm=t5_spm(), head="tied", is_mt5=True, **T5)


def test_a_tied_mt5s_logits_are_those_of_transformers(mt5: tuple[Path, PreTrainedModel]) -> None:
    assert "lm_head.weight" not in load_file(mt5[0] / "model.safetensors")
    imported = T5Importer().read(mt5[0], TO_GERMAN)
    assert imported.network.tie_output
    assert not imported.network.scale_output
    check_logits(mt5[1], imported)


@pytest.mark.parametrize(
    ("version", "said", "is_scaled"),
    [
        ("4.57.1", True, True),
        ("4.57.1", False, False),
        ("4.57.1", None, False),  # the default of its configuration was false then
        ("5.0.0.dev0", True, False),
        ("11.0", True, False),
        (None, True, False),
        ("?", True, False),
    ],
)
def test_a_tied_mt5_has_the_factor_where_transformers_4_saved_it(
    mt5: tuple[Path, PreTrainedModel],
    tmp_path: Path,
    version: str | None,
    said: bool | None,
    is_scaled: bool,
) -> None:
    copy = copied(mt5[0], tmp_path)
    change_json(copy / "config.json", transformers_version=version, tie_word_embeddings=said)
    network = T5Importer().read(copy, TO_GERMAN).network
    assert (network.tie_output, network.scale_output) == (True, is_scaled)


def test_what_only_t5_reads_says_nothing_of_an_mt5(
    mt5: tuple[Path, PreTrainedModel], tmp_path: Path
) -> None:
    copy = copied(mt5[0], tmp_path)
    change_json(copy / "config.json", scale_decoder_outputs=True)
    check_logits(mt5[1], T5Importer().read(copy, TO_GERMAN))


@pytest.mark.parametrize("kind", ["gated-relu", "gated-silu", "gelu"])
def test_feed_forwards_are_those_of_the_config(tmp_path: Path, kind: str) -> None:
    reference = write_t5(tmp_path / "t5", spm=t5_spm(), feed_forward_proj=kind, **T5)
    check_logits(reference, T5Importer().read(tmp_path / "t5", TO_GERMAN))


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("name", ["madlad", "first_t5"])
def test_hypotheses_and_scores_are_those_of_generate(
    request: pytest.FixtureRequest, name: str, beam_size: int
) -> None:
    folder, reference = request.getfixturevalue(name)
    imported = T5Importer().read(folder, TO_GERMAN)
    check_hypotheses(reference, imported, beam_size=beam_size, has_cache=False)


@pytest.mark.parametrize("said", [True, None])
def test_the_weights_say_whether_the_head_is_tied_and_not_the_config(
    folder: Path, madlad: tuple[Path, PreTrainedModel], said: bool | None
) -> None:
    change_json(folder / "config.json", tie_word_embeddings=said, scale_decoder_outputs=None)
    imported = T5Importer().read(folder, TO_GERMAN)
    assert not imported.network.tie_output
    assert not imported.network.scale_output
    check_logits(madlad[1], imported)


def test_a_head_that_repeats_the_embedding_is_tied(
    first_t5: tuple[Path, PreTrainedModel], tmp_path: Path
) -> None:
    copy = copied(first_t5[0], tmp_path)
    change_json(copy / "config.json", tie_word_embeddings=None, scale_decoder_outputs=None)
    table = load_file(copy / "model.safetensors")["shared.weight"]
    cross = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    copies = {"lm_head.weight": table.clone(), "encoder.embed_tokens.weight": table.clone()}
    change_weights(copy, **copies, **{cross: torch.zeros(32, 4)})
    imported = T5Importer().read(copy, TO_GERMAN)
    assert imported.network.tie_output
    assert imported.network.scale_output
    check_logits(first_t5[1], imported)


def test_the_embedding_may_have_the_decoders_name_alone(
    folder: Path, madlad: tuple[Path, PreTrainedModel]
) -> None:
    table = load_file(folder / "model.safetensors")["shared.weight"]
    change_weights(folder, **{"shared.weight": None, "decoder.embed_tokens.weight": table})
    check_logits(madlad[1], T5Importer().read(folder, TO_GERMAN))


def test_madlads_ids_are_those_of_its_tokenizer(
    madlad: tuple[Path, PreTrainedModel], tmp_path: Path
) -> None:
    convert(madlad[0], tmp_path / "out", importers=[T5Importer()], licence="Apache-2.0")
    checkpoint = load_checkpoint(tmp_path / "out")
    pair = checkpoint.manifest.pair("en", "de")
    assert pair is not None
    _compare_ids(madlad[0], tmp_path / "out", ("en", "de"), "<2de> ", unknown=0)


def test_the_first_t5s_ids_are_those_of_its_tokenizer(
    first_t5: tuple[Path, PreTrainedModel], tmp_path: Path
) -> None:
    convert(
        first_t5[0],
        tmp_path / "out",
        importers=[T5Importer()],
        options=TO_GERMAN,
        licence="Apache-2.0",
    )
    prompt = "translate English to German: "
    _compare_ids(first_t5[0], tmp_path / "out", ("en", "de"), prompt, unknown=2)


def _compare_ids(
    folder: Path, checkpoint: Path, tags: tuple[str, str], prompt: str, *, unknown: int
) -> None:
    loaded = load_checkpoint(checkpoint)
    pair = loaded.manifest.pair(*tags)
    assert pair is not None
    theirs = T5Tokenizer.from_pretrained(folder, extra_ids=0)
    spm = SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    lines = [line for line in real_lines()[:1000] if "<" not in line]
    assert len(lines) > 900
    for line in lines:
        ids, (*body, end) = loaded.tokenizer.encode(line, pair), theirs(prompt + line)["input_ids"]
        # Of a SentencePiece file alone, transformers takes 2 for unknown, whatever the file has.
        expected = [*(unknown if index == 2 else index for index in body), end]
        if ids != expected:  # two ways to cut a word may be equally likely
            assert "".join(spm.id_to_piece(ids)) == "".join(spm.id_to_piece(expected))
            assert sum(spm.get_score(ids)) == pytest.approx(sum(spm.get_score(expected)), abs=1e-3)


def test_the_decoder_starts_where_generate_does(folder: Path) -> None:
    change_json(folder / "config.json", decoder_start_token_id=None)
    assert started_by_generate(folder) == T5Importer().read(folder, TO_GERMAN).tokens.start_id == 0
    change_json(folder / "config.json", decoder_start_token_id=0)
    change_json(folder / "generation_config.json", decoder_start_token_id=7)
    assert started_by_generate(folder) == T5Importer().read(folder, TO_GERMAN).tokens.start_id == 7


def started_by_generate(folder: Path) -> int:
    reference = T5ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    with torch.inference_mode():
        output = reference.generate(torch.tensor([[5, 6, 2]]), max_new_tokens=2, use_cache=False)
    return int(output[0, 0])


def test_a_tag_that_people_type_is_no_tag(
    madlad: tuple[Path, PreTrainedModel], tmp_path: Path
) -> None:
    convert(madlad[0], tmp_path / "out", importers=[T5Importer()], licence="Apache-2.0")
    loaded = load_checkpoint(tmp_path / "out")
    pair = loaded.manifest.pair("en", "de")
    assert pair is not None
    pieces = PieceModel(madlad_spm())
    ids = loaded.tokenizer.encode("<2zh> the cat", pair)
    assert pieces.own_id("<2zh>") not in ids
    assert ids.count(pieces.own_id("▁")) >= 1


def test_all_directions_are_there_without_a_flag(folder: Path) -> None:
    imported = T5Importer().read(folder, ImportOptions())
    assert (len(imported.languages), len(imported.pairs)) == (4, 12)
    assert any("no direction uses: <2nonsense>" in note for note in imported.notes)


def test_a_tag_that_sentencepiece_sees_has_a_space_before_it(
    madlad: tuple[Path, PreTrainedModel], folder: Path, tmp_path: Path
) -> None:
    T5Tokenizer.from_pretrained(madlad[0], extra_ids=0).save_pretrained(tmp_path / "saved")
    file = "tokenizer.json"
    (folder / file).write_bytes((tmp_path / "saved" / file).read_bytes())
    assert T5Importer().read(folder, TO_GERMAN).pairs[0].source_start == ("<2de>",)
    change_json(folder / file, added_tokens=[])
    assert T5Importer().read(folder, TO_GERMAN).pairs[0].source_start == ("▁", "<2de>")


def test_a_language_without_a_tag_is_refused(folder: Path) -> None:
    options = ImportOptions(pairs=(("en", "fr"), ("de", "en")))
    assert problems(folder, options) == ("does not have fr; it has de, en, he, zh-Hans",)


def test_a_t5_without_tags_must_be_told_what_it_translates(
    first_t5: tuple[Path, PreTrainedModel],
) -> None:
    (problem,) = problems(first_t5[0], ImportOptions())
    assert problem.startswith("has no language tags among its pieces")
    (problem,) = problems(first_t5[0], ImportOptions(pairs=(("en", "zh-Hans"),)))
    assert problem.startswith("T5 has no word for the language 'zh-Hans'; it knows en, de, fr, ro")


def test_a_family_with_a_table_in_every_layer_is_refused_by_its_name(folder: Path) -> None:
    change_json(folder / "config.json", model_type="umt5")
    (problem,) = problems(folder)
    assert problem.startswith("is of the family umt5, which has a table of relative positions in")


def test_rows_without_a_piece_and_padding_are_never_written(folder: Path) -> None:
    imported = T5Importer().read(folder, TO_GERMAN)
    size = imported.network.vocab_size
    assert imported.tokens.suppressed_ids == (1, size - 4, size - 3, size - 2, size - 1)


def test_all_problems_are_told_together(folder: Path) -> None:
    name = "decoder.block.1.layer.1.EncDecAttention.k.weight"
    change_weights(folder, **{name: None})
    (folder / "spiece.model").write_bytes(b"no model")
    change_json(
        folder / "config.json",
        relative_attention_num_buckets=16,
        relative_attention_max_distance=64,
        feed_forward_proj="gated-tanh",
        layer_norm_epsilon=0,
        num_heads=-1,
        d_ff="wide",
    )
    found = problems(folder)
    for part in (
        "relative_attention_num_buckets is 16; only 32",
        "relative_attention_max_distance is 64; only 128",
        "feed_forward_proj is 'gated-tanh'; only relu",
        "layer_norm_epsilon is 0; it must be between 0 and 1",
        "num_heads is -1; it must be from 1",
        "d_ff is 'wide'; it must be an integer",
        "spiece.model is not a SentencePiece model",
        f"{name} is missing",
    ):
        assert any(part in problem for problem in found), part


def test_an_empty_file_of_pieces_and_an_odd_end_are_told(folder: Path) -> None:
    (folder / "spiece.model").write_bytes(b"")
    assert problems(folder) == ("spiece.model is a SentencePiece model without pieces",)
    (folder / "spiece.model").write_bytes(madlad_spm())
    change_json(folder / "config.json", eos_token_id="</s>")
    assert problems(folder) == ("config.json: eos_token_id is '</s>'; it must be an integer",)


def test_more_pieces_than_rows_are_refused(folder: Path) -> None:
    (folder / "spiece.model").write_bytes(trained_spm(vocabulary_size=300, symbols=MADLAD_SYMBOLS))
    assert any("has 300 pieces; vocab_size is 264" in problem for problem in problems(folder))


def test_where_no_sentencepiece_file_can_be_made_the_problem_names_the_remedy(folder: Path) -> None:
    (folder / "spiece.model").unlink()
    (folder / "tokenizer.json").write_text("{}")
    (problem,) = problems(folder)
    assert problem == (
        "spiece.model is missing, and none can be made of tokenizer.json (its model is None, not"
        " Unigram or BPE); copy it from the model that this one was made of"
    )


@pytest.mark.parametrize("is_madlad", [True, False])
def test_a_sentencepiece_file_is_made_of_tokenizer_json(
    madlad: tuple[Path, PreTrainedModel],
    first_t5: tuple[Path, PreTrainedModel],
    is_madlad: bool,
    tmp_path: Path,
) -> None:
    folder = copied((madlad if is_madlad else first_t5)[0], tmp_path)
    before = T5Importer().read(folder, TO_GERMAN)
    theirs = T5Tokenizer.from_pretrained(folder, extra_ids=0 if is_madlad else 100)
    (folder / "spiece.model").unlink()
    theirs.save_pretrained(folder)
    after = T5Importer().read(folder, TO_GERMAN)
    assert after.tokenizer.tables() == before.tokenizer.tables()
    assert after.tokens == before.tokens
    ours = PieceModel(after.tokenizer.source_pieces)
    original = PieceModel(before.tokenizer.source_pieces)
    for line in real_lines():
        assert ours.own_ids(line) == original.own_ids(line)
