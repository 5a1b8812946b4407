"""Families of networks: who takes part, with what, and the files that Marian is given."""

import pytest

pytest.importorskip("psutil", reason="psutil comes with the extra bench")

from benchmarks.peers.__main__ import chosen_plan, parse_arguments
from benchmarks.peers.families import family_points, taking_part
from benchmarks.peers.plan import FULL, FamilyPlan
from benchmarks.peers.rivals import CTRANSLATE2, DRAGOMAN_INT8, MARIAN
from benchmarks.random_checkpoint import SHAPES

PLAN = FamilyPlan(shape="attention-student", has_marian=True, num_file_sentences=20, counts=(1, 8))


def test_marian_takes_part_where_it_is_and_runs_the_family() -> None:
    names = [spec.name for spec in taking_part(PLAN, 2, marian="/opt/marian/bin/python")]
    assert names == [DRAGOMAN_INT8, CTRANSLATE2, MARIAN]
    assert MARIAN not in [spec.name for spec in taking_part(PLAN, 2, marian=None)]
    nllb = FULL.families[1]
    assert nllb.shape == "nllb-600m"
    assert MARIAN not in [spec.name for spec in taking_part(nllb, 2, marian="python")]


def test_every_point_has_forced_lengths_and_settings_for_everybody() -> None:
    points = list(family_points(PLAN, taking_part(PLAN, 2, marian="python")))
    assert [(point.workload, point.work.beam_size) for point in points] == [
        ("equal", 4),
        ("equal", 4),
        ("file", 4),
        ("equal", 1),
        ("equal", 1),
        ("file", 1),
    ]
    for point in points:
        assert point.work.is_forced
        assert all(entry.candidates and entry.is_compared for entry in point.entries)
    marians = [entry for entry in points[1].entries if entry.name == MARIAN]
    assert {setting["mini_batch"] for setting in marians[0].candidates} == {4, 8}


def test_the_student_and_its_twin_differ_in_the_cell_alone() -> None:
    student, twin = SHAPES["student"], SHAPES["attention-student"]
    assert (student.decoder_cell, twin.decoder_cell) == ("ssru", "self-attention")
    assert (student.d_model, student.d_ff, student.vocab_size) == (256, 1536, 32_000)
    assert (twin.d_model, twin.d_ff, twin.vocab_size) == (256, 1536, 32_000)


@pytest.mark.parametrize("shape", [family.shape for family in FULL.families])
def test_every_family_has_a_shape_whose_end_can_be_kept_from_being_chosen(shape: str) -> None:
    assert SHAPES[shape].output_bias
    assert {"t5-base", "m2m100-418m", "mbart-50", "fsmt-wmt19"} <= SHAPES.keys()


def test_families_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["peers", "--family", "t5-base", "--family", "mbart-50"])
    plan = chosen_plan(parse_arguments())
    assert [family.shape for family in plan.families] == ["t5-base", "mbart-50"]


def test_a_run_has_the_families_with_marks_and_all_of_them_when_it_is_about_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def shapes(*words: str) -> list[str]:
        monkeypatch.setattr("sys.argv", ["peers", *words])
        return [family.shape for family in chosen_plan(parse_arguments()).families]

    assert shapes() == ["student", "nllb-600m"]
    assert shapes("--only", "families") == [family.shape for family in FULL.families]
    assert shapes("--quick") == ["student"]


def test_named_levels_are_all_that_is_asked_of_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["peers", "--only", "served", "--clients", "32"])
    served = chosen_plan(parse_arguments()).served
    assert (served.clients, served.open_shares, served.probe_seconds) == ((32,), (), 0.0)
