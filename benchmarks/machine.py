"""What a results file says of where it was made: processor, memory, versions, commit."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_TICKS = Path("/proc/stat")
_PACKAGES = ("torch", "fastapi", "uvicorn", "sentencepiece")


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _vector_units() -> list[str]:
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    return [unit for unit in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16") if unit in flags]


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        found = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # there is no git
        return ""
    return found.stdout.strip()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


class StolenTime:
    """The share of the cores' time that other guests of the same host took; Linux only."""

    def __init__(self) -> None:
        self._stolen, self._all = _core_ticks()

    def share(self) -> float:
        """Since this was asked last, or since the beginning."""
        stolen, everything = _core_ticks()
        share = (stolen - self._stolen) / max(1, everything - self._all)
        self._stolen, self._all = stolen, everything
        return share


def _core_ticks() -> tuple[int, int]:
    """Ticks stolen and ticks in all, of every core since the machine started."""
    first = _TICKS.read_text(encoding="utf-8").split("\n", 1)[0]
    user, nice, system, idle, waiting, irq, soft, stolen = map(int, first.split()[1:9])
    return stolen, user + nice + system + idle + waiting + irq + soft + stolen


def describe_machine() -> dict[str, object]:
    """Facts for a results file; nothing that identifies a person or a network."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "vector_units": _vector_units(),
        "num_cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory_bytes / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _PACKAGES},
        "commit": _commit(),
    }
