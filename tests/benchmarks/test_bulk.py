"""The benchmark of bulk jobs, with files that are too short to say anything."""

from pathlib import Path

from benchmarks.bulk import WAYS, Row, measured, table

(LOCAL,) = [way for way in WAYS if way.name == "local" and way.num_threads == 1]
(TWO,) = [way for way in WAYS if way.name == "ray-data" and way.num_workers == 2]


def test_each_way_is_a_command_that_runs(tmp_path: Path) -> None:
    (row,) = measured([LOCAL], (1, 3), tmp_path)
    assert min(row.seconds[0]) > 0
    assert (tmp_path / "0-0-3" / "_SUCCESS").exists()


def test_both_kinds_of_ray_are_told_the_same_cluster_and_workers(tmp_path: Path) -> None:
    for way in WAYS:
        command = way.command(tmp_path / "in.txt", tmp_path / "out", "here:1")
        on_ray = ["--ray-address", "here:1", "--workers", str(way.num_workers)]
        assert (" ".join(on_ray) in " ".join(command)) == way.is_on_ray
        assert way.is_on_ray == (way.name in {"ray", "ray-data"})


def test_a_speed_is_that_of_all_rounds_and_is_shared_by_the_workers() -> None:
    local = Row(way=LOCAL, seconds=((1.0, 3.0),), num_lines=300)
    two = Row(way=TWO, seconds=((1.0, 2.0), (2.0, 3.0)), num_lines=300)
    assert (two.lines_per_second, two.per_worker) == (300.0, 150.0)
    assert table([local, two], 10.0).splitlines()[2:] == [
        "| local | 1 | 1 | 150.0 | 150.0 | 1500 | 1.00 |",
        "| ray-data | 2 | 1 | 300.0 | 150.0 | 1500 | 1.00 |",
    ]
