"""The files beside a model that say how text becomes pieces, where its own format does not.

Owns which names SentencePiece's have, and whether their pieces are those of the model's vocabulary.
It does not own what a tokenizer does with them (`model.text.subwords.tokenizer`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from model.checkpoint.description.strict_json import parse_json
from model.checkpoint.files.checksums import read_limited
from model.checkpoint.files.verification import MAX_TOKENIZER_BYTES, MAX_VOCABULARY_BYTES
from model.checkpoint.weights import TokenizerParts
from model.errors import CheckpointError, ConfigError, ForeignModelError
from model.exchange.imports.fast_tokenizer import FAST_TOKENIZER, not_rebuilt, rebuilt_pieces
from model.system.paths import is_file
from model.text.subwords.bpe import MAX_MERGES_BYTES
from model.text.subwords.moses import MosesBpe, MosesPieces
from model.text.subwords.pieces import PieceModel

_PAIRED = (("source.spm", "target.spm"), ("source.model", "target.model"))
_SHARED = (
    *("sentencepiece.model", "spm.model", "sentencepiece.bpe.model", "spiece.model"),
    *("tokenizer.model", "vocab.spm", "spm.128k.model", "bpe.model"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceFiles:
    """Bytes of SentencePiece files, or of merges.

    Attributes:
        source: Of the source.
        target: Of the target; None if it is the source's.
        moses: How words become pieces; None for SentencePiece.
    """

    source: bytes
    target: bytes | None = None
    moses: MosesBpe | None = None

    def problems(self, source: Collection[str], target: Collection[str]) -> list[str]:
        """Files that lack most of their side's pieces, and so belong to other text.

        One of two files has a part of a vocabulary that both sides share. Merges do not list their
        pieces.
        """
        if self.moses is not None:
            return []
        sides = {"source": (self.source, source), "target": (self.target or self.source, target)}
        is_part = self.target is not None and source == target
        found = []
        for side, (data, pieces) in sides.items():
            model = PieceModel(data)
            num_known = sum(model.own_id(piece) is not None for piece in pieces)
            if (4 if is_part else 2) * num_known < len(pieces):
                found.append(
                    f"the {side}'s SentencePiece file has {num_known} of the {len(pieces)} pieces"
                    " of its vocabulary; it belongs to another model"
                )
        return found


def find_piece_files(folder: Path) -> PieceFiles:
    """The SentencePiece files in a folder: one for each side, or one for both.

    One for both is made of tokenizer.json where that alone is there.

    Raises:
        ForeignModelError: There is none, or it is damaged.
    """
    for source, target in _PAIRED:
        if is_file(folder / source, _unusable) and is_file(folder / target, _unusable):
            return PieceFiles(source=_read(folder / source), target=_read(folder / target))
    for name in _SHARED:
        if is_file(folder / name, _unusable):
            return PieceFiles(source=_read(folder / name))
    names = ", ".join(["source.spm with target.spm", *_SHARED])
    lacking = f"it lacks a SentencePiece file ({names})"
    if not is_file(folder / FAST_TOKENIZER, _unusable):
        raise ForeignModelError(folder, [lacking])
    try:
        described = parse_json(read_limited(folder / FAST_TOKENIZER, MAX_VOCABULARY_BYTES))
        return PieceFiles(source=rebuilt_pieces(described).data)
    except CheckpointError as error:
        raise ForeignModelError(folder / FAST_TOKENIZER, [error.problem]) from error
    except ConfigError as error:
        raise ForeignModelError(folder, [lacking + not_rebuilt(error)]) from error


def other_pieces(parts: TokenizerParts) -> list[str]:
    """A problem for every SentencePiece file whose pieces are not those of its vocabulary.

    Raises:
        ConfigError: There is no vocabulary.
    """
    files = PieceFiles(source=parts.source_pieces, target=parts.target_pieces, moses=parts.moses)
    return files.problems(*parts.tables())


def read_merges(path: Path, rules: MosesBpe) -> PieceFiles:
    """A file of merges, of both sides' words.

    Raises:
        ForeignModelError: It is damaged, or what finds words is not installed.
    """
    try:
        data = read_limited(path, MAX_MERGES_BYTES)
        MosesPieces(data, rules, rules.source_language)
    except CheckpointError as error:
        raise ForeignModelError(path, [error.problem]) from error
    except ConfigError as error:
        raise ForeignModelError(path, [str(error)]) from error
    return PieceFiles(source=data, moses=rules)


def _read(path: Path) -> bytes:
    try:
        data = read_limited(path, MAX_TOKENIZER_BYTES)
        PieceModel(data)
    except CheckpointError as error:
        raise ForeignModelError(path, [error.problem]) from error
    except ConfigError as error:
        raise ForeignModelError(path, [str(error)]) from error
    return data


def _unusable(path: Path, problem: str) -> ForeignModelError:
    return ForeignModelError(path, [problem])
