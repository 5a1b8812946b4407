"""Both servers as processes: started with settings, watched while the other one is asked.

Owns command lines, environments and the settings that are tried. Each prints one line with its
address when it can be asked.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.peers import isa
from benchmarks.peers.models import ROOT
from benchmarks.peers.rivals import CTRANSLATE2, DRAGOMAN_INT8
from benchmarks.peers.traffic import Address
from benchmarks.processes import address_of, end
from model.checkpoint.description.config_file import read_manifest

ServerSettings = Mapping[str, int | float]
SERVERS = (DRAGOMAN_INT8, CTRANSLATE2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server.

    Attributes:
        name: Of the rival.
        address: Where it is asked.
        process: Its first process.
    """

    name: str
    address: Address
    process: psutil.Process

    def cpu_seconds(self) -> float:
        """Processor time of it and its children so far."""
        everyone = [self.process, *self.process.children(recursive=True)]
        times = [process.cpu_times() for process in everyone]
        return float(sum(found.user + found.system for found in times))


def candidates(name: str, num_threads: int) -> list[ServerSettings]:
    """Settings that a server may choose from; threads of the network are tried alike."""
    threads = range(1, num_threads + 1)
    if name == DRAGOMAN_INT8:
        return [{"num_threads": count, "max_rows": rows} for count in threads for rows in (64, 128)]
    found: list[ServerSettings] = [
        {
            "intra_threads": count,
            "inter_threads": 1,
            "max_batch_size": size,
            "window_seconds": window,
        }
        for count in threads
        for size, window in ((32, 0.0), (32, 0.01), (64, 0.005))
    ]
    if num_threads > 1:
        found += [
            {
                "intra_threads": 1,
                "inter_threads": num_threads,
                "max_batch_size": size,
                "window_seconds": 0.002,
            }
            for size in (16, 32)
        ]
    return found


@contextmanager
def serving(name: str, models: Path, settings: ServerSettings) -> Iterator[Server]:
    """A server that can be asked; it is stopped on leaving.

    Raises:
        RuntimeError: It did not start; the reason is on standard error.
    """
    if name == DRAGOMAN_INT8:
        module, arguments = "service.cli.main", ["serve", "--port", "0", "--device", "cpu"]
        arguments += ["--compute-type", "int8", "--checkpoint", str(models / "checkpoint")]
        environment = {f"DRAGOMAN_{key.upper()}": str(value) for key, value in settings.items()}
        environment["DRAGOMAN_LOG_LEVEL"] = "error"
        environment["DRAGOMAN_STOPPING"] = "first"  # CTranslate2's rule: equal work
    else:
        module, arguments = "benchmarks.peers.ctranslate2_server", [str(models)]
        for key, value in settings.items():
            arguments += [f"--{key.replace('_', '-')}", str(value)]
        environment = {}
    manifest = read_manifest(models / "checkpoint", verify=False)
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env=_clean_environment() | environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            url = address_of(process)
            if url is None:
                raise RuntimeError(f"the server of {name} did not start")
            address = Address(url=url, target=manifest.pairs[0].target)
            yield Server(name=name, address=address, process=psutil.Process(process.pid))
        finally:
            end(process)


def _clean_environment() -> dict[str, str]:
    """Ours without what would change either server."""
    prefixes = ("DRAGOMAN_", "OMP_", "MKL_", "CT2_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(prefixes)}
    return kept | isa.held(os.environ)
