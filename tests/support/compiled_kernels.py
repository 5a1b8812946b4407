"""Compiles every program for sm_90 without a device and prints what the driver was asked for.

A process of its own, as Triton either interprets or compiles: `python -m support.compiled_kernels`.
"""

import json
import sys
from collections.abc import Sequence

import torch

from model.decode.backends.cuda.buckets import Bucket
from model.decode.backends.cuda.kernels.choice_ops import ChoiceOps
from model.decode.backends.cuda.kernels.driver import Function
from model.decode.backends.cuda.kernels.launching import CompiledLauncher
from model.decode.backends.cuda.kernels.ops import KernelOps, Linear, NormWeights
from support.grid_tables import grown_tables


class NotedDriver:
    """Takes note of what is loaded and launched, and does neither."""

    def __init__(self) -> None:
        self.binaries: list[bytes] = []
        self.calls: list[dict[str, object]] = []
        self._names: list[str] = []

    def load(self, binary: bytes, name: str, shared_bytes: int) -> Function:
        self.binaries.append(binary)
        self._names.append(name)
        return Function(len(self._names) - 1)

    def launch(
        self,
        function: Function,
        *,
        grid: tuple[int, ...],
        num_threads: int,
        shared_bytes: int,
        arguments: Sequence[tuple[str, int | float]],
    ) -> None:
        kinds = [kind for kind, _ in arguments]
        self.calls.append(
            {
                "name": self._names[function],
                "grid": grid,
                "num_threads": num_threads,
                "pointers": kinds.count("pointer"),
                "numbers": kinds.count("i32") + kinds.count("fp32"),
            }
        )


def launch_all(launcher: CompiledLauncher, dtype: torch.dtype) -> None:
    """Every program once, but the product with everything it can do."""
    cpu = torch.device("cpu")
    ops, choice = KernelOps(launcher), ChoiceOps(launcher)
    tables = grown_tables(lambda *shape, **kind: torch.randn(shape, **kind), dtype, device=cpu)
    x, weight = torch.randn(4, 16, dtype=dtype), torch.randn(36, 16, dtype=dtype)
    norm = NormWeights(gain=x[0], offset=x[0], epsilon=1e-5)
    ops.embed(tables, 2, table=weight, scale=4.0, positions=weight, norm=norm)
    ops.add_norm(x, x, norm, keeps_total=True)
    square = Linear(weight=weight[:16], bias=x[0])
    ops.product(x, square, norm=norm, activation="gelu", residual=x, residual_norm=norm)
    ops.attend_past(torch.randn(4, 36, dtype=dtype), tables, 0, scale=0.4, bias=None)
    ops.attend_source(torch.randn(4, 12, dtype=dtype), tables, 0, scale=0.4)
    logits, bias = torch.randn(4, 23), torch.randn(23)
    found = choice.continuations(logits, bias, bias, 4)
    bucket = Bucket(
        num_slots=2,
        num_columns=80,
        source_length=80,
        num_candidates=4,
        with_sources=False,
        with_suppressed=False,
        with_sampling=False,
        num_phrase_tokens=0,
        num_groups=1,
        no_repeat_ngram=0,
        by_kernels=True,
    )
    choice.search(found, tables, bucket, sources=None, eos_id=1)
    choice.search(found, tables, bucket, sources=None, eos_id=1)  # is not compiled again


def main() -> None:
    driver = NotedDriver()
    launch_all(CompiledLauncher(driver, capability=90), torch.float16)
    elves = [binary[:4] == b"\x7fELF" for binary in driver.binaries]
    sys.stdout.write(json.dumps({"elves": elves, "calls": driver.calls}))


if __name__ == "__main__":
    main()
