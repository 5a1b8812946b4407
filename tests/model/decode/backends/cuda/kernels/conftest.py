"""The programs on the device there is, or interpreted; who needs them imports Triton or skips."""

from typing import TYPE_CHECKING

import pytest
import torch

if TYPE_CHECKING:
    from model.decode.backends.cuda.kernels.launching import Launcher


@pytest.fixture(scope="session")
def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture(scope="session")
def launcher(device: torch.device) -> "Launcher":
    from model.decode.backends.cuda.kernels.driver import CudaDriver
    from model.decode.backends.cuda.kernels.launching import CompiledLauncher, InterpretedLauncher

    if device.type == "cpu":
        return InterpretedLauncher()
    major, minor = torch.cuda.get_device_capability(device)
    return CompiledLauncher(CudaDriver(device), capability=10 * major + minor)
