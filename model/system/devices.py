"""Devices a network runs on, by the names that users give them."""

from typing import Literal

import torch

from model.errors import DeviceError

DeviceName = Literal["auto", "cpu", "cuda"]


def resolve_device(name: DeviceName) -> torch.device:
    """The device to run on; "auto" is CUDA where there is one.

    Raises:
        DeviceError: CUDA is asked for and not there: running elsewhere would hide it.
    """
    has_cuda = torch.cuda.is_available()
    if name == "cuda" and not has_cuda:
        raise DeviceError("device is 'cuda', but torch finds no CUDA device")
    return torch.device("cuda" if has_cuda and name != "cpu" else "cpu")
