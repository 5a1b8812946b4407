"""Values of SentencePiece files against the settings that they were trained with."""

import io

import pytest
import sentencepiece

from model.exchange.piece_file import FilePiece, PieceHeader, PieceKind, piece_file, read_header
from model.text.subwords.pieces import PieceModel
from support.huggingface_folders import SENTENCES


def trained(**settings: object) -> bytes:
    output = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_writer=output,
        vocab_size=320,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
        **settings,  # type: ignore[arg-type]  # any of the trainer's
    )
    return PieceModel(output.getvalue()).data


@pytest.mark.parametrize(
    ("kind", "name"), [("unigram", "unigrams"), ("bpe", "byte pairs"), ("char", "characters")]
)
def test_the_kind_is_that_of_the_training(kind: str, name: str) -> None:
    header = read_header(trained(model_type=kind))
    assert header.kind == name
    assert header.has_usual_spaces
    assert not header.has_byte_fallback
    assert len(header.charsmap) > 10_000
    assert header.problems(name, has_byte_fallback=False) == []


def test_what_is_otherwise_is_told_at_once() -> None:
    header = read_header(
        trained(
            byte_fallback=True,
            remove_extra_whitespaces=False,
            normalization_rule_name="identity",
        )
    )
    assert header.charsmap == b""
    assert header.problems("byte pairs", has_byte_fallback=False) == [
        "the SentencePiece file has unigrams (only byte pairs)",
        "the SentencePiece file falls back to bytes (only one that does not)",
        "the SentencePiece file keeps spaces (only one between words)",
    ]
    assert not read_header(trained(add_dummy_prefix=False)).has_usual_spaces


@pytest.mark.parametrize("has_prefix", [True, False])
def test_a_file_that_is_written_is_what_it_was_told(has_prefix: bool) -> None:
    listed = [
        FilePiece(text="<unk>", score=0.0, kind=PieceKind.UNKNOWN),
        FilePiece(text="</s>", score=0.0, kind=PieceKind.CONTROL),
        *(FilePiece(text=f"<0x{byte:02X}>", score=0.0, kind=PieceKind.BYTE) for byte in range(256)),
        FilePiece(text="<2de>", score=0.0, kind=PieceKind.USER_DEFINED),
        FilePiece(text="\u2581", score=-1.0, kind=PieceKind.NORMAL),
        FilePiece(text="猫" * 100, score=-2.5, kind=PieceKind.NORMAL),
    ]
    model = PieceModel(piece_file(listed, "unigrams", charsmap=b"", has_prefix=has_prefix))
    assert [model.own_piece(index) for index in range(len(model))] == [one.text for one in listed]
    assert model.own_score(len(model) - 1) == -2.5
    assert read_header(model.data) == PieceHeader(
        kind="unigrams", charsmap=b"", has_byte_fallback=True, has_usual_spaces=has_prefix
    )
    spaces = ["\u2581"] if has_prefix else []
    assert model.pieces("<2de>é") == [*spaces, "<2de>", "<0xC3>", "<0xA9>"]
