"""Text to token ids and back: SentencePiece for the pieces, a table for the ids.

Owns the two SentencePiece files, the piece → id tables that stand apart from them, and the
special tokens around a segment. It does not split text (`model.text.segmenter`) and it does
not know how long a segment may be (`model.translation`).
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

import sentencepiece

from model.checkpoint.checksums import read_limited
from model.checkpoint.manifest import LanguagePair, Manifest
from model.checkpoint.plain import parse_json
from model.errors import CheckpointError, ConfigError

MAX_TOKENIZER_BYTES = 128 * 2**20
MAX_VOCABULARY_BYTES = 128 * 2**20


class PieceModel:
    """One SentencePiece file, with types.

    Encoding and decoding change nothing in it, so threads may share one.

    Raises:
        ConfigError: The bytes are not a SentencePiece model.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=data)
        except RuntimeError as error:
            raise ConfigError("is not a SentencePiece model") from error
        # An empty file parses as an empty message, which the first use would crash on.
        if not data or self._processor.get_piece_size() == 0:
            raise ConfigError("is a SentencePiece model without pieces")

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text; one that the file does not have is the text it stands for.

        Args:
            text: Must not have lone surrogates, which are not UTF-8.
        """
        return cast("list[str]", self._processor.encode(text, out_type=str))

    def text(self, pieces: Sequence[str]) -> str:
        """The text of some pieces; bytes that are not UTF-8 become U+FFFD."""
        return cast("str", self._processor.decode(list(pieces))) if pieces else ""

    def table(self) -> dict[str, int]:
        """The file's own numbering, for networks that are trained with it."""
        size = self._processor.get_piece_size()
        return {self._processor.id_to_piece(index): index for index in range(size)}


class Tokenizer:
    """Encodes source segments and decodes target ids of one checkpoint.

    No text can be encoded to a special token or to a language tag: those ids are taken out of
    the table that text is looked up in, so `</s>` typed by a user is text.

    Args:
        manifest: Its tokens, pairs and vocabulary sizes are used.
        source_model: SentencePiece model of the source.
        target_model: That of the target; may be the same object.
        source_table: Piece → id of the source.
        target_table: Piece → id of the target; may be the same object.

    Raises:
        ConfigError: A table does not fit the manifest; the message lists all problems.
    """

    def __init__(
        self,
        manifest: Manifest,
        *,
        source_model: PieceModel,
        target_model: PieceModel,
        source_table: Mapping[str, int],
        target_table: Mapping[str, int],
    ) -> None:
        problems = _table_problems(manifest, source_table, target_table)
        if problems:
            raise ConfigError("; ".join(problems))
        tokens = manifest.tokens
        self._tokens = tokens
        self._source_model = source_model
        self._target_model = target_model
        self._source_prefixes = {
            pair: [source_table[piece] for piece in pair.source_prefix] for pair in manifest.pairs
        }
        self._target_prefixes = {
            pair: [target_table[piece] for piece in pair.target_prefix] for pair in manifest.pairs
        }
        specials = {tokens.pad_id, tokens.eos_id, tokens.unk_id, tokens.start_id}
        source_specials = specials.union(*self._source_prefixes.values())
        target_specials = specials.union(*self._target_prefixes.values())
        self._source_ids = _without(source_table, source_specials)
        self._target_ids = _without(target_table, target_specials)
        self._target_pieces = {index: piece for piece, index in self._target_ids.items()}

    @classmethod
    def load(cls, directory: Path, manifest: Manifest) -> "Tokenizer":
        """Read the tokenizer's files of a checkpoint.

        Raises:
            CheckpointError: A file is missing, is not what it should be, or does not fit the
                manifest.
        """
        files = manifest.files
        models = {
            name: _read_model(directory / name)
            for name in {files.source_tokenizer, files.target_tokenizer}
        }
        tables = {
            name: _read_table(directory / name)
            for name in {files.source_vocabulary, files.target_vocabulary}
        }
        try:
            return cls(
                manifest,
                source_model=models[files.source_tokenizer],
                target_model=models[files.target_tokenizer],
                source_table=tables[files.source_vocabulary],
                target_table=tables[files.target_vocabulary],
            )
        except ConfigError as error:
            raise CheckpointError(directory / files.source_vocabulary, str(error)) from error

    def encode(self, text: str, pair: LanguagePair) -> list[int]:
        """Source ids of a segment: the pair's prefix, the pieces, EOS.

        Args:
            text: Any text without lone surrogates; a piece without an id becomes `unk_id`.
            pair: A pair of the manifest.
        """
        pieces = self._source_model.pieces(text)
        return [*self._source_prefixes[pair], *self._ids(pieces, self._source_ids)]

    def encode_target(self, text: str) -> list[int]:
        """Target ids of a reference, with EOS and without start token and prefix."""
        return self._ids(self._target_model.pieces(text), self._target_ids)

    def target_prefix(self, pair: LanguagePair) -> list[int]:
        """What the decoder is given before the first generated token: start, then tags."""
        return [self._tokens.start_id, *self._target_prefixes[pair]]

    def decode(self, target_ids: Iterable[int]) -> str:
        """The text of target ids; special tokens, tags and ids without a piece are left out."""
        pieces = self._target_pieces
        return self._target_model.text(
            [pieces[index] for index in target_ids if index in pieces],
        )

    def source_pieces(self) -> dict[int, str]:
        """The piece of every source id that text and tags use; special tokens have none."""
        return _named(self._source_ids, self._source_prefixes, "source_prefix")

    def target_pieces(self) -> dict[int, str]:
        """The piece of every target id that text and tags use; special tokens have none."""
        return _named(self._target_ids, self._target_prefixes, "target_prefix")

    def _ids(self, pieces: Iterable[str], table: Mapping[str, int]) -> list[int]:
        unknown = self._tokens.unk_id
        return [*(table.get(piece, unknown) for piece in pieces), self._tokens.eos_id]


def _without(table: Mapping[str, int], ids: set[int]) -> dict[str, int]:
    return {piece: index for piece, index in table.items() if index not in ids}


def _named(
    table: Mapping[str, int], prefixes: Mapping[LanguagePair, list[int]], side: str
) -> dict[int, str]:
    pieces = {index: piece for piece, index in table.items()}
    for pair, ids in prefixes.items():
        pieces |= dict(zip(ids, getattr(pair, side), strict=True))
    return pieces


def _read_model(path: Path) -> PieceModel:
    try:
        return PieceModel(read_limited(path, MAX_TOKENIZER_BYTES))
    except ConfigError as error:
        raise CheckpointError(path, str(error)) from error


def _read_table(path: Path) -> dict[str, int]:
    try:
        value = parse_json(read_limited(path, MAX_VOCABULARY_BYTES))
    except ConfigError as error:
        raise CheckpointError(path, str(error)) from error
    # `type` and not `isinstance`: true and false are no ids.
    if not isinstance(value, dict) or any(type(index) is not int for index in value.values()):
        raise CheckpointError(path, "is not a JSON object from pieces to integers")
    return value


def _table_problems(
    manifest: Manifest, source_table: Mapping[str, int], target_table: Mapping[str, int]
) -> list[str]:
    network, problems = manifest.network, []
    sides = (
        ("source", source_table, network.vocab_size),
        ("target", target_table, network.output_size),
    )
    for side, table, size in sides:
        wrong = [index for index in table.values() if not 0 <= index < size]
        if wrong:
            problems.append(f"{side} vocabulary has id {wrong[0]}; ids go from 0 to {size - 1}")
        if len(set(table.values())) < len(table):
            problems.append(f"{side} vocabulary gives one id to two pieces")
        prefixes = {piece for pair in manifest.pairs for piece in getattr(pair, f"{side}_prefix")}
        problems += [
            f"{side} vocabulary lacks the prefix {piece!r}"
            for piece in sorted(prefixes - set(table))
        ]
    nameless = set(range(network.output_size)) - set(target_table.values())
    tokens = manifest.tokens
    nameless -= {
        *tokens.suppressed_ids,
        tokens.pad_id,
        tokens.eos_id,
        tokens.unk_id,
        tokens.start_id,
    }
    if nameless:
        problems.append(
            f"target vocabulary lacks {len(nameless)} ids that are not suppressed, the first is"
            f" {min(nameless)}"
        )
    return problems
