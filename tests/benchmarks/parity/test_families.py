"""Vocabularies of released sizes, without their text."""

from model.text.subwords.pieces import PieceModel
from support.huggingface_folders import SENTENCES, filled, trained_spm


def test_a_vocabulary_that_is_filled_up_has_more_pieces_and_cuts_text_as_before() -> None:
    for kind in ("unigram", "bpe"):
        few, many = trained_spm(260, kind=kind), filled(trained_spm(260, kind=kind), 9_000)
        assert len(PieceModel(many)) == 9_000
        assert PieceModel(many).own_piece(8_999) == "filler8999"
        for line in [*SENTENCES[:50], "filler8999"]:
            assert PieceModel(many).own_ids(line) == PieceModel(few).own_ids(line)
