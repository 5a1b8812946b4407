"""GPU as torch knows it: whether there is one, its memory, and how attention runs there."""

import torch


def is_there() -> bool:
    """Whether torch can use a GPU."""
    return torch.cuda.is_available()


def memory_bytes(device: str) -> int:
    """All memory of a GPU."""
    _, total = torch.cuda.mem_get_info(torch.device(device))
    return total


def free_bytes(device: torch.device | str) -> int:
    """Memory of a GPU that could be allocated now, by whomever.

    What this process keeps for later use, and does not use, is given back first. That takes
    milliseconds and waits for the device: it is for what seldom happens.
    """
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info(torch.device(device))
    return free


def use_unplanned_attention() -> None:
    """Leave attention to kernels that take any shape at once, in this process.

    On a GPU since Hopper torch prefers cuDNN's, which makes a plan for each shape, for about a
    second; batches of text have thousands of shapes.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)
