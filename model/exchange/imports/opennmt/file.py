"""Checkpoints of OpenNMT-py (`.pt`), unpickled without running anything, with SentencePiece beside.

Owns which files are such checkpoints, and what they hold in the forms of OpenNMT-py 0 to 3. What
their pickles may make are tensors, lists, numbers and `argparse.Namespace`; objects of torchtext
and of OpenNMT-py itself, in which older versions keep vocabularies, become stand-ins that hold
values and do nothing (`model.exchange.imports.opennmt.stand_ins`). It does not own what the tensors
mean (`model.exchange.imports.opennmt.importer`).
"""

import argparse
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from model.errors import ForeignModelError, shown
from model.exchange.imports.archives import UNREADABLE_ARCHIVE
from model.exchange.imports.opennmt.stand_ins import StandIn, asked_globals, stand_ins
from model.exchange.imports.pickles import pickles_refused, tensor_problem, unpickled
from model.system.paths import is_file, is_folder

_MAX_PICKLE_BYTES = 64 * 2**20
_PARTS = ("model", "generator", "vocab", "opt")
_OLD_MAGIC = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
"""How files of PyTorch before 1.6 begin, which are no archives: a number, pickled."""
_NUM_OLD_PICKLES = 4
"""Pickles before the tensors of such a file: magic, version, system, and then the checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNMTFile:
    """A checkpoint's parts.

    Attributes:
        path: The file.
        tensors: Of the network, mapped from the file, or read if it is older than PyTorch 1.6; the
            generator's begin with "generator.".
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
    """Whether it is a file of PyTorch whose pickle names the parts of a checkpoint."""
    try:
        data = _pickle_of(path)
    except UNREADABLE_ARCHIVE:
        return False
    return all(part.encode() in data for part in _PARTS)


def _pickle_of(path: Path) -> bytes:
    """The pickle in a file of PyTorch; of an old file, its first bytes, and pickles among them.

    Raises:
        OSError: It cannot be read.
        ValueError: It is another file, or its pickle is longer than any such file's.
        RuntimeError: It is a damaged or encrypted archive.
        zipfile.BadZipFile: It is a damaged archive; or another error of `UNREADABLE_ARCHIVE`.
    """
    with path.open("rb") as file:
        if file.read(len(_OLD_MAGIC)) == _OLD_MAGIC:
            file.seek(0)
            return file.read(_MAX_PICKLE_BYTES)
    with zipfile.ZipFile(path) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("/data.pkl"))
        if archive.getinfo(name).file_size > _MAX_PICKLE_BYTES:
            raise ValueError(f"{name} is too long")
        return archive.read(name)


def _unpickled(path: Path) -> object:
    foreign: set[str] = set()
    with pickles_refused(path, foreign):
        num_pickles = 1 if zipfile.is_zipfile(path) else _NUM_OLD_PICKLES
        asked = asked_globals(_pickle_of(path), num_pickles=num_pickles)
        foreign |= {name for name in asked if not name.startswith("torch.")}
        return unpickled(path, safe=[argparse.Namespace, *stand_ins(asked)])


def _tensors(value: object, prefix: str, problems: list[str]) -> dict[str, Tensor]:
    """The tensors of one part, by their names with a prefix."""
    if not isinstance(value, dict):
        problems.append(f"{prefix.rstrip('.') or 'model'} is no table of tensors")
        return {}
    odd = [name for name, each in value.items() if not isinstance(each, Tensor)]
    problems += [f"{prefix}{shown(name)} is no tensor" for name in odd[:10]]
    found = {f"{prefix}{name}": each for name, each in value.items() if isinstance(each, Tensor)}
    refused = {name: problem for name, each in found.items() if (problem := tensor_problem(each))}
    problems += [f"{shown(name)} {problem}" for name, problem in list(refused.items())[:10]]
    return {name: each for name, each in found.items() if name not in refused}


def _pieces(value: object, side: str, problems: list[str]) -> tuple[str, ...]:
    """The pieces of one side, by id."""
    if isinstance(value, dict):
        stored = value.get(side)
    else:  # of version 0: pairs of a name and torchtext's vocabulary
        pairs = value if isinstance(value, list) else []
        stored = next((each[1] for each in pairs if _is_pair_of(each, side)), None)
    if isinstance(stored, StandIn):
        stored = _old_pieces(stored, side, problems)
    if not isinstance(stored, list) or not all(isinstance(piece, str) for piece in stored):
        problems.append(f"its vocabulary has no list of pieces as {side!r}")
        return ()
    return tuple(stored)


def _is_pair_of(value: object, name: str) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and value[0] == name


def _old_pieces(stored: StandIn, side: str, problems: list[str]) -> object:
    """The list `itos` of torchtext's vocabulary, in the first of OpenNMT-py's fields if in one."""
    fields = stored.values.get("fields")
    if isinstance(fields, list):
        if len(fields) != 1:
            problems.append(
                f"the {side} vocabulary has {len(fields)} fields a token; only one is supported"
            )
        first = fields[0] if fields else None
        field = first[1] if isinstance(first, tuple) and len(first) == 2 else None
        stored = field if isinstance(field, StandIn) else StandIn()
    vocabulary = stored.values.get("vocab", stored)
    return vocabulary.values.get("itos") if isinstance(vocabulary, StandIn) else None


def _unusable(path: Path, problem: str) -> ForeignModelError:
    return ForeignModelError(path, [problem])
