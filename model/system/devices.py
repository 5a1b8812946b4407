"""Devices a network runs on, by the names that users give them.

Owns the choice. A machine without a GPU's device files has none, and is not asked any further: so
torch, which takes seconds to load, is loaded only where there may be one (`model.system.gpu`).
"""

from pathlib import Path
from typing import Literal

from model.errors import DeviceError
from model.system.host_memory import host_limit

DeviceName = Literal["auto", "cpu", "cuda"]

_GPU_FILES = ("nvidiactl", "nvidia0", "dxg", "kfd")
"""Of NVIDIA's driver, of its driver under Windows' Linux, of AMD's."""


def resolve_device(name: DeviceName) -> Literal["cpu", "cuda"]:
    """The device to run on; "auto" is CUDA where there is one.

    Raises:
        DeviceError: CUDA is asked for and not there: running elsewhere would hide it.
    """
    if name == "cpu":
        return "cpu"
    has_cuda = _may_have_gpu() and _has_gpu()
    if name == "cuda" and not has_cuda:
        raise DeviceError("device is 'cuda', but torch finds no CUDA device")
    return "cuda" if has_cuda else "cpu"


def device_type(device: object) -> str:
    """The kind of a device, "cpu" of "cpu" and "cuda" of "cuda:1".

    Args:
        device: A name or a `torch.device`.
    """
    return str(device).partition(":")[0]


def memory_limit(device: object) -> int | None:
    """Bytes that a process could have on a device at the very most; None if that is not known.

    On a GPU, all of its memory. Elsewhere that of the machine, or of the container if that has
    less, and all of the swap space.

    Args:
        device: A name or a `torch.device`.
    """
    if device_type(device) == "cuda":
        from model.system import gpu  # noqa: PLC0415  # loads torch

        return gpu.memory_bytes(str(device))
    return host_limit()


def free_bytes(device: object) -> int | None:
    """Bytes of a GPU's memory that could be allocated now; None of everything else.

    Args:
        device: A name or a `torch.device`.
    """
    if device_type(device) != "cuda":
        return None
    from model.system import gpu  # noqa: PLC0415  # loads torch

    return gpu.free_bytes(str(device))


def use_unplanned_attention(device: object) -> None:
    """Leave attention on a GPU to kernels that take any shape at once, in this process.

    It is a setting of torch for the whole process, so only entry points call this.

    Args:
        device: What networks run on, a name or a `torch.device`.
    """
    if device_type(device) == "cuda":
        from model.system import gpu  # noqa: PLC0415  # loads torch

        gpu.use_unplanned_attention()


def _may_have_gpu(folder: Path = Path("/dev")) -> bool:
    return any((folder / name).exists() for name in _GPU_FILES)


def _has_gpu() -> bool:
    from model.system import gpu  # noqa: PLC0415  # loads torch

    return gpu.is_there()
