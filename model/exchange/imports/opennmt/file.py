"""Checkpoints of OpenNMT-py (`.pt`), unpickled without running anything, with SentencePiece beside.

Owns which files are such checkpoints, what they hold and how it is read: tensors, lists, numbers
and `argparse.Namespace`, and nothing else. Vocabularies that torchtext pickled (OpenNMT-py 1 and 2)
would need its code, and are refused. It does not own what the tensors mean
(`model.exchange.imports.opennmt.importer`).
"""

import argparse
import pickle
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from model.errors import ForeignModelError, shown
from model.system.paths import is_file, is_folder

_MAX_PICKLE_BYTES = 64 * 2**20
_PARTS = ("model", "generator", "vocab", "opt")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNMTFile:
    """A checkpoint's parts.

    Attributes:
        path: The file.
        tensors: Of the network, mapped from the file; the generator's begin with "generator.".
        source: Pieces of the source by id.
        target: Pieces of the target by id.
        options: Of the training run, by name.
    """

    path: Path
    tensors: Mapping[str, Tensor]
    source: tuple[str, ...]
    target: tuple[str, ...]
    options: Mapping[str, object]


def opennmt_path(source: Path) -> Path | None:
    """The one checkpoint that `source` is, or is the folder of; None if there is none."""
    try:
        paths = sorted(source.glob("*.pt")) if is_folder(source, _unusable) else [source]
        found = [path for path in paths if is_file(path, _unusable) and _is_checkpoint(path)]
    except (ForeignModelError, OSError):
        return None
    return found[0] if len(found) == 1 else None


def read_opennmt(path: Path) -> OpenNMTFile:
    """A checkpoint; its tensors stay in the file until they are used.

    Raises:
        ForeignModelError: It is damaged, or has or asks for anything else; all is listed.
    """
    value = _unpickled(path)
    if not isinstance(value, dict) or any(part not in value for part in _PARTS):
        raise ForeignModelError(path, [f"is no checkpoint with {', '.join(_PARTS)}"])
    options = value["opt"]
    problems = []
    if not isinstance(options, argparse.Namespace):
        problems.append("its options (opt) are no argparse.Namespace")
    tensors = _tensors(value["model"], "", problems)
    tensors |= _tensors(value["generator"], "generator.", problems)
    source, target = (_pieces(value["vocab"], side, problems) for side in ("src", "tgt"))
    if problems:
        raise ForeignModelError(path, problems)
    return OpenNMTFile(
        path=path, tensors=tensors, source=source, target=target, options=vars(options)
    )


def _is_checkpoint(path: Path) -> bool:
    """Whether it is an archive of PyTorch whose pickle names the parts of a checkpoint."""
    try:
        with zipfile.ZipFile(path) as archive:
            (name,) = (each for each in archive.namelist() if each.endswith("/data.pkl"))
            if archive.getinfo(name).file_size > _MAX_PICKLE_BYTES:
                return False
            data = archive.read(name)
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile):
        return False
    return all(part.encode() in data for part in _PARTS)


def _unpickled(path: Path) -> object:
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError as error:
        problem = (
            "is damaged, or wants to run code, and is not read; vocabularies of OpenNMT-py 1 and 2"
            " do, which CTranslate2's converter can turn into a directory that is read"
        )
        raise ForeignModelError(path, [problem]) from error
    except Exception as error:  # whatever a file from elsewhere makes it raise
        raise ForeignModelError(path, [f"cannot be read ({type(error).__name__})"]) from error


def _tensors(value: object, prefix: str, problems: list[str]) -> dict[str, Tensor]:
    """The tensors of one part, by their names with a prefix."""
    if not isinstance(value, dict):
        problems.append(f"{prefix.rstrip('.') or 'model'} is no table of tensors")
        return {}
    odd = [name for name, each in value.items() if not isinstance(each, Tensor)]
    problems += [f"{prefix}{shown(name)} is no tensor" for name in odd[:10]]
    return {f"{prefix}{name}": each for name, each in value.items() if isinstance(each, Tensor)}


def _pieces(value: object, side: str, problems: list[str]) -> tuple[str, ...]:
    """The pieces of one side, by id."""
    pieces = value.get(side) if isinstance(value, dict) else None
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        problems.append(f"its vocabulary has no list of pieces as {side!r}")
        return ()
    return tuple(pieces)


def _unusable(path: Path, problem: str) -> ForeignModelError:
    return ForeignModelError(path, [problem])
