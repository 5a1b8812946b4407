"""Which checkpoints are served: from one path to descriptions and text pipelines.

Owns the meaning of `DRAGOMAN_CHECKPOINT` and what several checkpoints may not share. Imports no
torch: the networks are loaded by the engine.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from model.checkpoint.checksums import fingerprint
from model.checkpoint.manifest import CONFIG_FILE, LanguagePair, Manifest, read_manifest
from model.errors import ConfigError
from model.paths import exists, is_folder
from model.text.tokenizer import Tokenizer
from model.translation import TextPipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCheckpoint:
    """A checkpoint as far as the front needs it.

    Attributes:
        directory: Where it is.
        fingerprint: Names exactly the files that were read.
        manifest: What it says of itself.
        pipeline: Its text ↔ segments.
    """

    directory: Path
    fingerprint: str
    manifest: Manifest
    pipeline: TextPipeline


def find_checkpoints(path: Path) -> tuple[Path, ...]:
    """The directories of the checkpoints at `path`, in order of their names.

    A directory with a config.json is a checkpoint. Any other one is a folder of checkpoints:
    every directory in it is one, but for those whose name begins with a dot.

    Raises:
        ConfigError: There is no such directory, none in it, or it cannot be read.
    """
    path = Path(os.path.realpath(path))  # Path.resolve raises on a loop of links
    if not is_folder(path, _unusable):
        raise ConfigError(
            f"there is no checkpoint directory {path};"
            " name one with --checkpoint or DRAGOMAN_CHECKPOINT"
        )
    if exists(path / CONFIG_FILE, _unusable):
        return (path,)
    try:
        entries = sorted(path.iterdir())
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    found = [entry for entry in entries if entry.name[0] != "." and is_folder(entry, _unusable)]
    if not found:
        raise ConfigError(f"{path} has neither a {CONFIG_FILE} nor directories with one")
    return tuple(found)


def load_checkpoints(path: Path) -> tuple[TextCheckpoint, ...]:
    """Read the descriptions and tokenizers of the checkpoints at `path`.

    Raises:
        ConfigError: There is none, or two of them share a name or a language pair.
        CheckpointError: A file is missing, damaged or inconsistent.
    """
    checkpoints = []
    for directory in find_checkpoints(path):
        name = fingerprint(directory)  # the engine compares: it reads the same files, or fails
        manifest = read_manifest(directory)
        checkpoints.append(
            TextCheckpoint(
                directory=directory,
                fingerprint=name,
                manifest=manifest,
                pipeline=TextPipeline(Tokenizer.load(directory, manifest), manifest),
            )
        )
    _check_distinct(checkpoints)
    return tuple(checkpoints)


def _unusable(path: Path, problem: str) -> ConfigError:
    return ConfigError(f"{path}: {problem}")


def _check_distinct(checkpoints: list[TextCheckpoint]) -> None:
    """A request names a pair and a metric names a checkpoint: each must mean one thing."""
    by_name: dict[str, Path] = {}
    by_pair: dict[tuple[str, str], Path] = {}
    for checkpoint in checkpoints:
        manifest, directory = checkpoint.manifest, checkpoint.directory
        other = by_name.setdefault(manifest.name, directory)
        if other != directory:
            raise ConfigError(f"{other} and {directory} are both called {manifest.name}")
        for pair in manifest.pairs:
            other = by_pair.setdefault(_languages(pair), directory)
            if other != directory:
                raise ConfigError(
                    f"{other} and {directory} both translate from {pair.source} to {pair.target}"
                )


def _languages(pair: LanguagePair) -> tuple[str, str]:
    return pair.source, pair.target
