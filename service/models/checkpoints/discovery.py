"""Checkpoints at a path: their discovery, descriptions and text pipelines.

Owns which directories of a path are checkpoints, what several of them may not share, and that one
which cannot be served stops no other. Which path it is, is `service.checkpoint_folder`; files that
stand for checkpoints are `service.models.checkpoints.packages`. Imports no torch: the networks are
loaded by the engine.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.files.checksums import fingerprint
from model.checkpoint.manifest import CONFIG_FILE, Manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.errors import ConfigError, DragomanError
from model.system.paths import exists, is_folder, is_text
from model.text.pipeline import TextPipeline
from service.engine.errors import Shortage
from service.models.checkpoints.catalogue import ModelEntry, entry_of
from service.models.checkpoints.packages import SUFFIX, Package, find_packages
from service.models.checkpoints.residency import resident_at_start
from service.models.routes.routing import Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCheckpoint:
    """A checkpoint as far as the front needs it.

    Attributes:
        directory: Where it is.
        fingerprint: Names exactly the files that were read.
        manifest: What it says of itself.
        pipeline: Its text ↔ segments.
        offer: What it translates.
        entry: What is told of it.
    """

    directory: Path
    fingerprint: str
    manifest: Manifest
    pipeline: TextPipeline
    offer: Offer
    entry: ModelEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultyCheckpoint:
    """A directory that should be a checkpoint and cannot be served.

    Attributes:
        directory: Where it is.
        reason: What is wrong with it, with the path of the file.
        shortage: Of memory, if that is what stands in its way.
    """

    directory: Path
    reason: str
    shortage: Shortage | None = None


class NoneUsableError(ConfigError):
    """None of the checkpoints that were found can be served.

    Attributes:
        faulty: Those that are at fault.
    """

    def __init__(self, message: str, faulty: Sequence[FaultyCheckpoint]) -> None:
        self.faulty = tuple(faulty)
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """Checkpoints that were found.

    Attributes:
        usable: Those that are to be served, at least one.
        faulty: Those that cannot be.
        unloaded: Those that could be, and are left out.
        on_demand: Those that are loaded when they are asked for.

    Raises:
        NoneUsableError: Nothing can be served; the message has every reason.
    """

    usable: tuple[TextCheckpoint, ...]
    faulty: tuple[FaultyCheckpoint, ...] = ()
    unloaded: tuple[TextCheckpoint, ...] = ()
    on_demand: tuple[TextCheckpoint, ...] = ()

    def __post_init__(self) -> None:
        """See `Raises`."""
        if not self.usable:
            reasons = [fault.reason for fault in self.faulty]
            reasons += [f"{one.directory} is unloaded" for one in self.unloaded]
            raise NoneUsableError("; ".join(dict.fromkeys(reasons)), self.faulty)

    @property
    def languages(self) -> tuple[str, ...]:
        """All languages of those that are served, loaded or not, each once."""
        served = (*self.usable, *self.on_demand)
        return tuple(dict.fromkeys(tag for one in served for tag in one.offer.languages))

    def without(
        self, at_fault: Mapping[int, str], shortages: Mapping[int, Shortage]
    ) -> "Checkpoints":
        """The same, with some of the usable ones, by their places, faulty for these reasons.

        Where none is left, the first of those on demand takes their place.
        """
        faulty = [
            FaultyCheckpoint(
                directory=self.usable[place].directory,
                reason=reason,
                shortage=shortages.get(place),
            )
            for place, reason in at_fault.items()
        ]
        usable = [one for place, one in enumerate(self.usable) if place not in at_fault]
        num_moved = 0 if usable else 1
        return replace(
            self,
            usable=(*usable, *self.on_demand[:num_moved]),
            faulty=(*self.faulty, *faulty),
            on_demand=self.on_demand[num_moved:],
        )

    def within(
        self, budget: int | None, pinned: Collection[str], num_engines: int = 1
    ) -> "Checkpoints":
        """The same, with those on demand that are not loaded at the start."""
        sizes = {one.entry.name: one.entry.num_weight_bytes for one in self.usable}
        resident = resident_at_start(sizes, pinned=pinned, budget=budget, num_engines=num_engines)
        return replace(
            self,
            usable=tuple(one for one in self.usable if one.entry.name in resident),
            on_demand=tuple(one for one in self.usable if one.entry.name not in resident),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderContents:
    """Contents of a path.

    Attributes:
        path: Where; links are followed.
        directories: Checkpoints that lie there.
        packages: Files that stand for checkpoints.
    """

    path: Path
    directories: tuple[Path, ...]
    packages: tuple[Package, ...] = ()

    @property
    def checkpoints(self) -> tuple[Path, ...]:
        """The directories of all checkpoints, those of packages too, once they are converted."""
        places = [package.directory for package in self.packages]
        return (*self.directories, *(place for place in places if exists(place, _unusable)))


def scan(path: Path) -> FolderContents:
    """What is at `path`, in order of the names.

    A directory with a config.json is a checkpoint. Any other one is a folder of checkpoints:
    every directory in it is one, but for those whose name begins with a dot, and every package
    stands for one.

    Raises:
        ConfigError: There is no such directory, nothing in it, or it cannot be read.
    """
    path = Path(os.path.realpath(path))  # Path.resolve raises on a loop of links
    if not is_folder(path, _unusable):
        raise ConfigError(
            f"there is no checkpoint directory {path};"
            " name one with --checkpoint or DRAGOMAN_CHECKPOINT"
        )
    if exists(path / CONFIG_FILE, _unusable):
        return FolderContents(path=path, directories=(path,))
    try:
        entries, packages = sorted(path.iterdir()), find_packages(path)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    folders = [entry for entry in entries if entry.name[0] != "." and _may_be_folder(entry)]
    if not folders and not packages:
        raise ConfigError(f"{path} has neither a {CONFIG_FILE} nor directories with one")
    return FolderContents(path=path, directories=tuple(folders), packages=packages)


def find_checkpoints(path: Path) -> tuple[Path, ...]:
    """The directories of the checkpoints at `path`; see `scan`.

    Raises:
        ConfigError: As of `scan`; or there are packages alone, which no server has converted.
    """
    found = scan(path)
    if not found.checkpoints:
        raise ConfigError(
            f"{found.path} has {SUFFIX} files alone; `dragoman serve` converts them, or"
            " `dragoman convert`"
        )
    return found.checkpoints


def load_checkpoints(
    path: Path,
    *,
    left_out: Collection[str] = (),
    unconverted: Sequence[FaultyCheckpoint] = (),
) -> Checkpoints:
    """Read the descriptions and tokenizers of the checkpoints at `path`.

    One that has the name of another one before it is faulty too: requests and metrics name
    checkpoints, and a name must mean one thing. Languages may be those of others:
    `service.models.routes.routing` chooses.

    Args:
        path: A checkpoint, or a folder of several.
        left_out: Names of checkpoints that are not to be served.
        unconverted: Those of packages that could not be converted.

    Raises:
        ConfigError: There is none, or none can be served; the message has every reason.
    """
    found: list[TextCheckpoint] = []
    faulty: list[FaultyCheckpoint] = list(unconverted)
    directories = scan(path).checkpoints if unconverted else find_checkpoints(path)
    for directory in directories:
        try:
            checkpoint = _read(directory)
            _check_distinct(checkpoint, found)
            found.append(checkpoint)
        except DragomanError as error:
            faulty.append(FaultyCheckpoint(directory=directory, reason=str(error)))
    return Checkpoints(
        usable=tuple(one for one in found if one.manifest.name not in left_out),
        faulty=tuple(faulty),
        unloaded=tuple(one for one in found if one.manifest.name in left_out),
    )


def read_again(directory: Path, fingerprint: str) -> TextCheckpoint:
    """A checkpoint that another process has read.

    Raises:
        ConfigError: It is not what was read there.
        DragomanError: It cannot be read.
    """
    checkpoint = _read(directory)
    if checkpoint.fingerprint != fingerprint:
        raise ConfigError(f"{directory} has changed since it was read")
    return checkpoint


def _read(directory: Path) -> TextCheckpoint:
    _check_utf8(directory)
    name = fingerprint(directory)  # the engine compares: it reads the same files, or fails
    manifest = read_manifest(directory)
    return TextCheckpoint(
        directory=directory,
        fingerprint=name,
        manifest=manifest,
        pipeline=TextPipeline(load_tokenizer(directory, manifest), manifest.limits),
        offer=Offer(name=manifest.name, pairs=manifest.pairs),
        entry=entry_of(manifest),
    )


def _may_be_folder(path: Path) -> bool:
    """Whether it is one; what cannot be looked at is, so that reading it says why."""
    try:
        return is_folder(path, _unusable)
    except ConfigError:
        return True


def _unusable(path: Path, problem: str) -> ConfigError:
    return ConfigError(f"{path}: {problem}")


def _check_utf8(directory: Path) -> None:
    """Refuse a path that cannot be told to an engine, or in an answer."""
    if not is_text(directory):
        path = os.fspath(directory)
        raise ConfigError(f"{path!a} is not UTF-8; the path of a checkpoint must be")


def _check_distinct(checkpoint: TextCheckpoint, others: Iterable[TextCheckpoint]) -> None:
    name, directory = checkpoint.manifest.name, checkpoint.directory
    for other in others:
        if other.manifest.name == name:
            raise ConfigError(f"{other.directory} and {directory} are both called {name}")
