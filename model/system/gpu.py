"""What torch knows of a GPU: whether there is one, and how much memory it has."""

import torch


def is_there() -> bool:
    """Whether torch can use a GPU."""
    return torch.cuda.is_available()


def memory_bytes(device: str) -> int:
    """All memory of a GPU."""
    _, total = torch.cuda.mem_get_info(torch.device(device))
    return total
