"""Processors of the engine: all that may be used but one, which is the front's."""

from pathlib import Path

from model.system.cores import PROC, usable_cores


def engine_threads(proc: Path = PROC) -> int:
    """Threads for the engine; at least 1.

    Args:
        proc: The folder of this process in /proc, with `cgroup` and `mountinfo`.
    """
    return max(1, usable_cores(proc) - 1)
