"""Start of a run from the vocabulary and weights of another.

Owns the two kinds of start: the folder of a run (its latest snapshot) and a checkpoint directory
(its int8 rows widened, a start as good as the weights they were made of).
"""

import logging
from collections.abc import Set
from dataclasses import fields, replace
from functools import partial
from itertools import chain
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.description.strict_json import parse_json
from model.checkpoint.manifest import CONFIG_FILE, Manifest
from model.checkpoint.weights import load_checkpoint
from model.config import ABSOLUTE_POSITIONS, ModelConfig
from model.errors import ConfigError, DataError, TrainingError
from model.nn.transformer import Transformer
from model.system.paths import exists, is_file, is_folder, utf8_name
from model.text.subwords.pieces import PieceModel
from model.train.config.comparison import differences
from model.train.config.data import DataConfig, tag_piece
from model.train.config.experiment import Experiment
from model.train.config.network import NetworkConfig
from model.train.config.vocabulary import VocabularyConfig
from model.train.config.yaml_config import read_section
from model.train.config.yaml_lines import KeyPlaces
from model.train.data.vocabulary import (
    copy_vocabularies,
    load_pieces,
    piece_kind,
    vocabulary_paths,
)
from model.train.files import write_whole
from model.train.records.report import EXPERIMENT_FILE
from model.train.saved.state import list_snapshots, load_latest_snapshot

_LOGGER = logging.getLogger("dragoman.train")

_NO_MATTER = frozenset({"dropout", "attention_dropout", "activation_dropout"})
"""Fields of a network that weights do not depend on."""


_MAX_PIECES = 8  # in a warning


def check_start(start: Path, experiment: Experiment, places: KeyPlaces) -> None:
    """Check that a start fits the experiment, before anything is done.

    A start that is asked for its directions by pieces before the source or the target, which the
    experiment leaves out, is warned of.

    Args:
        start: Folder of a run, or a checkpoint directory.
        experiment: Its `vocabulary` and `network` must be those of `start`; dropout may differ.
        places: Where its keys stand.

    Raises:
        ConfigError: The vocabulary is of another kind or size, or a run's was trained otherwise.
        DataError: There is no such folder, or no vocabulary, or it is joint where the experiment's
            is not; or the system does not let it be read.
        TrainingError: There are no weights, or they are of another network; the message names
            the first difference.
        CheckpointError: The checkpoint is damaged.
    """
    if not is_folder(start):
        raise DataError(f"{start}: there is no such folder to start from")
    manifest = read_manifest(start) if _is_checkpoint(start) else None
    paths = _find_vocabularies(start, experiment.vocabulary, manifest, places)
    sizes = [_check_pieces(path, experiment.vocabulary, places) for path in paths]
    is_joint = experiment.vocabulary.is_joint
    build = partial(
        NetworkConfig.build, source_size=sizes[0], target_size=sizes[-1], is_joint=is_joint
    )
    wanted = build(experiment.network)
    if manifest is not None:
        _compare_networks(start, wanted, manifest.network, "checkpoint", places)
        starts = (pair.source_start + pair.target_prefix for pair in manifest.pairs)
        _warn_of_tags(start, experiment, set(chain.from_iterable(starts)))
        return
    path = start / EXPERIMENT_FILE
    if exists(path):
        _compare_vocabularies(start, experiment.vocabulary, path, places)
        found = build(read_section(path, "network", NetworkConfig))
        _compare_networks(start, wanted, found, "run", places)
        data = read_section(path, "data", DataConfig)
        tags = {tag_piece(item) for item in data.directions} if data.is_tagged else set()
        _warn_of_tags(start, experiment, tags)
    _compare_shapes(start, wanted, places)


def copy_start_vocabularies(config: VocabularyConfig, start: Path, folder: Path) -> None:
    """Copy the start's vocabulary into a run's folder.

    Args:
        config: Joint or not; `start`'s is the same.
        start: Folder of a run, or a checkpoint directory, that `check_start` has accepted.
        folder: Gets `joint.spm`, or `source.spm` and `target.spm`.

    Raises:
        DataError: The files are not there, or a checkpoint numbers pieces in another way than
            training does.
        TrainingError: A copy cannot be written.
        CheckpointError: The checkpoint is damaged.
    """
    if not _is_checkpoint(start):
        copy_vocabularies(config, start, folder)
        return
    files = read_manifest(start).files
    paths = vocabulary_paths(config, folder)
    _copy_pieces(start / files.source_tokenizer, start / files.source_vocabulary, paths.source_path)
    if not config.is_joint:
        _copy_pieces(
            start / files.target_tokenizer, start / files.target_vocabulary, paths.target_path
        )


def load_start_weights(start: Path, transformer: Transformer) -> None:
    """Load the start's weights into a network.

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
    return exists(folder / CONFIG_FILE)


def _warn_of_tags(start: Path, experiment: Experiment, pieces: Set[str]) -> None:
    """Warning of pieces that name a direction to the start, and that no source would have."""
    if not pieces or experiment.data.is_tagged:
        return
    values = {
        "start_from": str(start),
        "pieces": " ".join(sorted(pieces)[:_MAX_PIECES]),
        "reason": "the network it begins with is told its direction by these, which the experiment"
        " leaves out; list the direction under data.pairs to keep the tag",
    }
    _LOGGER.warning("direction_tags_left_out", extra={"fields": values})


def _find_vocabularies(
    start: Path, config: VocabularyConfig, manifest: Manifest | None, places: KeyPlaces
) -> tuple[Path, ...]:
    """The start's vocabulary files: one if it is joint, else the source's and the target's.

    Raises:
        DataError: One is missing, or there is another number of them.
    """
    if manifest is None:
        owner, found = "run", vocabulary_paths(config, start)
        paths = (found.source_path, found.target_path)
        other = vocabulary_paths(replace(config, is_joint=not config.is_joint), start)
        is_other = not exists(paths[0]) and exists(other.source_path)
    else:
        owner = "checkpoint"
        paths = (start / manifest.files.source_tokenizer, start / manifest.files.target_tokenizer)
        is_other = config.is_joint != (paths[0] == paths[1])
    if is_other:
        sort = "a joint vocabulary" if config.is_joint else "a vocabulary for each side"
        with places.blame("vocabulary.is_joint"):
            raise DataError(f"{start}: the experiment has {sort}, the {owner} has not")
    for path in paths:
        if not is_file(path):
            raise DataError(f"{path}: No such file or directory")
    return tuple(dict.fromkeys(paths))


def _check_pieces(path: Path, config: VocabularyConfig, places: KeyPlaces) -> int:
    """The size of a vocabulary, checked against the experiment.

    Raises:
        ConfigError: It is of another kind or size.
        DataError: It is damaged.
    """
    pieces = load_pieces(path)
    size = pieces.get_piece_size()
    for name, wanted, found in (
        ("kind", config.kind, piece_kind(pieces)),
        ("size", config.size, size),
    ):
        if wanted != found:
            with places.blame(f"vocabulary.{name}"):
                raise ConfigError(
                    f"{path}: another vocabulary: vocabulary.{name} is {wanted!r}, the file's is"
                    f" {found!r}"
                )
    return size


def _compare_vocabularies(
    start: Path, wanted: VocabularyConfig, path: Path, places: KeyPlaces
) -> None:
    """Refusal of vocabulary settings that differ from those the vocabulary was trained with.

    Of a checkpoint's vocabulary only the kind, the size and whether it is joint are known.
    """
    found = read_section(path, "vocabulary", VocabularyConfig)
    for key, difference in differences(wanted, found, "vocabulary", left_out={"max_lines"}):
        with places.blame(key):
            raise ConfigError(f"{start}: another vocabulary: {key} {difference}")


def _compare_networks(
    start: Path, wanted: ModelConfig, found: ModelConfig, owner: str, places: KeyPlaces
) -> None:
    """Refusal of a network that means something else, or has other tensors."""
    wanted, found = _explicit(wanted), _explicit(found)
    for item in fields(wanted):
        values = getattr(wanted, item.name), getattr(found, item.name)
        if item.name not in _NO_MATTER and values[0] != values[1]:
            with places.blame(f"network.{item.name}"):
                raise TrainingError(
                    f"{start}: of another network: network.{item.name} is {values[0]!r},"
                    f" the {owner}'s is {values[1]!r}"
                )


def _explicit(config: ModelConfig) -> ModelConfig:
    """The same network with every width said, and one value for what plays no part in it."""
    is_learned, is_absolute = config.position == "learned", config.position in ABSOLUTE_POSITIONS
    return replace(
        config,
        target_vocab_size=config.output_size,
        d_k=config.query_width,
        d_v=config.value_width,
        decoder_d_ff=config.decoder_inner_width,
        max_positions=config.max_positions if is_learned else 1,
        position_offset=config.position_offset if is_absolute else 0,
    )


def _compare_shapes(start: Path, config: ModelConfig, places: KeyPlaces) -> None:
    with torch.device("meta"):
        transformer = Transformer(config)
    wanted = {name: list(tensor.shape) for name, tensor in transformer.state_dict().items()}
    found = _latest_shapes(start)
    for name in sorted({*wanted, *found}):
        if wanted.get(name) != found.get(name):
            with places.blame("network"):
                raise TrainingError(
                    f"{start}: of another network: {name} is {wanted.get(name, 'absent')} in the"
                    f" experiment's and {found.get(name, 'absent')} in the snapshot"
                )


def _latest_shapes(folder: Path) -> dict[str, list[int]]:
    """The tensors' shapes of a run's latest snapshot, without reading the tensors."""
    paths = list_snapshots(folder)
    if not paths:
        raise TrainingError(f"{folder}: holds no snapshot to start from")
    try:
        with utf8_name(paths[-1]) as opened, safe_open(opened, framework="pt") as snapshot:
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
    write_whole(copy, data)
