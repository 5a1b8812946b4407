"""Bulk jobs on a real Ray cluster of this machine, whose workers and drivers are killed."""

import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from model.errors import BulkError
from model.offline.bulk import ray_engine
from model.offline.bulk.output import OutputFolder
from model.offline.bulk.ray_engine import MAX_DEATHS, OWN_CLUSTER, Cluster, run_on_ray
from service.cli.main import main
from support.bulk_jobs import (
    begun_command,
    done_of,
    job_of,
    method_of,
    parts_of,
    sentences,
    task_of,
    told_blocks,
    write_json_lines,
)
from support.forked import free_port
from support.ray_cluster import QUIET, RunningCluster, begun_cluster, workers_below
from support.running_server import ROOT
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]

NUM_ROWS = 60
BLOCK_ROWS = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    yield from begun_cluster([sys.executable], {"PYTHONPATH": str(ROOT)})


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("bulk") / "tiny", pairs=(EN_ZH,))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [{"n": number, "text": text} for number, text in enumerate(sentences(NUM_ROWS))]
    rows[7]["text"] = " ".join(sentences(300))  # a long row among short ones
    return write_json_lines(tmp_path_factory.mktemp("bulk") / "source.jsonl", rows)


@pytest.fixture(scope="module")
def expected(checkpoint: Path, source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the engine of one machine writes."""
    folder = tmp_path_factory.mktemp("bulk") / "expected"
    assert main(["translate", *_arguments(source, folder, checkpoint)]) == 0
    return folder


def _arguments(source: Path, folder: Path, checkpoint: Path) -> list[str]:
    return [
        str(source), str(folder), "--columns", "text", "--checkpoint", str(checkpoint),
        "--beam-size", "2", "--block-rows", str(BLOCK_ROWS),
    ]  # fmt: skip


def _on(cluster: RunningCluster, *more: str) -> list[str]:
    return ["--engine", "ray", "--ray-address", cluster.address, *more]


def _same(folder: Path, expected: Path) -> bool:
    names = {"_SUCCESS", "_bad_rows.jsonl"}
    return (
        parts_of(folder) == parts_of(expected)
        and done_of(folder) == done_of(expected)
        and all((folder / name).read_bytes() == (expected / name).read_bytes() for name in names)
    )


def test_two_workers_write_what_one_machine_writes(
    cluster: RunningCluster, source: Path, checkpoint: Path, expected: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    with begun_command(
        *_arguments(source, folder, checkpoint), *_on(cluster, "--workers", "2"), environment=QUIET
    ) as process:
        assert told_blocks(process, NUM_ROWS) == NUM_ROWS // BLOCK_ROWS
        assert process.wait(60) == 0
    assert _same(folder, expected)


def test_workers_that_are_killed_again_and_again_lose_nothing(
    cluster: RunningCluster, source: Path, checkpoint: Path, expected: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    killed: set[int] = set()
    with begun_command(
        *_arguments(source, folder, checkpoint), *_on(cluster, "--workers", "2"), environment=QUIET
    ) as process:
        for _ in range(4):
            assert told_blocks(process, 2) == 2
            for worker in cluster.workers()[:1]:
                worker.kill()
                killed.add(worker.pid)
        told_blocks(process, NUM_ROWS)
        assert process.wait(120) == 0
    assert len(killed) == 4
    assert _same(folder, expected)


def test_workers_that_hang_are_replaced_and_lose_nothing(
    cluster: RunningCluster, source: Path, checkpoint: Path, expected: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    how = _on(cluster, "--workers", "2", "--hang-seconds", "4")
    with begun_command(*_arguments(source, folder, checkpoint), *how, environment=QUIET) as process:
        assert told_blocks(process, 2) == 2
        stopped = cluster.workers()
        for worker in stopped:
            worker.suspend()
        told_blocks(process, NUM_ROWS)
        assert process.wait(120) == 0
    assert len(stopped) == 2
    assert not psutil.wait_procs(stopped, timeout=60)[1], "Ray kills what does not go by itself"
    assert _same(folder, expected)


def test_drivers_and_workers_that_are_killed_again_and_again_lose_nothing(
    cluster: RunningCluster, source: Path, checkpoint: Path, expected: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    arguments = [*_arguments(source, folder, checkpoint), *_on(cluster, "--workers", "2")]
    done: set[str] = set()
    for _ in range(4):
        with begun_command(*arguments, environment=QUIET) as process:
            assert told_blocks(process, 2) == 2
            cluster.workers()[0].kill()
            assert told_blocks(process, 1) == 1
            process.send_signal(signal.SIGKILL)
        assert done_of(folder) > done
        done = done_of(folder)
        assert not (folder / "_SUCCESS").exists()
    (folder / "part-000001.jsonl").write_bytes(b"half")  # as if a disk had lost it
    with begun_command(*arguments, environment=QUIET) as process:
        assert told_blocks(process, NUM_ROWS) < NUM_ROWS // BLOCK_ROWS
        assert process.wait(60) == 0
    assert _same(folder, expected)


@pytest.mark.parametrize("more", [["--workers", "3"], ["--workers", "1", "--threads", "3"]])
def test_more_than_the_cluster_has_is_one_error(
    cluster: RunningCluster, source: Path, checkpoint: Path, tmp_path: Path, more: list[str]
) -> None:
    arguments = [*_arguments(source, tmp_path / "out", checkpoint), *_on(cluster, *more)]
    with begun_command(*arguments, environment=QUIET) as process:
        assert process.stderr is not None
        asked = f"{more[1]} workers of {more[-1] if len(more) > 2 else 1} CPU each are asked for"
        has = "the Ray cluster has 2 CPU on 1 machine, places for"
        assert process.stderr.read() == f"dragoman: {asked}; {has} {2 if len(more) == 2 else 0}\n"
        assert process.wait(60) == 1


def test_a_job_that_is_told_to_end_says_so_by_its_status(
    cluster: RunningCluster, source: Path, checkpoint: Path, tmp_path: Path
) -> None:
    arguments = [*_arguments(source, tmp_path / "out", checkpoint), *_on(cluster)]
    with begun_command(*arguments, environment=QUIET) as process:
        told_blocks(process, 1)
        process.terminate()
        assert process.wait(60) == 143


class _Deadly:
    """What ends the process that reads it."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (9,)


class _Endless:
    """What holds up the process that reads it."""

    def __reduce__(self) -> tuple[object, tuple[float]]:
        return time.sleep, (1000.0,)


@pytest.mark.parametrize(
    ("control", "hang_seconds", "num_deaths", "reason"),
    [
        (_Deadly(), 0.0, MAX_DEATHS, "no block was finished meanwhile"),
        (_Endless(), 2.0, 2, "did nothing for 2 seconds$"),
    ],
    ids=["dying", "hanging at the start"],
)
def test_workers_that_are_lost_again_and_again_end_the_job(
    cluster: RunningCluster, source: Path, checkpoint: Path, tmp_path: Path,
    *, monkeypatch: pytest.MonkeyPatch, control: object, hang_seconds: float, num_deaths: int,
    reason: str,
) -> None:  # fmt: skip
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(ray_engine, "MAX_DEATHS", num_deaths)
    job = job_of(str(source), names=["text"])
    task = task_of(job, str(tmp_path / "out"), method_of(checkpoint, control=control))
    where = Cluster(
        address=cluster.address, num_workers=2, num_local_cores=2, hang_seconds=hang_seconds
    )
    message = f"^{num_deaths} workers died or hung in succession, and .*{reason}"
    with pytest.raises(BulkError, match=message):
        list(run_on_ray(task, job.blocks, where))


def test_workers_of_a_cluster_that_is_begun_here_have_as_much_priority_as_the_command(
    source: Path, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in OWN_CLUSTER:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)  # and afterwards it is what it was
    monkeypatch.setenv("RAY_AUTH_MODE", QUIET["RAY_AUTH_MODE"])
    job = job_of(str(source), names=["text"], max_rows=30)
    folder = OutputFolder(str(tmp_path / "out"), writer="test")
    task = task_of(job, folder.name, method_of(checkpoint))
    before = {worker.pid for worker in workers_below(os.getpid())}
    where = Cluster(address=None, num_workers=1, num_local_cores=1)
    with folder.begun(job):
        receipts = run_on_ray(task, job.blocks, where)
        first = next(receipts)  # its worker is there until the next one is asked for
        (worker,) = [one for one in workers_below(os.getpid()) if one.pid not in before]
        assert worker.nice() == psutil.Process().nice()
        assert {first.block, *(receipt.block for receipt in receipts)} == {0, 1}


def test_a_checkpoint_that_workers_cannot_use_is_one_error(
    cluster: RunningCluster, source: Path, checkpoint: Path, tmp_path: Path
) -> None:
    arguments = [*_arguments(source, tmp_path / "out", checkpoint), *_on(cluster)]
    wanting = ["--compute-type", "bfloat16"]
    with begun_command(*arguments, *wanting, environment=QUIET) as process:
        assert process.stderr is not None
        told = process.stderr.read()
        assert process.wait(60) == 1
    assert told.startswith("dragoman: compute type is 'bfloat16', which is for GPUs")
    assert told.count("\n") == 1


def test_a_cluster_that_is_not_there_is_one_error(
    source: Path, checkpoint: Path, tmp_path: Path
) -> None:
    arguments = _arguments(source, tmp_path / "out", checkpoint)
    address = f"127.0.0.1:{free_port()}"
    with begun_command(
        *arguments, "--engine", "ray", "--ray-address", address, environment=QUIET
    ) as process:
        assert process.stderr is not None
        told = process.stderr.read()
        assert process.wait(60) == 1
    assert told == f"dragoman: no Ray cluster {address}: Connection refused\n"


def test_a_cluster_without_this_package_is_one_error(
    source: Path, checkpoint: Path, tmp_path: Path
) -> None:
    # The interpreter without `site`: it knows Ray by its path, and no editable installation.
    site = sysconfig.get_paths()["purelib"]
    for other in begun_cluster(
        [sys.executable, "-S"], {"PYTHONPATH": site, "PYTHONNOUSERSITE": "1"}
    ):
        arguments = [*_arguments(source, tmp_path / "out", checkpoint), *_on(other)]
        command = [str(Path(sys.executable).with_name("dragoman")), "translate", *arguments]
        done = subprocess.run(
            command, env={**os.environ, **QUIET}, cwd=tmp_path, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 1
        assert done.stderr.startswith("dragoman: the Ray cluster does not have this package")
        assert done.stderr.count("\n") == 1
