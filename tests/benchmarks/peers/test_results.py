"""Results of runs that were held to an instruction set, beside those that were not."""

from pathlib import Path

import pytest

from benchmarks.peers import isa, results
from model.native import kernels


@pytest.mark.skipif(kernels.find_problem() is not None, reason="no kernels here")
def test_a_run_held_to_an_instruction_set_says_so_and_is_never_the_latest(tmp_path: Path) -> None:
    free = results.header("offline", is_quick=True, num_threads=1)
    held = results.header("offline", is_quick=True, num_threads=1, instruction_set="avx2")
    assert free["instruction_set"] == kernels.chosen({})
    assert held["instruction_set"] == "avx2"
    earlier = {"started": "2026-01-02T03:04:05+00:00"}
    results.write(free | earlier, tmp_path)
    path = results.write(held, tmp_path)
    assert path.name.startswith("avx2-peers-offline-")
    latest = results.latest(tmp_path)["offline"]
    assert latest["file"] == "peers-offline-20260102-030405.json"


def test_both_sides_are_held_to_the_same() -> None:
    assert isa.environment(None) == {}
    assert isa.environment("avx2") == {
        "DRAGOMAN_ISA": "avx2",
        "CT2_FORCE_CPU_ISA": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    }
    everything = isa.environment("avx512-vnni")
    assert isa.held({"PATH": "/bin", "MKL_NUM_THREADS": "1"} | everything) == everything
