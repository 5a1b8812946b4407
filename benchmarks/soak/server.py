"""A `dragoman serve` of our own on a free loopback port, and what the system says of it.

Owns the process. Linux only: sizes, files and children are read from /proc.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.processes import STOP_SECONDS, address_of, end

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = ROOT / "checkpoints"
ONE_BUNDLED = BUNDLED / "en-zh-small"
"""Where one is enough: it translates what `traffic` asks for."""


@dataclass(slots=True, kw_only=True)
class Served:
    """A server that was ready.

    Attributes:
        process: The front's.
        url: Where it listens.
        log: Its standard error, if that is a file.
    """

    process: subprocess.Popen[str]
    url: str
    log: Path | None

    @property
    def port(self) -> int:
        """Where it listens on loopback."""
        return int(self.url.rpartition(":")[2])

    def engine_ids(self) -> list[int]:
        """Process ids of its engines; two while checkpoints are replaced."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]

    def resident_bytes(self) -> dict[str, int]:
        """Memory of the front and of its engines."""
        page = os.sysconf("SC_PAGE_SIZE")

        def resident(process_id: int) -> int:
            return page * int(Path(f"/proc/{process_id}/statm").read_text().split()[1])

        return {
            "front": resident(self.process.pid),
            "engine": sum(map(resident, self.engine_ids())),
        }

    def num_files(self) -> int:
        """Files and sockets that the front has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def signal_engine(self, number: signal.Signals) -> bool:
        """Send a signal to the engine; False while there is none."""
        engines = self.engine_ids()
        for engine in engines:
            os.kill(engine, number)
        return bool(engines)

    def stop(self) -> tuple[int, float]:
        """SIGTERM and wait; the exit status and the seconds it took."""
        started = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS), time.perf_counter() - started

    def logged(self, event: str) -> int:
        """How often an event is in the log."""
        assert self.log is not None
        return self.log.read_text(encoding="utf-8").count(f'"event": "{event}"')


@contextmanager
def serving(
    log: Path,
    *,
    checkpoint: Path = BUNDLED,
    errors: IO[str] | None = None,
    checkout: Path = ROOT,
    **settings: object,
) -> Iterator[Served]:
    """A server that is ready; it is gone when the block is left.

    Args:
        log: Where its log goes.
        checkpoint: What it serves.
        errors: Where its log goes instead.
        checkout: Folder of the code that serves.
        settings: Its settings, by name without prefix, in lower case.

    Raises:
        SystemExit: It did not start.
    """
    variables = {f"DRAGOMAN_{name.upper()}": str(value) for name, value in settings.items()}
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    command = [sys.executable, "-m", "service.cli.main", "serve", "--host", "127.0.0.1"]
    command += ["--port", "0", "--checkpoint", str(checkpoint)]
    with (
        log.open("w", encoding="utf-8") as file,
        subprocess.Popen(
            command,
            cwd=checkout,
            env=clean | variables | {"PYTHONPATH": str(checkout)},
            stdout=subprocess.PIPE,
            stderr=errors or file,
            text=True,
        ) as process,
    ):
        try:
            url = address_of(process)
            if url is None:
                raise SystemExit(f"the server did not start:\n{log.read_text(encoding='utf-8')}")
            yield Served(process=process, url=url, log=None if errors else log)
        finally:
            end(process, STOP_SECONDS)
