"""Number of CUDA devices, without torch, which the server's front does not have.

Owns that question. Which device networks run on is `model.system.devices`.
"""

import ctypes
import importlib.util
import re
from pathlib import Path

_DRIVER = "libcuda.so.1"
_NO_CUDA = re.compile(r"^cuda\b.*=\s*None\s*$", re.MULTILINE)


def num_gpus(driver: str = _DRIVER, *, torch: Path | None = None) -> int:
    """CUDA devices that this process may use, as the driver counts them.

    `CUDA_VISIBLE_DEVICES` counts. 0 where there is no driver, or it finds none, and where PyTorch
    is one for CPUs.

    Args:
        driver: Name or path of its library.
        torch: PyTorch's folder; None for the installed one.
    """
    if not _has_cuda(torch or _installed_torch()):
        return 0
    try:
        library = ctypes.CDLL(driver)
        count = ctypes.c_int()
        if library.cuInit(0) != 0 or library.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return 0
    except (OSError, AttributeError):
        return 0
    return count.value


def _installed_torch() -> Path | None:
    found = importlib.util.find_spec("torch")  # imports nothing
    return None if found is None or found.origin is None else Path(found.origin).parent


def _has_cuda(torch: Path | None) -> bool:
    """Whether PyTorch was made for GPUs, by its file of versions; true where that says nothing."""
    try:
        return torch is None or not _NO_CUDA.search((torch / "version.py").read_text("utf-8"))
    except OSError:
        return True
