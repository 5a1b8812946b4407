"""Compiles every program for sm_90 without a device and prints what the driver was asked for.

Small in float16 with everything that a program can do, and in base size, with few rows and many, in
what is served. A process of its own, as Triton either interprets or compiles:
`python -m support.compiled_kernels`.
"""

import json
import sys
from collections.abc import Sequence

import torch

from model.cells import StateShape
from model.config import ModelConfig
from model.decode.backends.cuda.buckets import padded_vocabulary
from model.decode.backends.cuda.growth import Sizes
from model.decode.backends.cuda.kernels.choice_ops import ChoiceOps
from model.decode.backends.cuda.kernels.driver import Function
from model.decode.backends.cuda.kernels.launching import CompiledLauncher
from model.decode.backends.cuda.kernels.ops import KernelOps, Linear, NormWeights
from model.decode.backends.cuda.tables import GridTables
from model.request import SessionLimits
from support.grid_tables import grown_tables, plain_bucket

WIDTH = 4
BASE_ROWS = (4, 128)


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
    bucket = plain_bucket(
        num_slots=2,
        num_columns=80,
        source_length=80,
        num_candidates=4,
    )
    choice.search(found, tables, bucket, sources=None, eos_id=1)
    choice.search(found, tables, bucket, sources=None, eos_id=1)  # is not compiled again


def launch_base_size(launcher: CompiledLauncher, dtype: torch.dtype, num_rows: int) -> None:
    """Every program as the base network launches it, for sentences of four beams."""
    num_slots, width, d_model, d_ff, vocab_size = num_rows // WIDTH, WIDTH, 512, 2048, 58_101
    config = ModelConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        num_heads=8,
        d_ff=d_ff,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )
    state = StateShape(num_heads=8, width=64, grows=True)
    limits = SessionLimits(
        max_rows=num_rows, max_slots=num_slots, max_source_length=64, max_target_length=62
    )
    tables = GridTables(
        config,
        (state, state),
        width=width,
        num_slots=num_slots,
        limits=limits,
        device=torch.device("cpu"),
        dtype=dtype,
        score_dtype=torch.float32,
    )
    tables.reserve(Sizes(num_slots=num_slots, num_columns=64, source_length=64))

    def made(*shape: int, kind: torch.dtype = dtype) -> torch.Tensor:
        return torch.zeros(shape, dtype=kind)

    def linear(outputs: int, inputs: int) -> Linear:
        return Linear(weight=made(outputs, inputs), bias=made(outputs))

    ops, choice = KernelOps(launcher), ChoiceOps(launcher)
    norm = NormWeights(gain=made(d_model), offset=made(d_model), epsilon=1e-5)
    table = made(64, d_model)
    x = ops.embed(
        tables, num_slots, table=made(64, d_model), scale=22.6, positions=table, norm=None
    )
    x = made(num_rows, d_model)
    ops.add_norm(x, x, norm, keeps_total=False)
    ops.product(x, linear(3 * d_model, d_model))
    ops.attend_past(made(num_rows, 3 * d_model), tables, 0, scale=0.125, bias=None)
    ops.attend_source(made(num_rows, d_model), tables, 0, scale=0.125)
    ops.product(x, linear(d_model, d_model), residual=x, residual_norm=norm)
    ops.product(x, linear(d_ff, d_model), norm=norm, activation="relu")
    ops.product(made(num_rows, d_ff), linear(d_model, d_ff), residual=x, residual_norm=norm)
    logits = made(num_rows, padded_vocabulary(vocab_size), kind=torch.float32)
    bias = made(padded_vocabulary(vocab_size), kind=torch.float32)
    found = choice.continuations(logits, bias, bias, width)
    bucket = plain_bucket(
        num_slots=num_slots,
        num_columns=64,
        source_length=64,
        num_candidates=2 * width,
    )
    choice.search(found, tables, bucket, sources=None, eos_id=1)


def main() -> None:
    """Write what was compiled and launched, by precision and rows; 0 rows are the small ones."""
    told: dict[str, object] = {}
    for dtype, num_rows in (
        (torch.float16, 0),
        (torch.bfloat16, 0),
        *((dtype, rows) for dtype in (torch.float16, torch.bfloat16) for rows in BASE_ROWS),
    ):
        driver = NotedDriver()
        launcher = CompiledLauncher(driver, capability=90)
        if num_rows:
            launch_base_size(launcher, dtype, num_rows)
        else:
            launch_all(launcher, dtype)
        elves = [binary[:4] == b"\x7fELF" for binary in driver.binaries]
        name = f"{str(dtype).removeprefix('torch.')}-{num_rows}"
        told[name] = {"elves": elves, "calls": driver.calls}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
