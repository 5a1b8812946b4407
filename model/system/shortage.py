"""Shortage of memory as one error, before work begins or where it ran out.

Owns the comparison and the error; what a model needs says whoever loads or converts it. Imports no
torch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from model.errors import MemoryShortageError
from model.system.host_memory import free_memory
from model.system.out_of_memory import is_out_of_memory


def check_memory(path: Path, needed_bytes: int) -> None:
    """Return if a process could have so much memory now.

    Args:
        path: What an error names.
        needed_bytes: What is surely needed; more may be.

    Raises:
        MemoryShortageError: It could not.
    """
    free = free_memory()
    if free is not None and needed_bytes > free:
        raise MemoryShortageError(path, needed_bytes=needed_bytes, free_bytes=free)


@contextmanager
def reporting_shortage(path: Path, needed_bytes: int) -> Iterator[None]:
    """Block in which any error that says that memory has run out becomes one that says more.

    Args:
        path: As of `check_memory`.
        needed_bytes: Likewise.

    Raises:
        MemoryShortageError: Memory has run out.
    """
    try:
        yield
    except MemoryShortageError:
        raise
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise MemoryShortageError(
            path, needed_bytes=needed_bytes, free_bytes=free_memory()
        ) from error
