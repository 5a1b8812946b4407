from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from model.checkpoint.weights import Checkpoint, load_checkpoint
from model.config import SearchConfig
from model.errors import InputError
from model.explain.labels import installed_fonts
from model.explain.pages import write_pages
from model.explain.sentence import MAX_PIECES, ExplainedSentence, explain_sentence
from model.offline.translator import Translator
from support.first_drafts import first_draft
from support.tiny_checkpoint import EN_ZH, tiny_network, write_tiny_checkpoint

SENTENCE = "The cat waits for two apples."
TARGET = "猫等待两个苹果。"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    folder = tmp_path_factory.mktemp("explain") / "tiny"
    return load_checkpoint(write_tiny_checkpoint(folder, pairs=(EN_ZH,)))


@pytest.fixture(scope="module")
def forced(checkpoint: Checkpoint) -> ExplainedSentence:
    return explain_sentence(checkpoint, EN_ZH, SENTENCE, target=TARGET)


def test_every_layer_and_head_has_a_map_with_a_row_and_a_column_a_piece(
    forced: ExplainedSentence,
) -> None:
    num_source, num_target = len(forced.source_pieces), len(forced.read_pieces)
    assert len(forced.written_pieces) == num_target
    assert [maps.shape for maps in forced.encoder] == [(4, num_source, num_source)] * 2
    assert [maps.shape for maps in forced.decoder] == [(4, num_target, num_target)] * 2
    assert [maps.shape for maps in forced.cross] == [(4, num_target, num_source)] * 2


def test_rows_sum_to_one_and_masked_places_are_exactly_zero(forced: ExplainedSentence) -> None:
    for maps in (*forced.encoder, *forced.decoder, *forced.cross):
        np.testing.assert_allclose(maps.sum(axis=-1), 1.0, rtol=1e-5)
        assert (maps >= 0.0).all()
    for maps in forced.decoder:
        assert (np.triu(maps, k=1) == 0.0).all()
        assert (maps[:, 0, 0] == 1.0).all()  # the start token sees itself alone


def test_the_weights_are_those_of_the_network(
    checkpoint: Checkpoint, forced: ExplainedSentence
) -> None:
    source_ids = torch.tensor([checkpoint.tokenizer.encode(SENTENCE, EN_ZH)])
    written = checkpoint.tokenizer.encode_target(TARGET)
    target_ids = torch.tensor([[checkpoint.manifest.tokens.start_id, *written[:-1]]])
    expected = checkpoint.transformer.attention_maps(source_ids, target_ids)
    for name in ("encoder", "decoder", "cross"):
        for found, weights in zip(getattr(forced, name), getattr(expected, name), strict=True):
            np.testing.assert_array_equal(found, weights[0].numpy())


def test_pieces_are_named_and_the_written_ones_stand_one_place_after_the_read_ones(
    forced: ExplainedSentence,
) -> None:
    assert "".join(piece.text for piece in forced.source_pieces[:-1]).replace("▁", " ") == (
        f" {SENTENCE}"
    )
    assert forced.source_pieces[-1].text == forced.written_pieces[-1].text == "</s>"
    assert forced.read_pieces[0].text == "<start>"
    assert forced.read_pieces[1:] == forced.written_pieces[:-1]
    assert forced.is_given
    assert forced.translation == TARGET


def test_without_a_target_the_translation_is_drawn(checkpoint: Checkpoint) -> None:
    search = SearchConfig(beam_size=3)
    found = explain_sentence(checkpoint, EN_ZH, SENTENCE, search=search)
    expected = first_draft(Translator(checkpoint), SENTENCE, EN_ZH, search)
    assert found.translation == expected
    assert not found.is_given
    target_ids = [piece.token_id for piece in found.written_pieces[:-1]]
    # Bytes that are no text, as an untrained network writes them, are drawn but not text.
    decoded = checkpoint.tokenizer.decode(target_ids).replace("\ufffd", "")
    assert decoded.strip() == expected


def test_a_text_that_is_not_one_sentence_is_refused(checkpoint: Checkpoint) -> None:
    for text, message in (
        ("The cat waits. The boat waits.", "the text is 2 sentences, 2 of them"),
        ("42", "the text is 1 sentences, 0 of them"),
        ("", "the text is 0 sentences, 0 of them"),
    ):
        with pytest.raises(InputError, match=message):
            explain_sentence(checkpoint, EN_ZH, text)


def test_what_is_too_long_for_a_picture_is_refused_with_the_limit(checkpoint: Checkpoint) -> None:
    long = " ".join(["river"] * (MAX_PIECES + 2))
    with pytest.raises(InputError, match=rf"the sentence has \d+ pieces; .* {MAX_PIECES} at most"):
        explain_sentence(checkpoint, EN_ZH, long)
    with pytest.raises(InputError, match=rf"the target has \d+ pieces; .* {MAX_PIECES} at most"):
        explain_sentence(checkpoint, EN_ZH, SENTENCE, target="猫" * 100)


def test_positions_inside_attention_have_maps_too(tmp_path: Path) -> None:
    network = replace(tiny_network(), position="alibi")
    checkpoint = load_checkpoint(
        write_tiny_checkpoint(tmp_path / "alibi", pairs=(EN_ZH,), network=network)
    )
    for target in (None, TARGET):
        found = explain_sentence(checkpoint, EN_ZH, SENTENCE, target=target)
        np.testing.assert_allclose(found.cross[0].sum(axis=-1), 1.0, rtol=1e-5)


def test_a_decoder_that_does_not_attend_to_its_past_has_no_maps_of_it(tmp_path: Path) -> None:
    network = replace(tiny_network(), decoder_cell="ssru")
    student = load_checkpoint(
        write_tiny_checkpoint(tmp_path / "student", pairs=(EN_ZH,), network=network)
    )
    found = explain_sentence(student, EN_ZH, SENTENCE)
    assert found.decoder == ()
    assert len(found.cross) == network.num_decoder_layers
    write_pages(found, student.transformer, tmp_path / "pages", fonts=installed_fonts())
    names = {path.name for path in (tmp_path / "pages").glob("*-layer-*.png")}
    kinds = {name.split("-")[0] for name in names}
    assert kinds == {"encoder", "cross"}


def test_half_characters_are_replaced(checkpoint: Checkpoint) -> None:
    found = explain_sentence(checkpoint, EN_ZH, "A cat \udce9.", target="猫\udce9")
    assert found.source == "A cat \ufffd."
    assert found.translation == "猫\ufffd"
