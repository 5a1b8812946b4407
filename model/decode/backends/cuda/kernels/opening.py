"""Choice of the form of a grid's steps: Triton's programs where they run, else torch's operators.

Owns the decision, and the line in the log that says it. Nothing else outside this room imports
Triton, which a machine without a GPU need not have.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from model.errors import DeviceError
from model.nn.transformer import Transformer

if TYPE_CHECKING:
    from model.decode.backends.cuda.kernels.choice_ops import ChoiceOps
    from model.decode.backends.cuda.kernels.chooser import KernelChooser
    from model.decode.backends.cuda.kernels.decoder import KernelDecoder
    from model.decode.backends.cuda.kernels.launching import Launcher

_LOGGER = logging.getLogger(__name__)
_MIN_CAPABILITY = 80
"""The first tensor cores that know bfloat16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """Parts of a network's steps that the programs run.

    Attributes:
        decoder: Its layers; None where the programs do not know them.
        choice: The programs between logits and report.
    """

    decoder: "KernelDecoder | None"
    choice: "ChoiceOps"

    def chooser(
        self, bias: torch.Tensor, *, suppressed_ids: Sequence[int], eos_id: int
    ) -> "KernelChooser":
        """The search of a step; see `KernelChooser`."""
        from model.decode.backends.cuda.kernels.chooser import KernelChooser  # noqa: PLC0415

        return KernelChooser(self.choice, bias, suppressed_ids=suppressed_ids, eos_id=eos_id)


def open_kernels(transformer: Transformer, launcher: "Launcher") -> Kernels:
    """The programs for a network.

    Args:
        transformer: Its weights must not change afterwards.
        launcher: Runs them, on the network's device.
    """
    from model.decode.backends.cuda.kernels.choice_ops import ChoiceOps  # noqa: PLC0415
    from model.decode.backends.cuda.kernels.decoder import (  # noqa: PLC0415
        KernelDecoder,
        unsupported_reason,
    )
    from model.decode.backends.cuda.kernels.ops import KernelOps  # noqa: PLC0415

    reason = unsupported_reason(transformer)
    if reason is not None:
        _LOGGER.info("layers_run_by_torch", extra={"fields": {"reason": reason}})
    decoder = None if reason is not None else KernelDecoder(transformer, KernelOps(launcher))
    return Kernels(decoder=decoder, choice=ChoiceOps(launcher))


def device_launcher(device: torch.device, dtype: torch.dtype) -> "Launcher | None":
    """What runs the programs on a CUDA device, or None where torch's operators have to do.

    A program is compiled and launched to find out; what fails is told by one warning.

    Args:
        device: A CUDA device.
        dtype: The network's.
    """
    try:
        launcher = _tried_launcher(device, dtype)
    except Exception as error:  # of Triton, its assembler, ctypes or the driver: torch serves
        fields = {
            "device": str(device),
            "reason": f"{type(error).__name__}: {str(error).partition(chr(10))[0]}",
        }
        _LOGGER.warning("steps_run_by_torch", extra={"fields": fields})  # five times the launches
        return None
    _LOGGER.info("steps_run_by_kernels", extra={"fields": {"device": str(device)}})
    return launcher


def _tried_launcher(device: torch.device, dtype: torch.dtype) -> "Launcher":
    """A launcher that has run a program.

    Raises:
        DeviceError: The device or the precision is not one that programs are written for.
        ImportError: There is no Triton.
        OSError: There is no driver.
    """
    if dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise DeviceError(f"no kernels for {dtype}")
    major, minor = torch.cuda.get_device_capability(device)
    capability = 10 * major + minor
    if capability < _MIN_CAPABILITY:
        raise DeviceError(f"the device is sm_{capability}; kernels need sm_{_MIN_CAPABILITY}")
    from model.decode.backends.cuda.kernels.driver import CudaDriver  # noqa: PLC0415
    from model.decode.backends.cuda.kernels.launching import CompiledLauncher  # noqa: PLC0415
    from model.decode.backends.cuda.kernels.ops import KernelOps, NormWeights  # noqa: PLC0415

    launcher = CompiledLauncher(CudaDriver(device), capability=capability)
    ones = torch.ones(1, 16, device=device, dtype=dtype)
    norm = NormWeights(gain=ones[0], offset=ones[0], epsilon=1.0)
    _, result = KernelOps(launcher).add_norm(ones, ones, norm, keeps_total=False)
    if not bool((result == 1.0).all()):  # nothing but the offset is left of equal numbers
        raise DeviceError("a kernel returned something else than it should")
    return launcher
