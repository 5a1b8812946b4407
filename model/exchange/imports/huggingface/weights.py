"""Weights in folders of Hugging Face's transformers, one by one, and where each of them goes.

Owns `model.safetensors` and `pytorch_model.bin`, whole or in shards: of a pickle only tensors are
read, and one that asks for anything else is refused. Which tensor is which of the network is a
family's own file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from model.checkpoint.description.strict_json import parse_json
from model.checkpoint.files.checksums import read_limited
from model.errors import CheckpointError, ConfigError, ForeignModelError, shown
from model.exchange.imports.git_lfs import POINTER_PROBLEM, is_pointer_file
from model.exchange.imports.huggingface.folder import HuggingFaceFolder
from model.exchange.imports.imported import ForeignTensor
from model.exchange.imports.pickles import pickles_refused, tensor_problem, unpickled
from model.system.paths import utf8_name

_MAX_INDEX_BYTES = 64 * 2**20
_SAFETENSORS = ("model.safetensors", "model.safetensors.index.json")
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_FLOATS = {"F64", "F32", "F16", "BF16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A tensor's file, type and shape."""

    file: str
    dtype: str
    shape: tuple[int, ...]


class HuggingFaceWeights:
    """Tensors of a folder, by the names of transformers.

    Those of a pickle stay mapped from its file; only pickles of before PyTorch 1.6 are read as a
    whole.

    Raises:
        ForeignModelError: A file is missing, damaged or asks for more than tensors.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pickled: dict[str, Tensor] = {}
        self._places: dict[str, _Place] = {}
        problems: list[str] = []
        for file in self._files():
            try:
                self._check_fetched(file)
                found = dict(self._scanned(file))
            except ForeignModelError as error:
                problems += error.problems
                continue
            twice = self._places.keys() & found.keys()
            problems += [f"{name} is in two files" for name in sorted(twice)]
            self._places |= found
        problems += [
            f"{name} has type {place.dtype}; only floats can be converted"
            for name, place in self._places.items()
            if place.dtype not in _FLOATS and not name.endswith("_float_tensor")
        ]
        problems += [
            f"{name} is a single number; a weight has one dimension or more"
            for name, place in self._places.items()
            if not place.shape
        ]
        if problems:
            raise ForeignModelError(folder, problems)

    def __repr__(self) -> str:
        return f"<HuggingFaceWeights of {len(self._places)} tensors>"

    def __contains__(self, name: str) -> bool:
        """Whether there is such a tensor."""
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        """Names, in the order of the files."""
        return iter(self._places)

    def shape(self, name: str) -> tuple[int, ...]:
        """Of a tensor that is there."""
        return self._places[name].shape

    def read(self, name: str) -> Tensor:
        """A tensor, in the type of its file, mapped.

        Raises:
            ForeignModelError: The file cannot be read any more.
        """
        if name in self._pickled:
            return self._pickled[name]
        path = self._folder / self._places[name].file
        try:
            with utf8_name(path) as opened, safe_open(opened, framework="pt") as file:
                value: Tensor = file.get_tensor(name)
        except (OSError, SafetensorError) as error:
            raise ForeignModelError(self._folder, [f"{path.name}: {error}"]) from error
        return value

    def same(self, one: str, other: str) -> bool:
        """Whether two tensors are there and have the same values."""
        if self.shape(one) != self.shape(other):
            return False
        return torch.equal(self.read(one), self.read(other))

    def is_more_than_zeros(self, name: str) -> bool:
        """Whether there is such a tensor, and not all of its values are 0."""
        return name in self and bool(self.read(name).any())

    def first_of(self, names: Sequence[str]) -> str:
        """The first name that there is a tensor of, or the first."""
        return next((name for name in names if name in self), names[0])

    def _files(self) -> list[str]:
        """The weight files, of safetensors if there are any.

        Raises:
            ForeignModelError: There are none, or the list of shards is not one.
        """
        for whole, index in (_SAFETENSORS, _PICKLES):
            if (self._folder / whole).is_file():
                return [whole]
            if (self._folder / index).is_file():
                return self._shards(index)
        names = f"{_SAFETENSORS[0]}, {_PICKLES[0]}"
        raise ForeignModelError(self._folder, [f"has no weights ({names}, whole or in shards)"])

    def _shards(self, index: str) -> list[str]:
        try:
            value = parse_json(read_limited(self._folder / index, _MAX_INDEX_BYTES))
        except (CheckpointError, ConfigError) as error:
            raise ForeignModelError(self._folder, [str(error)]) from error
        files = value.get("weight_map") if isinstance(value, dict) else None
        if not isinstance(files, dict) or not files:
            raise ForeignModelError(self._folder, [f"{index} has no weight_map"])
        names = sorted({str(file) for file in files.values()})
        problems = [
            f"{index} names {shown(name)}, which is no plain file name"
            for name in names
            if Path(name).name != name
        ]
        problems += [f"{name} is missing" for name in names if not (self._folder / name).is_file()]
        if problems:
            raise ForeignModelError(self._folder, problems)
        return names

    def _check_fetched(self, file: str) -> None:
        """Refuse what stands for a file in a clone without git-lfs.

        Raises:
            ForeignModelError: It does, or cannot be read.
        """
        try:
            is_fetched = not is_pointer_file(self._folder / file)
        except OSError as error:
            raise ForeignModelError(self._folder, [f"{file}: {error}"]) from error
        if not is_fetched:
            raise ForeignModelError(self._folder, [f"{file} {POINTER_PROBLEM}"])

    def _scanned(self, file: str) -> Iterator[tuple[str, _Place]]:
        path = self._folder / file
        if not file.endswith(".safetensors"):
            for name, value in _unpickled(path, self._folder).items():
                self._pickled[name] = value
                dtype = _dtype_name(value.dtype)
                yield name, _Place(file=file, dtype=dtype, shape=tuple(value.shape))
            return
        try:
            with utf8_name(path) as opened, safe_open(opened, framework="pt") as weights:
                for name in weights.keys():  # noqa: SIM118  # safetensors' object is no mapping
                    piece = weights.get_slice(name)
                    shape = tuple(piece.get_shape())
                    yield name, _Place(file=file, dtype=piece.get_dtype(), shape=shape)
        except (OSError, SafetensorError) as error:
            raise ForeignModelError(self._folder, [f"{file}: {error}"]) from error


def opened_weights(folder: HuggingFaceFolder) -> HuggingFaceWeights | None:
    """The tensors of a folder; None, and problems, where they cannot be read."""
    try:
        return HuggingFaceWeights(folder.path)
    except ForeignModelError as error:
        folder.problems += error.problems
        return None


class TensorMap:
    """Map from a folder's tensors to those of the network; what is missing, and what is left.

    Attributes:
        tensors: By the names of the network's `state_dict`.
        problems: Tensors that are missing.
    """

    def __init__(self, weights: HuggingFaceWeights) -> None:
        self._weights = weights
        self._left = dict.fromkeys(weights)
        self.tensors: dict[str, ForeignTensor] = {}
        self.problems: list[str] = []

    def __repr__(self) -> str:
        return f"<TensorMap of {len(self.tensors)} tensors, {len(self._left)} unused>"

    @property
    def unused(self) -> tuple[str, ...]:
        """Names that nothing has taken or dropped."""
        return tuple(self._left)

    def take(self, ours: str, theirs: str, *, shape: tuple[int, ...] | None = None) -> None:
        """Make one tensor another; `shape` where the network has the same values in another."""
        if theirs not in self._weights:
            self.problems.append(f"{theirs} is missing")
            return
        self._left.pop(theirs, None)
        kept = self._weights.shape(theirs) if shape is None else shape

        def read() -> Tensor:
            return self._weights.read(theirs).reshape(kept)

        self.tensors[ours] = ForeignTensor(shape=kept, read=read)

    def linear(self, ours: str, theirs: str, *, has_bias: bool = True) -> None:
        """A weight and, where there is one, a bias; of norms too."""
        self.take(f"{ours}.weight", f"{theirs}.weight")
        if has_bias:
            self.take(f"{ours}.bias", f"{theirs}.bias")

    def drop(self, *names: str) -> None:
        """Leave out tensors, there or not, that the network computes."""
        for name in names:
            self._left.pop(name, None)

    def drop_copies(self, of: str, *names: str) -> None:
        """Leave out tensors that say again what another one says; a problem if they do not."""
        for name in names:
            if name not in self._weights or name == of:
                continue
            self._left.pop(name, None)
            if of in self._weights and not self._weights.same(of, name):
                self.problems.append(f"{name} differs from {of}, with which it is tied")


def _unpickled(path: Path, folder: Path) -> dict[str, Tensor]:
    """The tensors of a file of PyTorch, and nothing else.

    Raises:
        ForeignModelError: It is damaged, or has or asks for anything else.
    """
    try:
        with pickles_refused(path):
            value = unpickled(path)
    except ForeignModelError as error:
        told = [f"{path.name} {problem}" for problem in error.problems]
        raise ForeignModelError(folder, told) from error
    if not isinstance(value, dict):
        raise ForeignModelError(folder, [f"{path.name} is no table of tensors"])
    odd = [name for name, each in value.items() if not isinstance(each, Tensor)]
    if odd:
        raise ForeignModelError(
            folder, [f"{path.name}: {shown(name)} is no tensor" for name in odd[:10]]
        )
    found = {name: problem for name, each in value.items() if (problem := tensor_problem(each))}
    if found:
        told = [f"{path.name}: {shown(name)} {problem}" for name, problem in found.items()]
        raise ForeignModelError(folder, told[:10])
    return {str(name): each for name, each in value.items()}


def _dtype_name(dtype: torch.dtype) -> str:
    names = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16"}
    return names.get(dtype, "BF16" if dtype == torch.bfloat16 else str(dtype))
