"""Rows of the benchmark of bulk jobs: median rounds, shares, who had the cores."""

from benchmarks.bulk_rows import Row, Taken, Way, table, times_table
from benchmarks.process_times import Used

ONE = Way(name="local", num_workers=1, num_threads=1, flags=("--engine", "local"))
TWO = Way(name="local", num_workers=2, num_threads=1, flags=("--engine", "local"))
RAY = Way(name="ray", num_workers=2, num_threads=1, flags=("--engine", "ray"))


def _row(way: Way, *seconds: tuple[float, float]) -> Row:
    runs = tuple((Taken(seconds=short), Taken(seconds=long)) for short, long in seconds)
    return Row(way=way, runs=runs, num_lines=300)


def _used(others: float, **by_kind: float) -> Used:
    return Used(by_kind=by_kind, others=others, stolen=0.0, idle=1.0)


def test_a_speed_is_that_of_the_median_round_and_is_shared_by_the_workers() -> None:
    row = _row(RAY, (1.0, 3.0), (1.0, 2.0), (1.0, 9.0))
    assert (row.seconds, row.lines_per_second, row.per_worker) == ([2.0, 1.0, 8.0], 150.0, 75.0)


def test_a_worker_is_held_against_one_alone_and_against_as_many() -> None:
    rows = [
        _row(ONE, (1.0, 3.0), (1.0, 3.0)),
        _row(TWO, (1.0, 2.25), (1.0, 2.25)),
        _row(RAY, (1.0, 2.0), (2.0, 3.5)),
    ]
    assert table(rows, 10.0).splitlines()[2:] == [
        "| local | 1 | 1 | 150.0 | 150.0 | 1500 | 1.00 | 1.00 | 1.00 to 1.00 |",
        "| local | 2 | 1 | 240.0 | 120.0 | 1200 | 0.80 | 1.00 | 0.80 to 0.80 |",
        "| ray | 2 | 1 | 240.0 | 120.0 | 1200 | 0.80 | 1.00 | 0.67 to 1.00 |",
    ]


def test_without_the_offline_engine_nothing_is_compared() -> None:
    (line,) = table([_row(RAY, (1.0, 2.0))], 10.0).splitlines()[2:]
    assert line == "| ray | 2 | 1 | 300.0 | 150.0 | 1500 |  |  |  |"


def test_who_had_the_cores_is_told_by_line_and_without_starts() -> None:
    short = Taken(seconds=1.0, used=_used(0.1, command=0.9, worker=1.0, raylet=0.2, benchmark=0.1))
    long = Taken(
        seconds=3.0,
        used=_used(0.7, command=1.0, worker=2.8, raylet=0.3, gcs_server=0.2, benchmark=0.1),
    )
    rows = [Row(way=way, runs=((short, long),), num_lines=300) for way in (ONE, RAY)]
    # One cluster is beside both, and belongs to what the second one takes.
    assert times_table(rows).splitlines()[2:] == [
        "| local | 1 | 1 | 6.333 | 0.000 | 1.000 | 0.000 | 2.000 | 0.000 | 0.000 | 1.00 |",
        "| ray | 2 | 1 | 6.000 | 0.333 | 1.000 | 0.000 | 2.000 | 0.000 | 0.000 | 0.86 |",
    ]


def test_a_system_that_does_not_tell_who_had_the_cores_has_no_figures_of_it() -> None:
    row = _row(ONE, (1.0, 2.0))
    assert row.core_ms_a_line() == {}
    assert times_table([row]).splitlines()[2].endswith("| 0.000 |  |")
