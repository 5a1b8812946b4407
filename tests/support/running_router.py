"""A real router in a process of its own: `dragoman route` on a free port."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.running_server import ROOT, STOP_SECONDS, RunningServer, free_port


@contextmanager
def running_router(
    groups: Mapping[str, str], log: Path, *, names: Path | None = None, **environment: str
) -> Iterator[RunningServer]:
    """A router that listens; its groups need not answer yet. It is stopped on leaving.

    Args:
        groups: Their URLs by name.
        log: Where its log goes.
        names: A file with the addresses of each name, for `support.named_router`.
        environment: Its settings.
    """
    port = free_port()
    clean = {name: value for name, value in os.environ.items() if "DRAGOMAN_" not in name}
    listed = [f"{name}={url}" for name, url in groups.items()]
    if names is None:
        command = [sys.executable, "-m", "service.cli.main", "route", "--port", str(port)]
        command += [f"--group={one}" for one in listed]
    else:
        clean["PYTHONPATH"] = str(ROOT / "tests")
        command = [sys.executable, "-m", "support.named_router", str(names), str(port), *listed]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=clean | environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        router = RunningServer(process=process, port=port, log=log)
        try:
            router.wait_ready()
            yield router
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
