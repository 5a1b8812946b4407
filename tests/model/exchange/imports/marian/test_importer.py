"""Networks that Marian trained and decoded itself, imported: its scores and its hypotheses."""

import shutil
from pathlib import Path

import pytest
import torch

from model.checkpoint.weights import load_checkpoint
from model.config import SearchConfig
from model.decode.constraints import outside_mask, restrict
from model.decode.session import DecodeRequest
from model.errors import ForeignModelError
from model.exchange.imports.convert import convert
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportedModel, ImportOptions
from model.exchange.imports.marian.importer import MARIAN
from model.exchange.imports.marian.shortlist import read_shortlist
from model.offline.translator import Translator
from support.marian_oracle import (
    FIXTURES,
    MarianHypothesis,
    expected,
    marian_search,
    network_of,
    tokenizer_of,
    word_scores,
)
from support.shortlists import lex_bytes

MODELS = {"student": "student", "int8": "int8/model.npz", "prenorm": "prenorm"}
TOLERANCE = 1e-4


def imported(folder: str) -> ImportedModel:
    return MARIAN.read(FIXTURES / MODELS[folder], ImportOptions())


def target_ids(model: ImportedModel, hypothesis: MarianHypothesis) -> list[int]:
    """The ids of a line, with EOS unless Marian's cap cut it."""
    table = model.tokenizer.tables()[1]
    ids = [table[piece] for piece in hypothesis.pieces]
    is_whole = len(hypothesis.word_scores) == len(ids) + 1
    return [*ids, model.tokens.eos_id] if is_whole else ids


def copied(folder: str, destination: Path) -> Path:
    shutil.copytree(FIXTURES / folder, destination)
    return destination


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("folder", MODELS)
def test_the_log_probability_of_every_word_is_marians(folder: str, dtype: torch.dtype) -> None:
    model = imported(folder)
    transformer, tokenizer = network_of(model, dtype=dtype), tokenizer_of(model)
    words = 0
    for text, hypotheses in expected(folder):
        source = tokenizer.encode(text, model.pairs[0])
        for hypothesis in hypotheses[:2]:
            target = target_ids(model, hypothesis)
            found = word_scores(transformer, model.tokens.start_id, source, target)
            assert found == pytest.approx(hypothesis.word_scores, abs=TOLERANCE)
            words += len(target)
    assert words > 200


@torch.inference_mode()
def test_over_the_list_of_its_shortlist_every_word_has_marians_log_probability() -> None:
    model = imported("student")
    transformer, tokenizer = network_of(model), tokenizer_of(model)
    size = model.network.output_size
    shortlist = read_shortlist(
        FIXTURES / "shortlist" / "lex.20.6.ende.s2t.bin",
        num_sources=size - 1,
        num_targets=size - 1,
        num_rows=size,
        with_source=True,
    )
    sizes = set()
    for text, [best] in expected("shortlist"):
        source, target = tokenizer.encode(text, model.pairs[0]), target_ids(model, best)
        listed = shortlist.tokens(source, (model.tokens.eos_id,), vocab_size=size)
        ids = torch.tensor([[model.tokens.start_id, *target[:-1]]])
        logits = transformer(torch.tensor([source]), ids)[0]
        outside = outside_mask([listed] * len(target), vocab_size=size)
        scores = restrict(logits, outside).log_softmax(-1)[range(len(target)), target]
        assert scores.tolist() == pytest.approx(best.word_scores, abs=TOLERANCE)
        sizes.add(len(listed))
    assert len(sizes) > 3
    assert max(sizes) < size / 4


def test_marians_search_over_our_network_finds_its_n_best_lists() -> None:
    model = imported("student")
    transformer, tokenizer = network_of(model), tokenizer_of(model)
    for text, hypotheses in expected("student")[:7]:
        source = tokenizer.encode(text, model.pairs[0])
        found = marian_search(transformer, model, source, beam_size=4)
        whole = [target_ids(model, hypothesis) for hypothesis in hypotheses]
        eos = model.tokens.eos_id
        assert [ids for ids, _ in found] == [ids[:-1] if ids[-1] == eos else ids for ids in whole]
        assert [score for _, score in found] == pytest.approx(
            [hypothesis.score for hypothesis in hypotheses], abs=TOLERANCE
        )


def test_a_session_that_reorders_its_beams_keeps_every_row_its_own_state(tmp_path: Path) -> None:
    convert(FIXTURES / "student", tmp_path / "student", importers=[MARIAN], compute="float32")
    checkpoint = load_checkpoint(tmp_path / "student")
    plain = network_of(imported("student"))
    tokens, pair = checkpoint.manifest.tokens, checkpoint.manifest.pairs[0]
    search = SearchConfig(num_hypotheses=4, max_length=60)
    requests, best = [], []
    for text, hypotheses in expected("student"):
        source = tuple(checkpoint.tokenizer.encode(text, pair))
        prefix = tuple(checkpoint.tokenizer.target_prefix(pair))
        requests.append(DecodeRequest(source_ids=source, prefix_ids=prefix, search=search))
        best.append(hypotheses[0])
    lengths, same = set(), 0
    for request, found, marians in zip(
        requests, Translator(checkpoint).search(requests), best, strict=True
    ):
        assert found[0].score >= marians.score - TOLERANCE
        for hypothesis in (hypothesis for hypothesis in found if not hypothesis.is_truncated):
            target = [*hypothesis.token_ids, tokens.eos_id]
            scores = word_scores(plain, tokens.start_id, list(request.source_ids), target)
            assert hypothesis.score == pytest.approx(sum(scores) / len(scores), abs=TOLERANCE)
            lengths.add(len(target))
        same += found[0].score == pytest.approx(marians.score, abs=TOLERANCE)
    assert len(lengths) > 5
    assert same >= 5


def test_the_first_step_begins_with_the_zero_vector() -> None:
    model = imported("student")
    transformer = network_of(model)
    table = transformer.target_embedding.weight
    assert model.tokens.start_id == model.tokens.pad_id == len(table) - 1
    assert not table[-1].any()
    text, hypotheses = expected("student")[0]
    source = tokenizer_of(model).encode(text, model.pairs[0])
    first = hypotheses[0]
    target = target_ids(model, first)[:1]
    for start, is_marians in ((model.tokens.start_id, True), (model.tokens.eos_id, False)):
        (score,) = word_scores(transformer, start, source, target)
        assert (abs(score - first.word_scores[0]) < TOLERANCE) == is_marians


def test_positions_that_follow_the_paper_are_not_marians() -> None:
    model = imported("student")
    transformer = network_of(model)
    for positions in (transformer.source_positions, transformer.target_positions):
        positions.kind = "sinusoidal-marian"
    text, hypotheses = expected("student")[0]
    source = tokenizer_of(model).encode(text, model.pairs[0])
    target = target_ids(model, hypotheses[0])
    found = word_scores(transformer, model.tokens.start_id, source, target)
    assert (
        max(
            abs(ours - theirs)
            for ours, theirs in zip(found, hypotheses[0].word_scores, strict=True)
        )
        > 0.01
    )


def test_separate_vocabularies_share_the_ids_of_special_tokens() -> None:
    model = imported("prenorm")
    config = model.network
    assert not config.share_embeddings
    assert config.vocab_size == config.output_size == model.tokens.pad_id + 1
    assert config.decoder_d_ff == 96
    assert (config.norm_placement, config.activation) == ("pre", "gelu")
    target_size = len(model.tokenizer.tables()[1])
    assert set(range(target_size, config.output_size)) < set(model.tokens.suppressed_ids)


def test_bytes_of_control_characters_are_never_written() -> None:
    model = imported("student")
    table = model.tokenizer.tables()[1]
    assert {table[f"<0x{byte:02X}>"] for byte in range(32)} < set(model.tokens.suppressed_ids)
    assert table["<0x20>"] not in model.tokens.suppressed_ids
    assert table["<unk>"] in model.tokens.suppressed_ids


def test_a_converted_int8_model_translates_as_its_float_model_nearly_does(tmp_path: Path) -> None:
    source = FIXTURES / "int8" / "model.intgemm8avx2.bin"
    convert(source, tmp_path / "int8", importers=[MARIAN])
    model = imported("int8")
    checkpoint = load_checkpoint(tmp_path / "int8")
    for (text, float32), (_, int8) in zip(
        expected("int8"), expected("int8", "intgemm8"), strict=True
    ):
        ids = checkpoint.tokenizer.encode(text, checkpoint.manifest.pairs[0])
        target = target_ids(model, int8[0])
        found = word_scores(checkpoint.transformer, model.tokens.start_id, ids, target)
        difference = abs(sum(found) / len(found) - int8[0].score)
        assert difference < 0.1, (text, float32[0].score)


def test_decoder_yml_says_which_files_and_how_the_authors_search(tmp_path: Path) -> None:
    folder = copied("student", tmp_path / "model")
    (folder / "other.npz").write_bytes((folder / "model.npz").read_bytes())
    settings = (
        "relative-paths: true\nmodels:\n  - /far/away/model.npz\nvocabs:\n  - vocab.ende.spm\n"
        "  - vocab.ende.spm\nbeam-size: 6\nnormalize: 1\nword-penalty: 0\nshortlist:\n  - lex.s2t\n"
    )
    (folder / "decoder.yml").write_text(settings, encoding="utf-8")
    model = MARIAN.read(folder, ImportOptions())
    assert (model.pairs[0].source, model.pairs[0].target) == ("en", "de")
    assert "beam-size 6, normalize 1, word-penalty 0" in model.notes[0]
    assert "shortlist" in model.notes[1]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("models: [a.npz, model.npz]\nvocabs: [vocab.ende.spm]\n", "an ensemble of 2 models"),
        ("models: [gone.npz]\nvocabs: [vocab.ende.spm]\n", "has no gone.npz"),
        ("models: [model.npz]\nvocabs: [gone.spm]\n", "has no gone.spm"),
        ("models: [model.npz]\nvocabs: [a, b, c]\n", "has 3 vocabularies"),
    ],
)
def test_files_that_decoder_yml_names_and_are_not_one_models_are_refused(
    tmp_path: Path, settings: str, problem: str
) -> None:
    folder = copied("student", tmp_path / "model")
    (folder / "decoder.yml").write_text(settings, encoding="utf-8")
    with pytest.raises(ForeignModelError, match=problem):
        MARIAN.read(folder, ImportOptions())


def test_several_models_in_a_folder_have_to_be_chosen_from(tmp_path: Path) -> None:
    with pytest.raises(ForeignModelError, match="has 5 models"):
        MARIAN.read(FIXTURES / "int8", ImportOptions())
    assert MARIAN.read(FIXTURES / "int8" / "model.npz", ImportOptions()).name == "model"


def test_a_model_whose_files_name_no_languages_needs_a_pair(tmp_path: Path) -> None:
    folder = copied("student", tmp_path / "model")
    (folder / "vocab.ende.spm").rename(folder / "vocab.spm")
    with pytest.raises(ForeignModelError, match="no file says which languages"):
        MARIAN.read(folder, ImportOptions())
    model = MARIAN.read(folder, ImportOptions(pairs=(("en", "de"),)))
    assert (model.pairs[0].source, model.pairs[0].target) == ("en", "de")


@pytest.mark.parametrize("word", ["data", "base", "tiny", "best", "model.test"])
def test_a_word_that_is_two_codes_names_no_languages(tmp_path: Path, word: str) -> None:
    folder = copied("student", tmp_path / word)
    vocabulary = (folder / "vocab.ende.spm").rename(folder / "vocab.spm")
    with pytest.raises(ForeignModelError, match="no file says which languages"):
        MARIAN.read(folder, ImportOptions())
    vocabulary.rename(folder / f"{word.partition('.')[0]}.spm")
    with pytest.raises(ForeignModelError, match="no file says which languages"):
        MARIAN.read(folder, ImportOptions())


@pytest.mark.parametrize("called", ["en-de", "eng-deu", "engdeu", "student.en-de"])
def test_a_folder_that_is_named_as_a_pair_names_its_languages(tmp_path: Path, called: str) -> None:
    folder = copied("student", tmp_path / called)
    (folder / "vocab.ende.spm").rename(folder / "vocab.spm")
    (pair,) = MARIAN.read(folder, ImportOptions()).pairs
    assert (pair.source, pair.target) == ("en", "de")


def test_a_vocabulary_of_another_network_is_refused(tmp_path: Path) -> None:
    folder = copied("int8", tmp_path / "model")
    shutil.copy(FIXTURES / "student" / "vocab.ende.spm", folder / "vocab.ende.spm")
    with pytest.raises(ForeignModelError, match="has id 424; the network has 120 rows"):
        MARIAN.read(folder / "model.npz", ImportOptions())


def test_other_files_are_not_marians(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"\x06\0\0\0\x10\0TransformerSpec\0" + bytes(100))
    (tmp_path / "model.npz").write_bytes(b"PK\x03\x04 and no archive")
    assert not MARIAN.recognises(tmp_path)
    assert not MARIAN.recognises(tmp_path / "model.bin")
    assert not MARIAN.recognises(tmp_path / "gone")
    assert MARIAN.recognises(FIXTURES / "student")
    assert MARIAN.recognises(FIXTURES / "int8" / "model.intgemm8.bin")


def test_a_binary_shortlist_that_decoder_yml_names_comes_along(tmp_path: Path) -> None:
    folder = copied("student", tmp_path / "model")
    (folder / "lex.s2t.bin").write_bytes(lex_bytes([[], [3], [4, 5]], first=1))
    settings = (
        "models: [model.npz]\nvocabs: [vocab.ende.spm, vocab.ende.spm]\n"
        "shortlist:\n  - /far/away/lex.s2t.bin\n  - false\n"
    )
    (folder / "decoder.yml").write_text(settings, encoding="utf-8")
    model = MARIAN.read(folder, ImportOptions(pairs=(("en", "de"),)))
    assert model.shortlist is not None
    assert model.shortlist.ids.tolist() == [3, 4, 5]
    assert len(model.shortlist.offsets) == model.network.vocab_size + 1
    assert "came along" in model.notes[-1]


@pytest.mark.parametrize(
    ("folder", "name"), [("student", "model.npz"), ("int8", "model.intgemm8.bin")]
)
def test_a_download_that_broke_off_is_recognised_and_said_to_be_damaged(
    folder: str, name: str, tmp_path: Path
) -> None:
    path = copied(folder, tmp_path / "model") / name
    for other in (tmp_path / "model").glob("model*"):
        if other != path:
            other.unlink()
    path.write_bytes(path.read_bytes()[:60_000])
    with pytest.raises(ForeignModelError, match=r"model\S+ is (a damaged archive|cut short)"):
        convert(tmp_path / "model", tmp_path / "out", importers=IMPORTERS, compute="int8")
    assert not (tmp_path / "out").exists()
