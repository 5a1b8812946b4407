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


def test_a_family_that_was_measured_alone_takes_its_own_place_among_the_others(
    tmp_path: Path,
) -> None:
    def write(time: str, speeds: dict[str, float]) -> str:
        measured = [
            {"family": family, "points": [{"speed": speed}]} for family, speed in speeds.items()
        ]
        started = {"started": f"2026-01-02T{time}+00:00", "families": measured}
        header = results.header("families", is_quick=True, num_threads=1)
        return results.write(header | started, tmp_path).name

    both = write("03:00:00", {"student": 1.0, "t5-base": 2.0})
    one = write("04:00:00", {"t5-base": 3.0})
    latest = results.latest(tmp_path)["families"]
    assert latest["file"] == one
    runs = [entry.pop("run") for entry in latest["families"]]
    assert [run["started"][11:19] for run in runs] == ["03:00:00", "04:00:00"]
    assert latest["families"] == [
        {"family": "student", "points": [{"speed": 1.0}], "file": both},
        {"family": "t5-base", "points": [{"speed": 3.0}], "file": one},
    ]


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
