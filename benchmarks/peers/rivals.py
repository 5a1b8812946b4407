"""The rivals as processes: started once, asked one at a time, watched while they wait.

Owns names, threads and cores, and the pipe's near end. What is asked is `benchmarks.peers.offline`
and `benchmarks.peers.memory`; what answers is `benchmarks.peers.worker`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from benchmarks.peers import isa
from benchmarks.peers.engines import EngineName, Settings
from benchmarks.peers.models import ROOT
from benchmarks.peers.work import Work

DRAGOMAN_INT8 = "Dragoman int8"
DRAGOMAN_FLOAT32 = "Dragoman float32"
CTRANSLATE2 = "CTranslate2"
HUGGINGFACE = "Hugging Face float32"
MARIAN = "Marian int8"
MAX_THREADS = 2
DEFAULT_ROWS = 128


def pin() -> list[int]:
    """Keep this process, and all that it starts, to at most two of its cores; which those are."""
    cores = sorted(os.sched_getaffinity(0))[:MAX_THREADS]
    os.sched_setaffinity(0, cores)
    return cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Who a rival is.

    Attributes:
        engine: Which, or "marian", which has a worker of its own.
        compute_type: Dragoman's; CTranslate2 and Marian have it in their settings.
        settings: Those it starts with.
        python: The interpreter that it runs in.
    """

    name: str
    engine: EngineName | Literal["marian"]
    compute_type: Literal["int8", "float32"]
    settings: Settings
    python: str = sys.executable


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One timed run.

    Attributes:
        seconds: From prepared input to answers.
        num_tokens: Target tokens with EOS.
        targets: Target ids, if they were asked for.
    """

    seconds: float
    num_tokens: int
    targets: list[list[int]] | None = None


def ctranslate2_settings(
    compute_type: str = "int8",
    *,
    inter_threads: int = 1,
    intra_threads: int = 1,
    max_batch_size: int = 0,
    batch_type: str = "examples",
) -> Settings:
    """What can be chosen about CTranslate2."""
    return {
        "compute_type": compute_type,
        "inter_threads": inter_threads,
        "intra_threads": intra_threads,
        "max_batch_size": max_batch_size,
        "batch_type": batch_type,
    }


def all_specs(num_threads: int) -> list[Spec]:
    """Everyone who takes part."""
    rows: Settings = {"max_rows": DEFAULT_ROWS}
    rival = ctranslate2_settings(intra_threads=num_threads)
    return [
        Spec(name=DRAGOMAN_INT8, engine="dragoman", compute_type="int8", settings=rows),
        Spec(name=DRAGOMAN_FLOAT32, engine="dragoman", compute_type="float32", settings=rows),
        Spec(name=CTRANSLATE2, engine="ctranslate2", compute_type="int8", settings=rival),
        Spec(name=HUGGINGFACE, engine="huggingface", compute_type="float32", settings={}),
    ]


def marian_spec(python: str) -> Spec:
    """Marian, in an interpreter that has pymarian."""
    settings: Settings = {"compute_type": "int8", "mini_batch": 32, "maxi_batch": 1}
    return Spec(name=MARIAN, engine="marian", compute_type="int8", settings=settings, python=python)


class Rival:
    """The near end of a rival's process."""

    def __init__(self, spec: Spec, process: "subprocess.Popen[str]") -> None:
        self.spec = spec
        self._process = process
        self._watched = psutil.Process(process.pid)

    def ask(self, command: str, **values: object) -> dict[str, object]:
        """Ask and wait for the answer.

        Raises:
            RuntimeError: The process has left; what it said is on standard error.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"command": command, **values}) + "\n")
        self._process.stdin.flush()
        return self.read()

    def read(self) -> dict[str, object]:
        """The next answer.

        Raises:
            RuntimeError: There is none.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self.spec.name} has left")
        found: dict[str, object] = json.loads(line)
        return found

    def translate(self, work: Work, settings: Settings, *, with_targets: bool = False) -> Timing:
        """Let it translate."""
        found = self.ask(
            "translate", work=work.message(), settings=settings, with_targets=with_targets
        )
        return Timing(**found)  # type: ignore[arg-type]  # the worker's own message

    def cpu_seconds(self) -> float:
        """Processor time of all its threads so far."""
        times = self._watched.cpu_times()
        return float(times.user + times.system)


@contextmanager
def running(
    specs: list[Spec], *, models: Path, num_threads: int, is_loaded: bool = True
) -> Iterator[dict[str, Rival]]:
    """Rivals by name, imported and, unless it is left to the caller, loaded."""
    started: dict[str, Rival] = {}
    processes = []
    try:
        for spec in specs:
            process = _start(spec, models, num_threads)
            processes.append(process)
            started[spec.name] = Rival(spec, process)
        for rival in started.values():
            rival.read()
        for rival in started.values() if is_loaded else ():
            rival.ask("load", settings=rival.spec.settings)
        yield started
    finally:
        for process in processes:
            _stop(process)


def _start(spec: Spec, models: Path, num_threads: int) -> "subprocess.Popen[str]":
    if spec.engine == "marian":
        worker = "benchmarks/peers/marian_worker.py"
        command = [spec.python, worker, str(models), str(num_threads)]
    else:
        command = [spec.python, "-m", "benchmarks.peers.worker", spec.engine]
        command += ["--models", str(models), "--compute-type", spec.compute_type]
        command += ["--threads", str(num_threads)]
    # OpenMP's own waiting: threads spin for some milliseconds after their work, then sleep, which
    # is each engine's fastest; whoever waits for its turn is watched, see `offline`.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "MKL_"))}
    environment |= isa.held(os.environ)
    environment |= {"OMP_NUM_THREADS": str(num_threads), "MKL_NUM_THREADS": str(num_threads)}
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def _stop(process: "subprocess.Popen[str]") -> None:
    """End its input, which ends it; insist if it does not."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.close()
        process.wait(10)
    except (BrokenPipeError, subprocess.TimeoutExpired):
        process.kill()
        process.wait()
    finally:
        process.stdout.close()
