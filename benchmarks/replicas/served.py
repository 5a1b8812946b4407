"""Servers with 1 to N replicas under load: requests a second, latency, the front's time, memory.

Owns the measurement of running servers. Clients are in processes of their own where there are many,
so that they are not what is measured.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import psutil

from benchmarks.front import cpu_seconds
from benchmarks.load import Client, Level, run_level
from benchmarks.processes import address_of, end
from benchmarks.served import ROOT, SENTENCES, percentile

_READY_SECONDS = 300.0
_MIB = 2**20
_Row = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One server.

    Attributes:
        replicas: How many.
        num_threads: Threads of each; None leaves the choice to the server.
        fill_rows: None leaves the choice to the server.
        fronts: None: one.
    """

    replicas: int
    num_threads: int | None = None
    fill_rows: int | None = None
    fronts: int | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Its settings."""
        chosen = {
            "REPLICAS": self.replicas,
            "NUM_THREADS": self.num_threads,
            "FILL_ROWS": self.fill_rows,
            "FRONTS": self.fronts,
        }
        return {
            f"DRAGOMAN_{name}": str(value) for name, value in chosen.items() if value is not None
        }


@contextmanager
def serving(
    variant: Variant, *, device: str, checkpoint: str, cache: Path
) -> Iterator[tuple[str, int]]:
    """A server with all replicas: its address and process id."""
    command = [sys.executable, "-m", "service.cli.main", "serve", "--port", "0"]
    command += ["--device", device, "--checkpoint", checkpoint]
    environment = os.environ | variant.environment | {"DRAGOMAN_CACHE": str(cache)}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            url = address_of(process)
            if url is None:
                raise SystemExit("the server did not start; try `dragoman serve` by itself")
            asyncio.run(_wait_complete(url, variant.replicas))
            yield url, process.pid
        finally:
            end(process)


async def _wait_complete(url: str, number: int) -> None:
    client = Client(url)
    async with asyncio.timeout(_READY_SECONDS):
        while json.loads(await client.get("/v1/health"))["replicas"]["ready"] < number:  # noqa: ASYNC110  # nothing tells
            await asyncio.sleep(0.1)
    await client.close()


def _load(url: str, texts: list[str], num_clients: int, seconds: float) -> Level:
    """Clients of one process."""
    return asyncio.run(
        run_level(url, texts, num_clients=num_clients, seconds=seconds, max_requests=10**9)
    )


def run_clients(url: str, *, num_clients: int, seconds: float, num_processes: int) -> Level:
    """All clients, in so many processes; one of them needs none of its own."""
    texts = SENTENCES.read_text(encoding="utf-8").splitlines()
    if num_processes <= 1 or num_clients < num_processes:
        return _load(url, texts, num_clients, seconds)
    parts = [
        num_clients // num_processes + (place < num_clients % num_processes)
        for place in range(num_processes)
    ]
    whole = Level(num_clients=num_clients)
    with ProcessPoolExecutor(num_processes, mp_context=get_context("spawn")) as pool:
        for level in pool.map(
            _load, [url] * num_processes, [texts] * num_processes, parts, [seconds] * num_processes
        ):
            whole.latencies_seconds += level.latencies_seconds
            whole.statuses.update(level.statuses)
            whole.wall_seconds = max(whole.wall_seconds, level.wall_seconds)
    return whole


def memory_of_engines(server: int) -> list[_Row]:
    """MiB of each engine; what is shared counts whole (RSS), in part (PSS) or not (USS)."""
    found = []
    for child in psutil.Process(server).children():
        if "service.engine.worker" in child.cmdline():
            memory = child.memory_full_info()
            found.append(
                {
                    "rss_mib": round(memory.rss / _MIB, 1),
                    "pss_mib": round(memory.pss / _MIB, 1),
                    "uss_mib": round(memory.uss / _MIB, 1),
                }
            )
    return found


def measure(
    variant: Variant,
    *,
    clients: Sequence[int],
    seconds: float,
    num_processes: int,
    device: str,
    checkpoint: str,
) -> list[_Row]:
    """One server at every number of clients."""
    rows: list[_Row] = []
    with (
        tempfile.TemporaryDirectory() as cache,
        serving(variant, device=device, checkpoint=checkpoint, cache=Path(cache)) as (url, server),
    ):
        run_clients(url, num_clients=4, seconds=1.0, num_processes=1)  # a warm-up
        for number in clients:
            before = asyncio.run(cpu_seconds(url))
            level = run_clients(
                url, num_clients=number, seconds=seconds, num_processes=num_processes
            )
            front = asyncio.run(cpu_seconds(url)) - before
            answered = level.statuses[200]
            rows.append(
                {
                    "replicas": variant.replicas,
                    "num_threads": variant.num_threads,
                    "fill_rows": variant.fill_rows,
                    "fronts": variant.fronts,
                    "num_clients": number,
                    "requests_per_second": round(answered / level.wall_seconds, 1),
                    "num_errors": level.statuses.total() - answered,
                    "p50_ms": round(1000 * percentile(level.latencies_seconds, 50), 2),
                    "p99_ms": round(1000 * percentile(level.latencies_seconds, 99), 2),
                    "front_ms_a_request": round(1000 * front / max(answered, 1), 3),
                }
            )
            print(rows[-1], flush=True)
        rows[-1]["engines"] = memory_of_engines(server)
    return rows
