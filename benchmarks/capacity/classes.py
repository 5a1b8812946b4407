"""Classes of engines by the size of the network, the processor's instructions, and threads.

Owns which there are and the measurement of their steps, each in a process of its own, as kernels
are chosen once in each.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from benchmarks.replicas.steps import StepTimes, measure_steps
from benchmarks.soak.server import ONE_BUNDLED
from model.native import kernels


def classes(device: str = "cpu") -> list[tuple[str, str, int]]:
    """What is measured: size, instruction set or device, threads.

    AVX2 is the processors of ten years ago. On a device threads have nothing to share.
    """
    if device != "cpu":
        return [(size, device, 1) for size in ("small", "base")]
    own, *others = kernels.usable()
    found = [(size, own, threads) for size in ("small", "base") for threads in (1, 2)]
    return found + [(size, "avx2", 1) for size in ("small", "base") if "avx2" in others]


def measure_class(
    folder: Path,
    texts: Sequence[str],
    threads: int,
    seconds: float,
    *,
    device: str = "cpu",
    instruction_set: str | None = None,
) -> StepTimes:
    """Times of one class, in a process that has loaded no kernels yet."""
    if instruction_set is not None:
        os.environ[kernels.VARIABLE] = instruction_set
    return measure_steps(folder, texts, num_threads=threads, seconds_each=seconds, device=device)


def measure_all_steps(
    base: Path, texts: Sequence[str], seconds: float, *, device: str = "cpu"
) -> dict[str, StepTimes]:
    """Times by class; sentences are as long as the bundled network makes them."""
    found: dict[str, StepTimes] = {}
    for size, runs_on, threads in classes(device):
        folder = ONE_BUNDLED if size == "small" else base
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            times = process.submit(
                measure_class,
                folder,
                texts,
                threads,
                seconds,
                device=device,
                instruction_set=runs_on if device == "cpu" else None,
            ).result()
        lengths = next(iter(found.values()), times).sentences
        name = f"{size}, {runs_on}, {threads}"
        found[name] = replace(times, sentences=lengths)
        print(name, times.step_seconds, times.encode_seconds, flush=True)
    return found
