"""The random network that speed is measured with: its size, its pieces, its forced lengths."""

from pathlib import Path

import pytest

from benchmarks.random_checkpoint import TOKENS, synthetic_spm, write_random_checkpoint
from model.checkpoint.weights import Checkpoint, load_checkpoint
from model.config import ModelConfig, SearchConfig
from model.exchange.export.ctranslate2 import export_ctranslate2
from model.offline.translator import Translator
from model.text.subwords.pieces import PieceModel

VOCABULARY = 700
TEXT = "Two dogs are running, on the grass."


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    directory = tmp_path_factory.mktemp("random") / "random"
    write_random_checkpoint(directory, vocab_size=VOCABULARY, seed=1)
    return load_checkpoint(directory)


@pytest.mark.parametrize("vocab_size", [200, 32_000, 58_101])
def test_the_tokenizer_has_exactly_the_pieces_asked_for(vocab_size: int) -> None:
    pieces = PieceModel(synthetic_spm(vocab_size))
    table = pieces.table()
    assert sorted(table.values()) == list(range(vocab_size))
    assert [table[name] for name in ("<pad>", "</s>", "<unk>")] == [0, 1, 2]
    found = pieces.pieces(TEXT)
    assert set(found) <= set(table)
    assert pieces.text(found) == TEXT


def test_larger_vocabularies_cut_text_into_fewer_pieces() -> None:
    counts = [len(PieceModel(synthetic_spm(size)).pieces(TEXT)) for size in (200, 5_000, 58_101)]
    assert counts[0] > counts[1] > counts[2]


def test_a_vocabulary_without_room_for_the_letters_is_refused() -> None:
    with pytest.raises(ValueError, match="vocab_size is 100; it must be from 200"):
        synthetic_spm(100)


def test_the_network_is_of_base_size(checkpoint: Checkpoint) -> None:
    assert checkpoint.manifest.network == ModelConfig(vocab_size=VOCABULARY)
    assert checkpoint.manifest.limits.max_target_length == 512
    assert {entry.dtype for entry in checkpoint.manifest.tensors.values()} == {"int8", "float32"}


@pytest.mark.parametrize("beam_size", [1, 4])
def test_every_search_runs_to_its_cap(checkpoint: Checkpoint, beam_size: int) -> None:
    translator = Translator(checkpoint, max_rows=4)
    pair = checkpoint.manifest.pairs[0]
    search = SearchConfig(beam_size=beam_size)
    prepared = translator.pipeline.prepare(TEXT, pair)
    (request,) = translator.requests(prepared, pair, search)
    ((best,),) = translator.search([request])
    assert best.is_truncated
    assert len(best.token_ids) == 2 * len(request.source_ids) + 16 - 1
    assert len(set(best.token_ids)) > 3
    assert not set(best.token_ids) & {TOKENS.pad_id, TOKENS.eos_id, TOKENS.unk_id}


def test_ctranslate2_runs_to_the_cap_too(checkpoint: Checkpoint, tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
    export_ctranslate2(checkpoint, tmp_path / "rival", quantization="int8")
    rival = ctranslate2.Translator(str(tmp_path / "rival"), intra_threads=1)
    pieces = PieceModel(synthetic_spm(VOCABULARY)).pieces(TEXT)
    (found,) = rival.translate_batch([pieces], beam_size=4, max_decoding_length=6)
    assert len(found.hypotheses[0]) == 6
