import pytest

pytest.importorskip("psutil", reason="psutil comes with the extra bench")

from benchmarks.peers.marks import Mark, all_marks, has_small_groups, ratio, speedup
from support.peers_results import (
    DRAGOMAN,
    FLOAT,
    REFERENCE,
    RIVAL,
    all_results,
    families,
    memory,
    offline,
    point,
    served,
)


def test_every_mark_has_its_ratio_its_target_and_its_verdict() -> None:
    found = {
        mark.name: (mark.value, mark.target, mark.is_reached) for mark in all_marks(all_results())
    }
    assert found == {
        "tokens/s, vocabulary 58101, beam 4, 1 sentence": (2.1, 2.0, True),
        "tokens/s, vocabulary 58101, beam 4, 32 sentences": (1.5, 2.0, False),
        "tokens/s, real text, beam 4, 10 segments": (2.0, 1.6, True),
        "tokens/s, vocabulary 58101, beam 4, file of 2000 sentences": (1.7, 2.0, False),
        "tokens/s, vocabulary 58101, greedy, file of 2000 sentences": (2.0, 2.0, True),
        "BLEU of int8 against float32, real text, beam 4, 10 segments": (
            pytest.approx(0.1),
            0.2,
            True,
        ),
        "served sentences/s, 32 clients, bundled": (1.9, 1.8, True),
        "served p99, 32 clients, bundled": (pytest.approx(2 / 3), 0.5, False),
        "growth of resident memory, loaded": (0.9, 1.0, True),
        "growth of resident memory, peak": (1.2, 1.0, False),
        "families: no results": (None, 1.0, False),
    }


def test_a_family_is_compared_with_every_engine_of_it_and_its_memory_with_ctranslate2s() -> None:
    found = {mark.name: mark.value for mark in all_marks(all_results() | {"families": families()})}
    assert {name: value for name, value in found.items() if name.startswith("student")} == {
        "student against CTranslate2: tokens/s, vocabulary 58101, beam 4, 1 sentence": 3.0,
        "student against CTranslate2: tokens/s, vocabulary 58101, greedy,"
        " file of 2000 sentences": 3.0,
        "student against Marian int8: tokens/s, vocabulary 58101, beam 4, 1 sentence": 4.0,
        "student against Marian int8: tokens/s, vocabulary 58101, greedy,"
        " file of 2000 sentences": 4.0,
        "student: growth of resident memory, loaded": 0.9,
        "student: growth of resident memory, peak": 1.2,
    }


def test_files_whose_calls_were_no_batches_are_no_comparison() -> None:
    result = families()
    speeds = {DRAGOMAN: 3000.0, RIVAL: 1000.0}
    small = point("file", 40, 4, speeds)
    result["families"][0]["points"] = [small, small | {"num_lengths": 2}]
    names = [mark.name for mark in all_marks({"families": result}) if "file of 40" in mark.name]
    assert names == [
        f"student against {rival}: tokens/s, vocabulary 58101, beam 4, file of 40 sentences"
        for rival in (RIVAL, "Marian int8")
    ]
    assert [has_small_groups(point("file", n, 4, speeds)) for n in (40, 100, 400, 2000)] == [
        True,
        True,
        False,
        False,
    ]


def test_a_line_says_what_was_reached_and_what_was_asked_for() -> None:
    mark = Mark(name="speed", value=2.0, target=2.0, is_minimum=True)
    assert str(mark) == "reached     speed: 2.00×, at least 2×"
    mark = Mark(name="p99", value=0.51, target=0.5, is_minimum=False)
    assert str(mark) == "missed      p99: 0.51×, at most 0.5×"


def test_a_run_without_float32_has_no_mark_of_what_int8_costs() -> None:
    result = offline()
    for one in result["points"]:
        one["rivals"].pop(FLOAT, None)
    names = [mark.name for mark in all_marks(all_results() | {"offline": result})]
    assert not any(name.startswith("BLEU") for name in names)


def test_what_was_not_measured_is_not_reached() -> None:
    result = served()
    levels = result["checkpoints"][0]["closed"]
    result["checkpoints"][0]["closed"] = [found for found in levels if found["rival"] != RIVAL]
    marks = all_marks({"offline": offline(), "served": result})
    unmeasured = [mark for mark in marks if mark.value is None]
    assert [mark.name for mark in unmeasured] == [
        "served sentences/s, 32 clients, bundled",
        "served p99, 32 clients, bundled",
        "memory: no results",
        "families: no results",
    ]
    assert not any(mark.is_reached for mark in unmeasured)
    assert str(unmeasured[0]).startswith("unmeasured")


def test_better_bleu_is_a_difference_too() -> None:
    result = offline()
    text = result["points"][2]["rivals"]
    text["Dragoman int8"]["bleu"]["score"] = 20.3
    (mark,) = [
        mark for mark in all_marks({"offline": result, "memory": memory()}) if "BLEU" in mark.name
    ]
    assert mark.value == pytest.approx(0.3)
    assert not mark.is_reached


def test_engines_are_compared_within_the_rounds_that_both_were_in() -> None:
    """Ours is twice as fast throughout, on a machine that halves its speed from time to time."""

    def rounds(*seconds: float) -> dict[str, object]:
        return {"rounds": [{"seconds": value, "num_tokens": 100} for value in seconds]}

    one = {"rivals": {DRAGOMAN: rounds(1, 2, 2, 2), RIVAL: rounds(2, 4, 2)}}
    assert speedup(one, DRAGOMAN, RIVAL) == 2.0
    assert speedup(one, RIVAL, DRAGOMAN) == 0.5
    assert speedup(one, DRAGOMAN, REFERENCE) is None
    one["rivals"][RIVAL]["rounds"] = [
        {"round": number, **run} for number, run in zip((1, 3), rounds(4, 4)["rounds"], strict=True)
    ]
    assert speedup(one, DRAGOMAN, RIVAL) == 2.0


def test_a_ratio_to_nothing_is_none() -> None:
    assert ratio(1.0, None) is None
    assert ratio(None, 1.0) is None
    assert ratio(1.0, 0.0) is None
