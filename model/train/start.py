"""Where a run begins when it does not begin anew: with the vocabulary and weights of another.

Owns the two things that can be begun with: the folder of a run (its latest snapshot) and a
checkpoint directory (its int8 rows widened, a start as good as the weights they were made of).
"""

from pathlib import Path

from model.checkpoint.manifest import CONFIG_FILE, read_manifest
from model.checkpoint.plain import parse_json
from model.checkpoint.weights import load_checkpoint
from model.errors import DataError, TrainingError
from model.nn.transformer import Transformer
from model.text.tokenizer import PieceModel
from model.train.experiment import VocabularyConfig
from model.train.state import load_latest_snapshot
from model.train.vocabulary import copy_vocabularies, vocabulary_paths


def copy_start_vocabularies(config: VocabularyConfig, start: Path, folder: Path) -> None:
    """Copy the vocabulary that a run begins with into its folder.

    Args:
        config: Joint or not; `start`'s must be the same.
        start: Folder of a run, or a checkpoint directory.
        folder: Gets `joint.spm`, or `source.spm` and `target.spm`.

    Raises:
        DataError: The files are not there, or a checkpoint numbers pieces in another way than
            training does.
        CheckpointError: The checkpoint is damaged.
    """
    if not _is_checkpoint(start):
        copy_vocabularies(config, start, folder)
        return
    files = read_manifest(start).files
    paths = vocabulary_paths(config, folder)
    if config.is_joint != (files.source_tokenizer == files.target_tokenizer):
        sort = "a joint vocabulary" if config.is_joint else "a vocabulary for each side"
        raise DataError(f"{start}: the experiment has {sort}, the checkpoint has not")
    _copy_pieces(start / files.source_tokenizer, start / files.source_vocabulary, paths.source_path)
    if not config.is_joint:
        _copy_pieces(
            start / files.target_tokenizer, start / files.target_vocabulary, paths.target_path
        )


def load_start_weights(start: Path, transformer: Transformer) -> None:
    """Give a network the weights that a run begins with.

    Args:
        start: Folder of a run, or a checkpoint directory.
        transformer: Of the same shape; its dropout may be another.

    Raises:
        TrainingError: There are none, or they are of a network of another shape.
        CheckpointError: The checkpoint is damaged.
    """
    if not _is_checkpoint(start):
        load_latest_snapshot(start, transformer)
        return
    weights = load_checkpoint(start).transformer.state_dict()
    try:
        transformer.load_state_dict(weights)
    except RuntimeError as error:
        raise TrainingError(f"{start}: of another network: {error}") from error


def _is_checkpoint(folder: Path) -> bool:
    return (folder / CONFIG_FILE).exists()


def _copy_pieces(path: Path, table_path: Path, copy: Path) -> None:
    """Copy a SentencePiece file, unless the checkpoint's ids are not the file's own numbers."""
    try:
        data, table = path.read_bytes(), table_path.read_bytes()
    except OSError as error:
        raise DataError(f"{error.filename}: {error.strerror or error}") from error
    if parse_json(table) != PieceModel(data).table():
        raise DataError(
            f"{table_path}: the ids are not the SentencePiece file's own numbers; training"
            " cannot begin with this checkpoint"
        )
    copy.write_bytes(data)
