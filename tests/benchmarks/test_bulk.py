"""The benchmark of bulk jobs, with files that are too short to say anything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import bulk
from benchmarks.bulk import WAYS, command_of, measured
from benchmarks.bulk_rows import Way


def _way(name: str, num_workers: int) -> Way:
    (way,) = [
        way
        for way in WAYS
        if (way.name, way.num_workers, way.num_threads) == (name, num_workers, 1)
    ]
    return way


def test_each_way_is_a_command_that_runs(tmp_path: Path) -> None:
    (row,) = measured([_way("local", 1)], (1, 3), tmp_path)
    ((short, long),) = row.runs
    assert min(short.seconds, long.seconds) > 0
    assert (tmp_path / "0-0-0-3" / "_SUCCESS").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="nothing tells who had the cores")
def test_two_workers_without_a_cluster_are_two_commands_that_share_the_lines(
    tmp_path: Path,
) -> None:
    (row,) = measured([_way("local", 2)], (2, 5), tmp_path, rounds=2)
    for turn in range(2):
        parts = [tmp_path / f"{turn}-0-{part}-5" / "part-000000.txt" for part in range(2)]
        assert [len(part.read_bytes().splitlines()) for part in parts] == [2, 3]
    assert len(row.runs) == 2
    used = row.runs[0][1].used
    assert used is not None
    assert used.by_kind["command"] > 0
    assert "workers" in row.core_ms_a_line()


def test_a_command_that_fails_ends_the_benchmark(tmp_path: Path) -> None:
    (tmp_path / "0-0-0-1").write_text("in the way", encoding="utf-8")
    with pytest.raises(subprocess.CalledProcessError):
        measured([_way("local", 1)], (1, 3), tmp_path)


def test_a_command_that_takes_too_long_ends_the_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "_TIMEOUT_SECONDS", 0.4)
    monkeypatch.setattr(bulk, "command_of", lambda *_: ["sleep", "0.6"])
    with pytest.raises(subprocess.TimeoutExpired):
        measured([_way("local", 1)], (1, 3), tmp_path)


def test_both_kinds_of_ray_are_told_the_same_cluster_and_workers(tmp_path: Path) -> None:
    for way in WAYS:
        command = command_of(way, tmp_path / "in.txt", tmp_path / "out", "here:1")
        on_ray = ["--ray-address", "here:1", "--workers", str(way.num_workers)]
        assert (" ".join(on_ray) in " ".join(command)) == way.is_on_ray
        assert way.is_on_ray == (way.name in {"ray", "ray-data"})
        assert way.num_commands == (1 if way.is_on_ray else way.num_workers)


def test_the_environment_is_left_as_it_is(tmp_path: Path) -> None:
    before = dict(os.environ)
    measured([_way("local", 1)], (1, 2), tmp_path)
    assert dict(os.environ) == before
