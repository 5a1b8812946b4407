"""setup.py: which instruction sets a build for one processor is of."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import setuptools

from model.native import kernels
from support.running_server import ROOT

CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
flags\t\t: fpu sse2 avx2 fma f16c {}

processor\t: 1
flags\t\t: fpu
"""
AVX512 = "avx512f avx512bw avx512dq avx512vl"
LEVELS = ("avx2", "avx2_vnni", "avx512", "avx512_vnni", "avx512_amx")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What setup.py has, without a build."""
    monkeypatch.setattr(setuptools, "setup", lambda **_: None)
    return runpy.run_path(str(ROOT / "setup.py"))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", LEVELS[:1]),
        ("avx_vnni", LEVELS[:2]),
        (AVX512, ("avx2", "avx512")),
        (f"{AVX512} avx512_vnni", ("avx2", "avx512", "avx512_vnni")),
        (f"avx_vnni {AVX512} avx512_vnni amx_tile amx_int8", LEVELS),
    ],
)
def test_a_processor_gets_the_instruction_sets_that_it_has(
    built: dict[str, Any], tmp_path: Path, flags: str, expected: tuple[str, ...]
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(CPUINFO.format(flags), encoding="utf-8")
    processor = built["processor_of"](cpuinfo)
    sets = built["INSTRUCTION_SETS"]["x86_64"]
    found = tuple(name for name, needed in sets.items() if built["is_here"](needed, processor))
    assert found == expected


def test_a_processor_that_does_not_say_gets_all(built: dict[str, Any], tmp_path: Path) -> None:
    unknown = built["processor_of"](tmp_path / "cpuinfo")
    assert all(built["is_here"](flags, unknown) for flags in built["INSTRUCTION_SETS"]["x86_64"])


@pytest.mark.skipif(kernels.find_problem() is not None, reason=kernels.find_problem() or "")
def test_this_processor_has_what_the_kernels_say(built: dict[str, Any]) -> None:
    processor = built["processor_of"](Path("/proc/cpuinfo"))
    if not processor:
        pytest.skip("/proc/cpuinfo does not say what the processor has")
    sets = built["INSTRUCTION_SETS"]["x86_64"]
    for name, missing in kernels.missing_features().items():
        is_missing = bool({*missing} - {"amx_permission"})
        assert built["is_here"](sets[name.replace("-", "_")], processor) != is_missing, name
