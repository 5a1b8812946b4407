"""The benchmark of bulk jobs, with files that are too short to say anything."""

from pathlib import Path

from benchmarks.bulk import WAYS, Row, measured


def test_each_way_is_a_command_that_runs(tmp_path: Path) -> None:
    (local,) = [way for way in WAYS if way.name == "local" and way.num_threads == 1]
    (row,) = measured([local], (1, 3), tmp_path)
    assert min(row.seconds) > 0
    assert (tmp_path / "0-3" / "_SUCCESS").exists()


def test_a_speed_is_shared_by_the_workers() -> None:
    (two,) = [way for way in WAYS if way.num_workers == 2]
    assert Row(way=two, seconds=(1.0, 2.0), lines_per_second=300.0).per_worker == 150.0
