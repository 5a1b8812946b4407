"""Shortage of memory as one error, before work begins or where it ran out.

Owns the comparison and the error; what a model needs says whoever loads or converts it. Imports no
torch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from model.errors import MemoryShortageError
from model.system import devices
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
def reporting_shortage(path: Path, needed_bytes: int, *, device: object = "cpu") -> Iterator[None]:
    """Block in which any error that says that memory has run out becomes one that says more.

    Args:
        path: As of `check_memory`.
        needed_bytes: Likewise.
        device: Whose memory may run out besides the host's: a name or a `torch.device`.

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
        is_of_host = isinstance(error, (MemoryError, OSError))
        free = _free_bytes("cpu" if is_of_host else device)
        raise MemoryShortageError(path, needed_bytes=needed_bytes, free_bytes=free) from error


def _free_bytes(device: object) -> int | None:
    if devices.device_type(device) == "cpu":
        return free_memory()
    try:
        return devices.free_bytes(device)
    except RuntimeError:  # the device has not recovered from what went wrong on it
        return None
