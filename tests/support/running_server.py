"""A real server in a process of its own: `dragoman serve` on a free port."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 60
SMALL_SERVER = {"DRAGOMAN_NUM_THREADS": "1", "DRAGOMAN_PACKED_BYTES": "0"}
"""Settings of a server that is tested: one thread, and nothing kept in the user's own cache."""
POLL_SECONDS = 0.02
"""Between two looks at a server, which leaves the processor to it."""


@dataclass(slots=True, kw_only=True)
class RunningServer:
    """A started `dragoman serve`."""

    process: subprocess.Popen[str]
    port: int
    log: Path
    announcement: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, *, timeout: float = 60.0) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=timeout, trust_env=False)

    def wait_ready(self) -> str:
        """Block until it says where it listens; the line it prints."""
        assert self.process.stdout is not None
        self.announcement = self.process.stdout.readline()
        assert self.announcement, f"it did not start: {self.log.read_text()}"
        return self.announcement

    def wait_listening(self) -> None:
        """Block until connections are accepted, which is before it is ready."""
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(0.02)
                    raise AssertionError(f"it has left: {self.log.read_text()}") from None
            else:
                return

    def metrics(self) -> dict[str, float]:
        """Samples by name, those with labels as `name{label=value,…}`.

        What is told apart by pair and checkpoint is there without these too: summed over them.
        """
        with self.client() as client:
            text = client.get("/metrics").text
        samples: dict[str, float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                samples[_name(sample.name, sample.labels)] = sample.value
                if "pair" in sample.labels:
                    rest = {
                        label: value
                        for label, value in sample.labels.items()
                        if label not in ("pair", "checkpoint")
                    }
                    name = _name(sample.name, rest)
                    samples[name] = samples.get(name, 0.0) + sample.value
        return samples

    def wait_metric(self, name: str, value: float) -> None:
        """Ask for the metrics until one is as high as this; pytest's timeout is the bound."""
        while self.metrics()[name] < value:
            time.sleep(POLL_SECONDS)

    def wait_logged(self, words: str) -> str:
        """Read the log until these are in it; its whole lines. pytest's timeout is the bound.

        A request's own line is written after its answer was sent.
        """
        while words not in (log := self.log.read_text().rpartition("\n")[0]):
            time.sleep(POLL_SECONDS)
        return log

    def engine_ids(self) -> list[int]:
        """Process ids of its engines: one, or two while checkpoints are replaced."""
        number = self.process.pid
        tasks = Path(f"/proc/{number}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Block until it has left; its exit status."""
        return self.process.wait(STOP_SECONDS)


def _name(name: str, labels: Mapping[str, str]) -> str:
    """`name{label=value,…}`."""
    listed = ",".join(f"{label}={value}" for label, value in sorted(labels.items()))
    return f"{name}{{{listed}}}" if listed else name


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def starting_server(
    checkpoint: Path, log: Path, *flags: str, folder: Path = ROOT, **environment: str
) -> Iterator[RunningServer]:
    """A server that may not be ready yet; it is stopped on leaving, whatever happened.

    It is started in `folder`, of which it imports nothing: like the command, not like `-m`.
    """
    port = free_port()
    clean = {name: value for name, value in os.environ.items() if "DRAGOMAN_" not in name}
    command = [sys.executable, "-P", "-m", "service.cli.main", "serve", "--device", "cpu"]
    command += ["--port", str(port), "--checkpoint", str(checkpoint), *flags]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command,
            cwd=folder,
            env=clean | SMALL_SERVER | environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        server = RunningServer(process=process, port=port, log=log)
        try:
            yield server
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def running_server(
    checkpoint: Path, log: Path, *flags: str, folder: Path = ROOT, **environment: str
) -> Iterator[RunningServer]:
    """A server that is ready."""
    with starting_server(checkpoint, log, *flags, folder=folder, **environment) as server:
        server.wait_ready()
        yield server
