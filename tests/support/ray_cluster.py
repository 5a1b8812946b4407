"""A real Ray cluster of this machine for tests, on loopback, gone with the test."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import pytest

from support.forked import free_port

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",  # no token in anybody's home: it listens on loopback alone
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


@dataclass(frozen=True)
class RunningCluster:
    """A cluster that has begun.

    Attributes:
        address: Where it is reached.
        process: Its head.
    """

    address: str
    process: "subprocess.Popen[str]"

    def workers(self) -> list[psutil.Process]:
        """Processes that hold the network of a bulk job."""
        return workers_below(self.process.pid)


def workers_below(pid: int) -> list[psutil.Process]:
    """Processes that hold the network of a bulk job, of all that descend from one."""
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        try:
            if "BulkWorker" in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:  # gone meanwhile
            continue
    return found


def begun_cluster(
    python: list[str], environment: dict[str, str], *, num_cores: int = 2
) -> Iterator[RunningCluster]:
    """A cluster that counts so many cores, by this interpreter; what it began ends with it."""
    folder = tempfile.mkdtemp(prefix="ray")  # names of sockets are short
    port = free_port()
    command = [
        *python, "-m", "ray.scripts.scripts", "start", "--head", "--block",
        f"--num-cpus={num_cores}",
        f"--port={port}", "--node-ip-address=127.0.0.1", "--include-dashboard=false",
        "--object-store-memory=80000000", f"--temp-dir={folder}", "--disable-usage-stats",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, **QUIET, **environment}, cwd=folder,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        told = []
        while line := process.stdout.readline():
            told.append(line)
            if "Ray runtime started" in line:
                break
        else:
            pytest.fail("".join(told))
        yield RunningCluster(f"127.0.0.1:{port}", process)
    finally:
        children = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        process.communicate(timeout=60)
        for child in children:
            if child.is_running():
                child.kill()
        shutil.rmtree(folder, ignore_errors=True)
