"""The tokenizer of a checkpoint: SentencePiece or merges files and vocabularies, read and checked.

Owns which files are read, how large they may be and what is said of one that is damaged. It does
not own what a tokenizer does with them (`model.text.subwords.tokenizer`). Imports no torch.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from model.checkpoint.description.strict_json import parse_json
from model.checkpoint.files.checksums import read_limited
from model.checkpoint.files.verification import MAX_TOKENIZER_BYTES, MAX_VOCABULARY_BYTES
from model.checkpoint.manifest import Manifest
from model.errors import CheckpointError, ConfigError, DragomanError
from model.text.subwords.bpe import MAX_MERGES_BYTES
from model.text.subwords.moses import MosesBpe, MosesPieces
from model.text.subwords.normalisation import NormalisedPieces
from model.text.subwords.pieces import OwnTable, PieceModel, Pieces, is_own_table
from model.text.subwords.tokenizer import Tokenizer


def load_tokenizer(directory: Path, manifest: Manifest) -> Tokenizer:
    """The tokenizer in the files of a checkpoint.

    Raises:
        CheckpointError: A file is missing, is not what it should be, or does not fit the
            manifest.
    """
    files = manifest.files
    if manifest.moses is not None:
        return _load_moses(directory, manifest, manifest.moses)
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
    return _checked(
        directory,
        manifest,
        models=(models[files.source_tokenizer], models[files.target_tokenizer]),
        tables=(tables[files.source_vocabulary], tables[files.target_vocabulary]),
    )


def _load_moses(directory: Path, manifest: Manifest, rules: MosesBpe) -> Tokenizer:
    files = manifest.files
    return _checked(
        directory,
        manifest,
        models=(
            _read_merges(directory / files.source_tokenizer, rules, rules.source_language),
            _read_merges(directory / files.target_tokenizer, rules, rules.target_language),
        ),
        tables=(
            _read_table(directory / files.source_vocabulary),
            _read_table(directory / files.target_vocabulary),
        ),
    )


def _checked(
    directory: Path,
    manifest: Manifest,
    *,
    models: tuple[Pieces, Pieces],
    tables: tuple[Mapping[str, int], Mapping[str, int]],
) -> Tokenizer:
    """The tokenizer, once source and target fit the manifest."""
    try:
        return build_tokenizer(
            manifest,
            source_model=models[0],
            target_model=models[1],
            source_table=tables[0],
            target_table=tables[1],
        )
    except ConfigError as error:
        raise CheckpointError(directory / manifest.files.source_vocabulary, str(error)) from error


def build_tokenizer(
    manifest: Manifest,
    *,
    source_model: Pieces,
    target_model: Pieces,
    source_table: Mapping[str, int],
    target_table: Mapping[str, int],
) -> Tokenizer:
    """The tokenizer of a manifest's tokens, directions and vocabulary sizes.

    Raises:
        ConfigError: A table does not fit the manifest; the message lists all problems.
    """
    if manifest.normalisation is not None:
        source_model = NormalisedPieces(source_model, manifest.normalisation)
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


def _read_merges(path: Path, rules: MosesBpe, language: str) -> MosesPieces:
    try:
        return MosesPieces(read_limited(path, MAX_MERGES_BYTES), rules, language)
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


def _read_table(path: Path, pieces: PieceModel | None = None) -> Mapping[str, int]:
    """The table of a file; the numbering of the pieces themselves where the file has just that."""
    try:
        data = read_limited(path, MAX_VOCABULARY_BYTES)
        if pieces is not None and is_own_table(data, pieces):
            return OwnTable(pieces)
        value = parse_json(data)
    except ConfigError as error:
        raise CheckpointError(path, str(error)) from error
    # `type` and not `isinstance`: true and false are no ids.
    if not isinstance(value, dict) or any(type(index) is not int for index in value.values()):
        raise CheckpointError(path, "is not a JSON object from pieces to integers")
    return value
