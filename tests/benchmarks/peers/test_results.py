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


def _served(levels: tuple[int, ...], rates: tuple[float, ...]) -> dict[str, object]:
    checkpoint = {
        "checkpoint": "bundled",
        "settings": {"CTranslate2": {"inter_threads": len(levels)}},
        "closed": [{"num_clients": number} for number in levels],
        "open": [{"rate_per_second": rate} for rate in rates],
        "short_beside_long": [],
    }
    return {"checkpoints": [checkpoint]}


def test_what_a_partial_run_of_the_servers_left_out_is_of_the_latest_run_that_has_it(
    tmp_path: Path,
) -> None:
    header = results.header("served", is_quick=True, num_threads=1)

    def write(hour: int, content: dict[str, object]) -> str:
        started = {"started": f"2026-01-02T{hour:02}:00:00+00:00"}
        return results.write(header | started | content, tmp_path).name

    write(1, _served((1, 32), (0.5,)))
    whole = write(2, _served((1, 8, 32), (0.6,)))
    for hour in (3, 4):
        last = write(hour, _served((32,), ()))
    (found,) = results.latest(tmp_path)["served"]["checkpoints"]
    assert (found["file"], found["closed"]) == (last, [{"num_clients": 32}])
    assert set(found["earlier"]) == {"closed", "open"}
    assert {table["file"] for table in found["earlier"].values()} == {whole}
    assert found["earlier"]["open"]["levels"] == [{"rate_per_second": 0.6}]
    assert found["earlier"]["open"]["settings"] == {"CTranslate2": {"inter_threads": 3}}
    write(5, _served((1, 8, 32), (0.7,)))
    (found,) = results.latest(tmp_path)["served"]["checkpoints"]
    assert found["earlier"] == {}


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
