"""Where a run begins when it does not begin anew: with the vocabulary and weights of another.

Owns the two things that can be begun with: the folder of a run (its latest snapshot) and a
checkpoint directory (its int8 rows widened, a start as good as the weights they were made of).
"""

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from model.checkpoint.manifest import CONFIG_FILE, read_manifest
from model.checkpoint.plain import parse_json
from model.checkpoint.weights import load_checkpoint
from model.errors import DataError, TrainingError
from model.nn.transformer import Transformer
from model.text.pieces import PieceModel
from model.train.experiment import Experiment, VocabularyConfig
from model.train.state import list_snapshots, load_latest_snapshot
from model.train.vocabulary import copy_vocabularies, load_pieces, vocabulary_paths

NETWORK_SHAPE = (
    "d_model",
    "num_heads",
    "d_ff",
    "num_encoder_layers",
    "num_decoder_layers",
    "activation",
    "norm",
    "norm_placement",
    "position",
    "tie_output",
    "output_bias",
)
"""The keys of `network` that weights depend on; dropout is not among them."""


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


def check_start_shape(start: Path, experiment: Experiment) -> None:
    """Compare the network a run begins with to the experiment's, before anything is done.

    Raises:
        DataError: The vocabulary is not there.
        TrainingError: There are no weights, or they are of a network of another shape; the
            message names the first difference.
        CheckpointError: The checkpoint is damaged.
    """
    if _is_checkpoint(start):
        found = read_manifest(start).network
        wanted = experiment.network.build(
            source_size=found.vocab_size,
            target_size=found.output_size,
            is_joint=experiment.vocabulary.is_joint,
        )
        for name in NETWORK_SHAPE:
            if getattr(found, name) != getattr(wanted, name):
                raise TrainingError(
                    f"{start}: of another network: network.{name} is {getattr(wanted, name)!r},"
                    f" the checkpoint's is {getattr(found, name)!r}"
                )
        return
    paths = vocabulary_paths(experiment.vocabulary, start)
    for path in (paths.source_path, paths.target_path):
        if not path.is_file():
            raise DataError(f"{path}: No such file or directory")
    sizes = [load_pieces(path).get_piece_size() for path in (paths.source_path, paths.target_path)]
    with torch.device("meta"):
        transformer = Transformer(
            experiment.network.build(
                source_size=sizes[0], target_size=sizes[1], is_joint=paths.is_joint
            )
        )
    wanted_shapes = {name: list(t.shape) for name, t in transformer.state_dict().items()}
    found_shapes = _latest_shapes(start)
    for name in sorted({*wanted_shapes, *found_shapes}):
        if wanted_shapes.get(name) != found_shapes.get(name):
            raise TrainingError(
                f"{start}: of another network: {name} is {wanted_shapes.get(name, 'absent')} in the"
                f" experiment's and {found_shapes.get(name, 'absent')} in the snapshot"
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


def _latest_shapes(folder: Path) -> dict[str, list[int]]:
    """The tensors' shapes of a run's latest snapshot, without reading the tensors."""
    paths = list_snapshots(folder)
    if not paths:
        raise TrainingError(f"{folder}: holds no snapshot to start from")
    try:
        with safe_open(paths[-1], framework="pt") as snapshot:
            return {name: snapshot.get_slice(name).get_shape() for name in snapshot.keys()}  # noqa: SIM118  # not a mapping
    except (OSError, SafetensorError) as error:
        raise TrainingError(f"{paths[-1]}: not a snapshot: {error}") from error


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
