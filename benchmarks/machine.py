"""What a results file says of where it was made: processor, memory, versions, commit."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
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
