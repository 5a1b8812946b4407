"""What results files say of the machine."""

from pathlib import Path

import pytest

from benchmarks import machine


def test_stolen_time_is_a_share_of_what_has_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = tmp_path / "stat"
    ticks.write_text("cpu  10 0 10 80 0 0 0 5 0 0\ncpu0 1 2 3\n", encoding="utf-8")
    monkeypatch.setattr(machine, "_TICKS", ticks)
    stolen = machine.StolenTime()
    assert stolen.share() == 0.0
    ticks.write_text("cpu  20 10 20 130 5 2 3 25 7 0\n", encoding="utf-8")
    assert stolen.share() == pytest.approx(20 / 110)


def test_the_machine_describes_itself() -> None:
    found = machine.describe_machine()
    assert found["processor"]
    assert found["num_cores"]
    assert 0.0 <= machine.StolenTime().share() <= 1.0
