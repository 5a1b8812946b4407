"""Files of PyTorch, unpickled without running anything, and what is said of those that cannot be.

Owns which failure is the file's and which is not: memory that runs out says nothing about a file.
What a file may hold, and what it holds instead, its format's own file says.
"""

import pickle
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from model.errors import ForeignModelError
from model.system.out_of_memory import is_out_of_memory

SafeGlobal = type | Callable[..., object] | tuple[Callable[..., object], str]


def unpickled(path: Path, *, safe: Collection[SafeGlobal] = ()) -> object:
    """What a file holds; tensors stay mapped from it unless it is older than PyTorch 1.6.

    Args:
        path: The file.
        safe: Classes that it may make besides those of tensors, or stand-ins with the names that
            they stand for.

    Raises:
        Exception: Whatever a file from elsewhere makes it raise; see `pickles_refused`.
    """
    with torch.serialization.safe_globals(list(safe)):
        return torch.load(
            path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path) or None
        )


@contextmanager
def pickles_refused(path: Path, asked: Collection[str] = ()) -> Iterator[None]:
    """Around the reading of a file: what is wrong with it becomes one problem.

    Args:
        path: The file.
        asked: Names that it asks for, as far as they are known when reading fails.

    Raises:
        ForeignModelError: It is damaged, or asks for anything but tensors.
        MemoryError: Memory ran out, in whatever type that comes; not the file's fault.
    """
    try:
        yield
    except pickle.UnpicklingError as error:
        names = f"; it asks for {', '.join(sorted(asked))}" if asked else ""
        problem = f"is damaged, or wants to run code, and is not read{names}"
        raise ForeignModelError(path, [problem]) from error
    except Exception as error:  # whatever a file from elsewhere makes it raise
        if is_out_of_memory(error):
            raise
        raise ForeignModelError(path, [f"cannot be read ({type(error).__name__})"]) from error


def tensor_problem(value: Tensor) -> str | None:
    """Why a tensor is no plain array of values in memory, to follow its name; None if it is one."""
    if value.layout != torch.strided:
        return f"is stored as {value.layout}; only plain arrays are read"
    if value.device.type != "cpu":
        return f"is of the device {value.device}: its values are not in the file"
    return None if value.dim() else "is a single number; a weight has one dimension or more"
