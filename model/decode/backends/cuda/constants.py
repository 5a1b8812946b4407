"""Constant tensors of a step, made once: each saves a recording a launch.

Owns which calls of torch these are. The functions of the search stay as they are for all backends.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_FACTORIES = (torch.arange, torch.eye)


class Constants(TorchFunctionMode):
    """Context in which `torch.arange` and `torch.eye` make each tensor once.

    They must not be written to. They live as long as this does, as recordings that read them must
    find them; there is a handful of each shape of step, of a few KB.
    """

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self._made: dict[tuple[object, ...], Tensor] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call `func`, unless what it makes is there."""
        kwargs = kwargs or {}
        if func not in _FACTORIES:
            return func(*args, **kwargs)
        key = (func, *args, *sorted(kwargs.items()))
        if key not in self._made:
            self._made[key] = func(*args, **kwargs)
        return self._made[key]
