"""The kernels of AMX where the processor has no tiles: they are emulated, one by one."""

import ctypes
import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from model.native import kernels

LEVEL = "avx512-amx"
_SOURCE = Path(__file__).parents[1] / "model" / "native" / "tile_emulator.cpp"
_EMULATED = {"amx_int8", "amx_permission"}
"""What the processor or the system may lack of the level."""


def find_problem() -> str | None:
    """Why the level cannot be run here, not even emulated."""
    missing = kernels.missing_features().get(LEVEL)
    if missing is None or importlib.util.find_spec("model.native._kernels_avx512_amx") is None:
        return "no kernels for AMX were built"
    if rest := set(missing) - _EMULATED:
        return f"the processor has no {', '.join(sorted(rest))}"
    if missing and shutil.which("g++") is None:
        return "there is no g++ to compile the emulator with"
    return None


def load_emulator(folder: Path) -> None:
    """Compile it into a folder, and load it into this process for good."""
    library = folder / "tile_emulator.so"
    flags = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    subprocess.run(["g++", *flags, str(_SOURCE), "-o", str(library)], check=True)
    ctypes.CDLL(str(library))


def choose_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the level as one that the processor has, and as the one that is asked for."""
    missing = kernels.missing_features() | {LEVEL: []}
    monkeypatch.setattr(kernels, "missing_features", lambda: missing)
    monkeypatch.setenv(kernels.VARIABLE, LEVEL)
