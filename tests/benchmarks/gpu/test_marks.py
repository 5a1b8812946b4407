"""The marks of a GPU run, from results as parts leave them."""

import time
from functools import partial

import pytest

from benchmarks.gpu.__main__ import cap_of
from benchmarks.gpu.marks import all_marks
from benchmarks.gpu.parts import run_part

SPEED = [
    {"sentences": 1, "beam_size": 4, "tokens_per_second": 4_000.0, "seconds": [0.008, 0.009, 0.1]},
    {"sentences": 256, "beam_size": 4, "tokens_per_second": 120_000.0, "seconds": [0.07]},
    {"sentences": 1024, "beam_size": 4, "tokens_per_second": 110_000.0, "seconds": [0.3]},
    {"sentences": 1024, "beam_size": 1, "tokens_per_second": 400_000.0, "seconds": [0.08]},
]


def test_ratios_are_the_best_of_the_same_batches_by_the_best_of_theirs_and_speed_is_at_1024() -> (
    None
):
    marks = all_marks(
        {
            "speed": SPEED,
            "huggingface": [
                {"sentences": 1, "beam_size": 4, "tokens_per_second": 160.0},
                {"sentences": 64, "beam_size": 4, "tokens_per_second": 4_000.0},
                {"sentences": 256, "beam_size": 4, "error": "out of memory"},
            ],
            "ctranslate2": [
                {"sentences": 1, "beam_size": 4, "tokens_per_second": 2_000.0},
                {"sentences": 64, "beam_size": 4, "tokens_per_second": 60_000.0},
            ],
            "bleu": {"float32": 23.5, "bfloat16": 23.25},
        }
    )
    assert [mark.value for mark in marks] == [
        110_000.0,
        9.0,
        25.0,
        30.0,
        pytest.approx(4 / 60),
        0.25,
    ]
    assert [mark.is_reached for mark in marks] == [True, True, True, True, False, False]


def test_a_part_that_failed_leaves_its_marks_unmeasured() -> None:
    marks = all_marks({"speed": [{"error": "no time left"}], "huggingface": {"error": "?"}})
    assert [mark.value for mark in marks] == [None] * 6
    assert not any(mark.is_reached for mark in marks)


def test_the_speed_of_fewer_sentences_does_not_reach_the_mark_of_1024() -> None:
    marks = all_marks({"speed": SPEED[:2]})
    assert marks[0].name == "tokens/s at 1,024 sentences, beam 4"
    assert marks[0].value is None
    assert not marks[0].is_reached


def test_rows_stay_when_their_part_fails() -> None:
    seen: list[object] = []
    part = partial(map, int, ["1", "2", "no number"])
    found = run_part("rows", part, seconds=60, on_found=seen.append)
    assert isinstance(found, list)
    assert found[:2] == [1, 2]
    assert found[2]["error"].startswith("ValueError: invalid literal")
    assert seen == [[1], [1, 2]]


def test_a_part_ends_with_its_time() -> None:
    found = run_part("sleep", partial(time.sleep, 600), seconds=0.1)
    assert found == {"error": "no time left"}


def test_in_the_first_run_the_early_parts_leave_time_to_the_late_ones() -> None:
    left, caps = 180.0, []
    names = ("speed", "huggingface", "busy")
    for place, name in enumerate(names):
        caps.append(cap_of(name, left, num_later=len(names) - 1 - place))
        left -= caps[-1]
    assert caps == [90.0, 45.0, 40.0]
    assert cap_of("speed", 510.0, num_later=5) == 150.0
