"""The CUDA driver's calls that load a kernel and launch it, through ctypes.

Owns the binding of four functions of `libcuda.so.1` (CUDA driver API: modules, execution control).
The context is the calling thread's, which torch has made current; launches go into torch's current
stream, so that they are captured where torch captures.
"""

import ctypes
from collections.abc import Sequence
from typing import NewType, Protocol

import torch

from model.errors import DeviceError

Function = NewType("Function", int)

_MAX_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""
_DEFAULT_SHARED_BYTES = 48 * 1024
"""More than that a kernel has to ask for."""
_NUM_SCRATCH = 2
"""Pointers behind the arguments of every kernel of Triton, null in those that need no memory."""


class Driver(Protocol):
    """Loads kernels and launches them."""

    def load(self, binary: bytes, name: str, shared_bytes: int) -> Function:
        """Load a cubin and return its entry of that name.

        Raises:
            DeviceError: The driver refuses it.
        """
        ...

    def launch(
        self,
        function: Function,
        *,
        grid: tuple[int, ...],
        num_threads: int,
        shared_bytes: int,
        arguments: Sequence[tuple[str, int | float]],
    ) -> None:
        """Launch on the current stream.

        Args:
            function: What `load` returned.
            grid: Instances along three axes.
            num_threads: Of an instance.
            shared_bytes: Of an instance.
            arguments: Of each its kind ("pointer", "i32" or "fp32") and its value.

        Raises:
            DeviceError: The driver refuses it.
        """
        ...


class CudaDriver:
    """`libcuda.so.1`."""

    def __init__(self, device: torch.device) -> None:
        """Open the library.

        Raises:
            OSError: There is none.
        """
        self._library = ctypes.CDLL("libcuda.so.1")
        self._device = device
        # Wherever ctypes would guess: pointers and sizes are not ints.
        self._library.cuModuleLoadData.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        self._library.cuModuleGetFunction.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_char_p]
        self._library.cuFuncSetAttribute.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        self._library.cuLaunchKernel.argtypes = (
            [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
        )

    def load(self, binary: bytes, name: str, shared_bytes: int) -> Function:
        """See `Driver.load`; what is loaded stays for the life of the process."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), binary)
        self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared_bytes > _DEFAULT_SHARED_BYTES:
            self._call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, shared_bytes)
        assert function.value is not None
        return Function(function.value)

    def launch(
        self,
        function: Function,
        *,
        grid: tuple[int, ...],
        num_threads: int,
        shared_bytes: int,
        arguments: Sequence[tuple[str, int | float]],
    ) -> None:
        """See `Driver.launch`."""
        values, places = packed(arguments)
        stream = torch.cuda.current_stream(self._device).cuda_stream
        self._call(
            "cuLaunchKernel", function, *grid, num_threads, 1, 1, shared_bytes, stream, places, None
        )
        del values  # the driver has copied what `places` points to

    def _call(self, name: str, *arguments: object) -> None:
        result = getattr(self._library, name)(*arguments)
        if result != 0:
            raise DeviceError(f"{name} of the CUDA driver returned {result}")


Value = ctypes.c_uint64 | ctypes.c_int32 | ctypes.c_float


def packed(
    arguments: Sequence[tuple[str, int | float]],
) -> tuple[list[Value], "ctypes.Array[ctypes.c_void_p]"]:
    """Arguments as `cuLaunchKernel` takes them, and null for the two scratch pointers.

    Returns:
        The values, and their addresses, which are good while the values are kept.
    """
    values = [_value(kind, value) for kind, value in arguments]
    values += [_value("pointer", 0) for _ in range(_NUM_SCRATCH)]
    addresses = [ctypes.addressof(value) for value in values]
    return values, (ctypes.c_void_p * len(addresses))(*addresses)


def _value(kind: str, value: int | float) -> Value:
    """A number as C has it."""
    if kind == "fp32":
        return ctypes.c_float(value)
    return ctypes.c_uint64(int(value)) if kind == "pointer" else ctypes.c_int32(int(value))
