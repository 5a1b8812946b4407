"""What is said beside the figures of results that do not keep the page's rules."""

from typing import Any

import pytest

pytest.importorskip("psutil", reason="psutil comes with the extra bench")

from benchmarks.peers.notes import family_notes, served_notes, thread_notes, tuning_note
from benchmarks.peers.served import BARE
from support.peers_results import DRAGOMAN, RIVAL, families, header, offline, point


def _family(name: str, *, rounds: int = 3, busy: float = 0.0, units: str = "avx2") -> Any:
    speeds = {DRAGOMAN: 200.0, RIVAL: 100.0}
    points = [point("equal", 1, 4, speeds), point("file", 40, 4, speeds)]
    for one in points:
        for rival in one["rivals"].values():
            rival["rounds"] *= rounds
    run = header("families") | {"busy_percent_before": busy}
    run["machine"] = run["machine"] | {"vector_units": [units]}
    return {"family": name, "points": points, "run": run}


def test_what_families_miss_is_said() -> None:
    measured = [
        _family("t5", rounds=2),
        _family("mbart", busy=52.8),
        _family("student", units="avx512f"),
        _family("new"),
    ]
    for one in measured[2:]:
        one["points"][1]["num_lengths"] = 2
    files, rules, processors = family_notes(
        {"families": {"families": measured}, "offline": offline()}
    )
    assert files.startswith(
        "Not shown: the file of 40 sentences of t5 and mbart has answers of 8 lengths."
    )
    assert rules.endswith(
        "t5 (2 rounds only); mbart (others had used 52.8 % of the processors just before)."
    )
    assert processors == (
        "Measured on another processor than the rest (Test CPU with avx2):"
        " student on Test CPU with avx512f."
    )


def test_families_that_keep_the_rules_need_no_words() -> None:
    one = _family("new")
    one["points"][1]["num_lengths"] = 2
    assert family_notes({"families": {"families": [one]}, "offline": offline()}) == []
    assert family_notes({}) == []
    assert len(family_notes({"families": families()})) == 1  # of one round each


def test_points_are_named_at_which_the_rival_has_fewer_threads_or_active_ones() -> None:
    result: Any = offline() | {"num_threads": 2}
    for one, threads in zip(result["points"], (1, 2, 2, 2, 2), strict=True):
        settings = {"inter_threads": 1, "intra_threads": threads}
        one["rivals"][RIVAL]["settings"] = settings
    result["points"][1]["rivals"][RIVAL]["settings"]["omp_wait_policy"] = "active"
    fewer, active = thread_notes(result)
    assert fewer == (
        "CTranslate2 was fastest with one thread, where ours has 2:"
        " vocabulary 58101, beam 4, 1 sentence."
    )
    assert active == (
        "Its threads waited actively (OMP_WAIT_POLICY): vocabulary 58101, beam 4, 32 sentences."
    )


def test_earlier_ways_of_measuring_are_said_of_results_that_were_measured_so() -> None:
    assert len(served_notes({})) == 1
    assert served_notes({"ctranslate2_server": BARE}) == []
    once: Any = offline()
    once["points"][0]["rivals"][RIVAL]["tuning"] = [{"settings": {}, "seconds": 1.0}]
    often: Any = offline()
    often["points"][0]["rivals"][RIVAL]["tuning"] = [
        {"settings": {}, "seconds": 1.0, "runs": [1.0]}
    ]
    assert tuning_note({"offline": often}) == ""
    assert tuning_note({"offline": once, "avx2": often}).startswith("The settings of offline were")
