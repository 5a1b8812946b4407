"""The tokenizer of a checkpoint: its SentencePiece files and vocabularies, read and checked.

Owns which files are read, how large they may be and what is said of one that is damaged. It does
not own what a tokenizer does with them (`model.text.tokenizer`). Imports no torch.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from model.checkpoint.checksums import read_limited
from model.checkpoint.manifest import Manifest
from model.checkpoint.strict_json import parse_json
from model.checkpoint.verification import MAX_TOKENIZER_BYTES, MAX_VOCABULARY_BYTES
from model.errors import CheckpointError, ConfigError, DragomanError
from model.text.pieces import OwnTable, PieceModel, is_own_table
from model.text.tokenizer import Tokenizer


def load_tokenizer(directory: Path, manifest: Manifest) -> Tokenizer:
    """The tokenizer in the files of a checkpoint.

    Raises:
        CheckpointError: A file is missing, is not what it should be, or does not fit the
            manifest.
    """
    files = manifest.files
    models = {
        name: _read_model(directory / name)
        for name in {files.source_tokenizer, files.target_tokenizer}
    }
    sides = {
        files.source_vocabulary: files.source_tokenizer,
        files.target_vocabulary: files.target_tokenizer,
    }
    tables = {}
    for name, tokenizer in sides.items():
        with _reading_pieces(directory / tokenizer):
            tables[name] = _read_table(directory / name, models[tokenizer])
    try:
        return build_tokenizer(
            manifest,
            source_model=models[files.source_tokenizer],
            target_model=models[files.target_tokenizer],
            source_table=tables[files.source_vocabulary],
            target_table=tables[files.target_vocabulary],
        )
    except ConfigError as error:
        raise CheckpointError(directory / files.source_vocabulary, str(error)) from error


def build_tokenizer(
    manifest: Manifest,
    *,
    source_model: PieceModel,
    target_model: PieceModel,
    source_table: Mapping[str, int],
    target_table: Mapping[str, int],
) -> Tokenizer:
    """The tokenizer of a manifest's tokens, directions and vocabulary sizes.

    Raises:
        ConfigError: A table does not fit the manifest; the message lists all problems.
    """
    return Tokenizer(
        tokens=manifest.tokens,
        pairs=manifest.pairs,
        source_size=manifest.network.vocab_size,
        target_size=manifest.network.output_size,
        source_model=source_model,
        target_model=target_model,
        source_table=source_table,
        target_table=target_table,
    )


def _read_model(path: Path) -> PieceModel:
    try:
        return PieceModel(read_limited(path, MAX_TOKENIZER_BYTES))
    except ConfigError as error:
        raise CheckpointError(path, str(error)) from error


@contextmanager
def _reading_pieces(path: Path) -> Iterator[None]:
    """Context in which whatever SentencePiece raises is an error of one of its files."""
    try:
        yield
    except DragomanError:
        raise
    except Exception as error:
        raise CheckpointError(
            path, f"has pieces that cannot be read ({type(error).__name__})"
        ) from error


def _read_table(path: Path, pieces: PieceModel) -> Mapping[str, int]:
    """The table of a file; the numbering of the pieces themselves where the file has just that."""
    try:
        data = read_limited(path, MAX_VOCABULARY_BYTES)
        if is_own_table(data, pieces):
            return OwnTable(pieces)
        value = parse_json(data)
    except ConfigError as error:
        raise CheckpointError(path, str(error)) from error
    # `type` and not `isinstance`: true and false are no ids.
    if not isinstance(value, dict) or any(type(index) is not int for index in value.values()):
        raise CheckpointError(path, "is not a JSON object from pieces to integers")
    return value
