"""Provenance of a results file: machine, versions, command, and the load of other processes."""

import hashlib
import os
import platform
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from model.native import kernels

_ROOT = Path(__file__).resolve().parents[1]
_PROC = Path("/proc")
_PACKAGES = ("torch", "fastapi", "uvicorn", "sentencepiece")
_WORK = bytes(2**18)
# Folders of homes, besides the one that this user's home is in.
_HOMES = tuple(map(Path, ("/home", "/Users", "/var/home", "/export/home")))
_NUM_PARTS = 2


def _processor() -> str:
    """Its name, and its family and model, as hosts of virtual machines shorten the name."""
    first, _, _ = (_PROC / "cpuinfo").read_text(encoding="utf-8").partition("\n\n")
    pairs = (line.partition(":") for line in first.splitlines())
    facts = {name.strip(): value.strip() for name, _, value in pairs}
    if "model name" not in facts:
        return platform.processor() or platform.machine()
    numbers = [f"{key.split()[-1]} {facts[key]}" for key in ("cpu family", "model") if key in facts]
    return f"{facts['model name']} ({', '.join(numbers)})" if numbers else facts["model name"]


def _vector_units() -> list[str]:
    flags = (_PROC / "cpuinfo").read_text(encoding="utf-8").split()
    return [
        unit
        for unit in ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8")
        if unit in flags
    ]


def _instruction_set() -> str | None:
    """What the int8 kernels are compiled for that this process would use; None without kernels."""
    return kernels.chosen(os.environ)


def describe_commit(checkout: Path = _ROOT) -> str:
    """What git calls the commit of a checkout, "-dirty" if files differ; empty without git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        found = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # there is no git
        return ""
    return found.stdout.strip()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Shares of the cores' time that were not there for a benchmark.

    Attributes:
        stolen: Other guests of the same host had it.
        others: Other processes of this machine had it.
    """

    stolen: float
    others: float


class CoreTime:
    """Who had the cores' time; Linux only.

    Args:
        processes: The ids of those that are part of the benchmark, besides this one.
    """

    def __init__(self, processes: Callable[[], Iterable[int]]) -> None:
        self._processes = processes
        self._last = self._ticks()

    def taken(self) -> Taken:
        """Since this was asked last, or since the beginning."""
        last, self._last = self._last, self._ticks()
        everything, busy, stolen, ours = (
            now - then for now, then in zip(self._last, last, strict=True)
        )
        return Taken(
            stolen=stolen / max(1, everything),
            others=max(0, busy - ours) / max(1, everything),
        )

    def _ticks(self) -> tuple[int, int, int, int]:
        """Since the machine started: all, those of processes, those stolen, ours."""
        first = (_PROC / "stat").read_text(encoding="utf-8").split("\n", 1)[0]
        user, nice, system, idle, waiting, irq, soft, stolen = map(int, first.split()[1:9])
        busy = user + nice + system
        everything = busy + idle + waiting + irq + soft + stolen
        ours = sum(map(_process_ticks, {os.getpid(), *self._processes()}))
        return everything, busy, stolen, ours


def _process_ticks(process_id: int) -> int:
    """In user code and in the kernel; 0 of a process that has gone."""
    try:
        line = (_PROC / str(process_id) / "stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    fields = line.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def fixed_work_seconds() -> float:
    """Time on a core that a piece of work takes which is always the same, about a millisecond.

    It rises where a core is slower: lower clock, or a busy sibling that nobody accounts for.
    """

    def once() -> float:
        started = time.thread_time()
        hashlib.sha256(_WORK).digest()
        return time.thread_time() - started

    return min(once() for _ in range(3))


def describe_command(module: str, words: Sequence[str]) -> str:
    """What was typed; absolute paths are cut to what names neither a person nor this machine."""
    return f"python -m {module} {shlex.join(map(_shortened, words))}".rstrip()


def _shortened(word: str) -> str:
    flag, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
    path = Path(value)
    if not path.is_absolute():
        return word
    if path.is_relative_to(_ROOT):
        return f"{flag}{equals}{path.relative_to(_ROOT)}"
    return f"{flag}{equals}{Path(*_below_homes(path)[-_NUM_PARTS:])}"


def _below_homes(path: Path) -> tuple[str, ...]:
    """Parts of an absolute path below the home that it is in, whose name may be a person's."""
    home = Path.home()
    if path.is_relative_to(home):
        return path.relative_to(home).parts
    for homes in (home.parent, *_HOMES):
        if homes != Path("/") and path.is_relative_to(homes):
            return path.relative_to(homes).parts[1:]
    return path.parts[1:]


def describe_machine() -> dict[str, object]:
    """Facts for a results file; nothing that identifies a person or a network."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "vector_units": _vector_units(),
        "instruction_set": _instruction_set(),
        "num_cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory_bytes / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _PACKAGES},
        "commit": describe_commit(),
    }
