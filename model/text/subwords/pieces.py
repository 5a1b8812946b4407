"""SentencePiece files, and the numbering of their pieces.

Owns the typed interface to SentencePiece, and the comparison of a vocabulary file with the
numbering of its SentencePiece file.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, cast

import sentencepiece

from model.errors import ConfigError

_ANY_TEXT = "a 1 \U0010fffd"
"""With a character that no file has a piece for."""
_BLOCK = 4096
"""Pieces that are tried together, so that a trial takes little memory beside a large file."""


class Pieces(Protocol):
    """Protocol of what cuts the text of one side into pieces, and joins them again."""

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text."""

    def text(self, pieces: Sequence[str]) -> str:
        """The text of some pieces."""


def parse_pieces(data: bytes) -> sentencepiece.SentencePieceProcessor:
    """SentencePiece's own object for the bytes of one of its files.

    A file is never opened by its name: SentencePiece takes names that are text only.

    Raises:
        ConfigError: The bytes are not a SentencePiece model.
    """
    # An empty file parses as an empty message, which the first use would crash on.
    if not data:
        raise ConfigError("is a SentencePiece model without pieces")
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=data)
        num_pieces = processor.get_piece_size()
        if num_pieces:
            _use(processor)
    except Exception as error:  # whatever a file from elsewhere makes it raise
        raise ConfigError(f"is not a SentencePiece model ({type(error).__name__})") from error
    if num_pieces == 0:
        raise ConfigError("is a SentencePiece model without pieces")
    return processor


def _use(processor: sentencepiece.SentencePieceProcessor) -> None:
    """Try every piece: one that is not UTF-8 raises only when it is used."""
    num_pieces = processor.get_piece_size()
    for begin in range(0, num_pieces, _BLOCK):
        ids = list(range(begin, min(begin + _BLOCK, num_pieces)))
        processor.id_to_piece(ids)
        processor.decode(ids)
    processor.id_to_piece([processor.unk_id(), processor.piece_to_id(_ANY_TEXT)])
    processor.encode(_ANY_TEXT, out_type=int)
    processor.encode(_ANY_TEXT, out_type=str)


class PieceModel:
    """The pieces of one SentencePiece file, with types.

    Encoding and decoding change nothing in it, so threads may share one.

    Raises:
        ConfigError: The bytes are not a SentencePiece model.
    """

    def __init__(self, data: bytes) -> None:
        self._processor = parse_pieces(data)

    def __len__(self) -> int:
        """How many pieces it has."""
        return self._processor.get_piece_size()

    @property
    def unk_id(self) -> int:
        """What stands for text without a piece, in the file's own numbering."""
        return self._processor.unk_id()

    @property
    def data(self) -> bytes:
        """The file again."""
        return self._processor.serialized_model_proto()

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text; one that the file does not have is the text it stands for.

        Args:
            text: Must not have lone surrogates, which are not UTF-8.
        """
        return cast("list[str]", self._processor.encode(text, out_type=str))

    def text(self, pieces: Sequence[str]) -> str:
        """The text of some pieces; bytes that are not UTF-8 become U+FFFD."""
        return cast("str", self._processor.decode(list(pieces))) if pieces else ""

    def own_ids(self, text: str) -> list[int]:
        """As `pieces`, in the file's own numbering."""
        return cast("list[int]", self._processor.encode(text, out_type=int))

    def own_text(self, ids: Sequence[int]) -> str:
        """As `text`, of ids in the file's own numbering."""
        return cast("str", self._processor.decode(list(ids))) if ids else ""

    def own_piece(self, index: int) -> str:
        """The piece of an id in the file's own numbering."""
        return self._processor.id_to_piece(index)

    def own_score(self, index: int) -> float:
        """The log-probability of a unigram's piece, by its id in the file's own numbering."""
        return self._processor.get_score(index)

    def own_id(self, piece: str) -> int | None:
        """The id of a piece in the file's own numbering."""
        index = self._processor.piece_to_id(piece)
        return index if self.own_piece(index) == piece else None

    def table(self) -> dict[str, int]:
        """The file's own numbering, for networks that are trained with it."""
        return dict(OwnTable(self))


class OwnTable(Mapping[str, int]):
    """A SentencePiece file's own numbering, looked up there: nothing is kept beside it.

    A table of 58,101 pieces takes 5 MiB, and reading it from JSON another 10 MiB that are never
    given back.
    """

    def __init__(self, pieces: PieceModel) -> None:
        self.pieces = pieces

    def __repr__(self) -> str:
        return f"<OwnTable of {len(self)} pieces>"

    def __getitem__(self, piece: str) -> int:
        """The id of a piece."""
        index = self.pieces.own_id(piece)
        if index is None:
            raise KeyError(piece)
        return index

    def __iter__(self) -> Iterator[str]:
        """The pieces, by id."""
        return map(self.pieces.own_piece, range(len(self.pieces)))

    def __len__(self) -> int:
        """How many pieces there are."""
        return len(self.pieces)


def is_own_table(data: bytes, pieces: PieceModel) -> bool:
    """Whether a vocabulary file is the numbering of the pieces, as checkpoints write it.

    It is compared piece by piece and never held as a whole.
    """
    begin, last = len(b"{\n"), len(pieces) - 1
    quoted = json.JSONEncoder(ensure_ascii=False).encode
    for index in range(len(pieces)):
        comma = "" if index == last else ","
        line = f"  {quoted(pieces.own_piece(index))}: {index}{comma}\n".encode()
        if not data.startswith(line, begin):
            return False
        begin += len(line)
    return data[:2] == b"{\n" and data[begin:] == b"}\n"
