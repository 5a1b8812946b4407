import pytest

from model.checkpoint.description.strict_json import format_json
from model.errors import ConfigError
from model.text.subwords.pieces import OwnTable, PieceModel, is_own_table, parse_pieces
from support.tiny_checkpoint import tiny_spm


@pytest.fixture(scope="module")
def pieces() -> PieceModel:
    return PieceModel(tiny_spm())


def test_a_cut_sentencepiece_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not a SentencePiece model"):
        PieceModel(tiny_spm()[:-10])


def test_a_sentencepiece_file_without_pieces_is_refused() -> None:
    for read in (PieceModel, parse_pieces):
        with pytest.raises(ConfigError, match="without pieces"):
            read(b"")


def test_the_own_numbering_is_a_mapping(pieces: PieceModel) -> None:
    table = OwnTable(pieces)
    assert dict(table) == pieces.table() == {pieces.own_piece(i): i for i in range(len(pieces))}
    assert len(table) == len(pieces)
    assert "▁cat" in table
    assert "never written" not in table
    assert table["<unk>"] == pieces.unk_id
    with pytest.raises(KeyError):
        table["never written"]


def test_a_file_that_says_what_the_pieces_say_is_known(pieces: PieceModel) -> None:
    assert is_own_table(format_json(pieces.table()), pieces)


def test_a_file_that_says_anything_else_is_not(pieces: PieceModel) -> None:
    table = pieces.table()
    data = format_json(table)
    swapped = {**table, "▁cat": table["▁sees"], "▁sees": table["▁cat"]}
    last = list(table)[-1]
    shorter = {piece: index for piece, index in table.items() if piece != last}
    others = [
        format_json(swapped),
        format_json(shorter),
        format_json({**table, "more": len(table)}),
        data + b" ",
        data[:-1],
        b"[" + data[1:],
        b"",
    ]
    assert not any(is_own_table(other, pieces) for other in others)


def test_a_file_is_given_back_as_it_was(pieces: PieceModel) -> None:
    assert PieceModel(pieces.data).table() == pieces.table()
    assert pieces.data == tiny_spm()


def test_pieces_that_were_joined_first_score_higher(pieces: PieceModel) -> None:
    joined = [
        pieces.own_score(index) for index in range(len(pieces)) if len(pieces.own_piece(index)) == 2
    ]
    assert joined == sorted(joined, reverse=True)
    assert len(set(joined)) > 9
