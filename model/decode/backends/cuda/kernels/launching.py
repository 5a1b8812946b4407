"""Launchers of Triton programs: compiled and launched on a device, or interpreted on a CPU.

Owns the choice of types, compilation and the order of arguments. Triton's own launcher is a C
extension that it compiles at the first launch, for which a machine needs a C compiler and Python's
headers. Here Triton only compiles programs, which takes the assembler in its package and nothing
else; the driver is called through `driver`. Tensors are checked by their callers.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from model.decode.backends.cuda.kernels.driver import Driver, Function
from model.errors import DeviceError, KernelError

Scalar = int | float
Argument = Tensor | Scalar | None
Constant = int | bool | str | object

_POINTERS = {
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.int64: "*i64",
    torch.int32: "*i32",
    torch.uint8: "*u8",
}
_LOGGER = logging.getLogger(__name__)
_ALIGNED = 16
"""Bytes; a program that may count on it loads several numbers at once."""


class Launcher(Protocol):
    """Protocol of launchers, which run programs."""

    def launch(
        self,
        program: Any,
        grid: tuple[int, ...],
        arguments: Sequence[Argument],
        constants: Mapping[str, Constant],
        *,
        num_warps: int = 4,
    ) -> None:
        """Run one program.

        Args:
            program: What `triton.jit` made.
            grid: Instances along up to three axes.
            arguments: In the order of its parameters; None for a tensor that it does not look at.
            constants: What is known when it is compiled, by name.
            num_warps: Warps an instance.
        """
        ...


class InterpretedLauncher:
    """Launcher in NumPy, where TRITON_INTERPRET was set before Triton was imported."""

    def launch(
        self,
        program: Any,
        grid: tuple[int, ...],
        arguments: Sequence[Argument],
        constants: Mapping[str, Constant],
        *,
        num_warps: int = 4,
    ) -> None:
        """See `Launcher.launch`."""
        program[grid](*arguments, **constants, num_warps=num_warps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A program for one device and one choice of types.

    Attributes:
        name: Of its entry in the binary.
        binary: A cubin.
        shared_bytes: Shared memory an instance.
        num_warps: Warps an instance.
        takes: Of every argument, "pointer", "i32", "fp32" or None where it is not passed.
    """

    name: str
    binary: bytes
    shared_bytes: int
    num_warps: int
    takes: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class _Key:
    """Key of a compiled program: its name, types and constants."""

    name: str
    kinds: tuple[str, ...]
    constants: tuple[tuple[str, str], ...]
    num_warps: int


def _kind(argument: Argument) -> str:
    """How an argument is passed; pointers say whether they are aligned."""
    if argument is None:
        return "constexpr"
    if isinstance(argument, Tensor):
        kind = _POINTERS[argument.dtype]
        return f"{kind} aligned" if argument.data_ptr() % _ALIGNED == 0 else kind
    return "fp32" if isinstance(argument, float) else "i32"


def compile_program(
    program: Any,
    kinds: Sequence[str],
    constants: Mapping[str, Constant],
    *,
    capability: int,
    num_warps: int,
) -> Compiled:
    """Compile for a device that need not be there.

    Args:
        program: What `triton.jit` made, without the interpreter.
        kinds: Of the arguments, as Triton writes them (`*fp16`, `i32`, `fp32`), `constexpr` for
            None; " aligned" behind a pointer that is.
        constants: By name.
        capability: 90 for sm_90.
        num_warps: Warps an instance.
    """
    kinds_by_name = dict(zip(program.arg_names, kinds, strict=False))
    signature = {name: kind.split()[0] for name, kind in kinds_by_name.items()}
    absent = {name: None for name, kind in signature.items() if kind == "constexpr"}
    aligned = {
        (place,): [["tt.divisibility", _ALIGNED]]
        for place, kind in enumerate(kinds)
        if kind.endswith(" aligned")
    }
    source = ASTSource(
        fn=program,
        signature=signature | dict.fromkeys(constants, "constexpr"),
        constexprs=absent | dict(constants),
        attrs=aligned,
    )
    kernel = triton.compile(
        source,
        target=GPUTarget("cuda", capability, 32),
        options={"num_warps": num_warps, "enable_fp_fusion": True},
    )
    assert not kernel.metadata.global_scratch_size  # no program asks for it
    return Compiled(
        name=kernel.metadata.name,
        binary=kernel.asm["cubin"],
        shared_bytes=kernel.metadata.shared,
        num_warps=num_warps,
        takes=tuple(
            None if kind == "constexpr" else "pointer" if "*" in kind else kind for kind in kinds
        ),
    )


class CompiledLauncher:
    """Launches on one device; a choice of types is compiled when it is first asked for.

    What cannot be compiled is not tried again: a warning tells it once, and an error each time.
    """

    def __init__(self, driver: Driver, *, capability: int) -> None:
        """Compile for a device's capability, 90 for sm_90."""
        self._driver = driver
        self._capability = capability
        self._loaded: dict[_Key, tuple[Compiled, Function]] = {}
        self._failed: dict[_Key, str] = {}

    def launch(
        self,
        program: Any,
        grid: tuple[int, ...],
        arguments: Sequence[Argument],
        constants: Mapping[str, Constant],
        *,
        num_warps: int = 4,
    ) -> None:
        """See `Launcher.launch`.

        Raises:
            KernelError: The program cannot be compiled, loaded or launched.
        """
        key = _Key(
            program.__name__,
            tuple(_kind(argument) for argument in arguments),
            tuple((name, str(value)) for name, value in constants.items()),
            num_warps,
        )
        if key not in self._loaded:
            self._loaded[key] = self._load(program, key, constants)
        compiled, function = self._loaded[key]
        try:
            self._driver.launch(
                function,
                grid=(*grid, 1, 1)[:3],
                num_threads=32 * num_warps,
                shared_bytes=compiled.shared_bytes,
                arguments=[
                    (kind, argument.data_ptr() if isinstance(argument, Tensor) else argument)
                    for kind, argument in zip(compiled.takes, arguments, strict=True)
                    if kind is not None and argument is not None
                ],
            )
        except DeviceError as error:
            raise self._failure(key, error) from error

    def _load(
        self, program: Any, key: _Key, constants: Mapping[str, Constant]
    ) -> tuple[Compiled, Function]:
        if key in self._failed:
            raise KernelError(self._failed[key])
        try:
            compiled = compile_program(
                program,
                key.kinds,
                constants,
                capability=self._capability,
                num_warps=key.num_warps,
            )
            function = self._driver.load(compiled.binary, compiled.name, compiled.shared_bytes)
        except Exception as error:  # of Triton, its assembler or the driver
            raise self._failure(key, error) from error
        return compiled, function

    def _failure(self, key: _Key, error: Exception) -> KernelError:
        """Take note of a program that cannot be had."""
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        _LOGGER.warning(
            "kernel_replaced_by_torch", extra={"fields": {"kernel": key.name, "reason": reason}}
        )
        message = f"{key.name}: {reason}"
        self._failed[key] = message
        self._loaded.pop(key, None)
        return KernelError(message)
