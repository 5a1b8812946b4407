"""The rivals as processes: started once, asked one at a time, watched while they wait.

A rival may have settings whose threads wait actively (`OMP_WAIT_POLICY=ACTIVE`), which a process is
told when it starts: it then has a second process, which is stopped whenever it is not asked, as its
threads would take the cores from whoever is.

Owns names, threads and cores, and the pipe's near end. What is asked is `benchmarks.peers.offline`
and `benchmarks.peers.memory`; what answers is `benchmarks.peers.worker`.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import psutil

from benchmarks.peers import isa
from benchmarks.peers.engines import EngineName, Settings
from benchmarks.peers.models import ROOT
from benchmarks.peers.work import Work
from benchmarks.processes import Lines

DRAGOMAN_INT8 = "Dragoman int8"
DRAGOMAN_FLOAT32 = "Dragoman float32"
CTRANSLATE2 = "CTranslate2"
HUGGINGFACE = "Hugging Face float32"
MARIAN = "Marian int8"
MAX_THREADS = 2
DEFAULT_ROWS = 128
WAIT_POLICY, ACTIVE = "omp_wait_policy", "active"
"""The setting of threads that wait actively; without it they wait as OpenMP has them."""
ANSWER_SECONDS = 900.0
"""For the slowest answer: our float32 over a file, on a machine with other work."""
_STOP_SECONDS = 10.0
_ACTIVELY = {"OMP_WAIT_POLICY": "ACTIVE"}
_Start = Callable[[Mapping[str, str]], "subprocess.Popen[str]"]


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
    waits_actively: bool = False,
) -> Settings:
    """What can be chosen about CTranslate2."""
    waiting = {WAIT_POLICY: ACTIVE} if waits_actively else {}
    return {
        "compute_type": compute_type,
        "inter_threads": inter_threads,
        "intra_threads": intra_threads,
        "max_batch_size": max_batch_size,
        "batch_type": batch_type,
        **waiting,
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


class _Worker:
    """One process of a rival; one that waits actively is stopped between answers."""

    def __init__(
        self, name: str, process: "subprocess.Popen[str]", *, waits_actively: bool
    ) -> None:
        assert process.stdout is not None
        self._name = name
        self._process = process
        self._waits_actively = waits_actively
        self._lines = Lines(process.stdout)
        self._watched = psutil.Process(process.pid)

    def ask(self, question: dict[str, object]) -> dict[str, object]:
        assert self._process.stdin is not None
        if self._waits_actively:
            self._process.send_signal(signal.SIGCONT)
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self.read()

    def read(self) -> dict[str, object]:
        try:
            line = self._lines.next(ANSWER_SECONDS)
        except TimeoutError as error:
            self._process.kill()
            raise RuntimeError(f"the process of {self._name} is silent: {error}") from error
        if not line:
            raise RuntimeError(f"the process of {self._name} has left")
        if self._waits_actively:
            self._process.send_signal(signal.SIGSTOP)
        found: dict[str, object] = json.loads(line)
        return found

    def cpu_seconds(self) -> float:
        times = self._watched.cpu_times()
        return float(times.user + times.system)

    def stop(self) -> None:
        """End its input, which ends it; insist if it does not."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if self._waits_actively:
                process.send_signal(signal.SIGCONT)
            process.stdin.close()
            process.wait(_STOP_SECONDS)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()
        finally:
            process.stdout.close()


class Rival:
    """The near end of a rival's processes.

    Args:
        spec: Who it is.
        start: Starts a process of it with some more variables. The first, which has none, is
            started here.
    """

    def __init__(self, spec: Spec, start: "_Start") -> None:
        self.spec = spec
        self._start = start
        self._usual = _Worker(spec.name, start({}), waits_actively=False)
        self._active: _Worker | None = None

    def ask(self, command: str, **values: object) -> dict[str, object]:
        """Ask its first process, and wait for the answer.

        Raises:
            RuntimeError: The process has left, what it said is on standard error; or it is silent.
        """
        return self._usual.ask({"command": command, **values})

    def wait_ready(self) -> None:
        """Wait until its first process can be asked.

        Raises:
            RuntimeError: As `ask` does.
        """
        self._usual.read()

    def translate(self, work: Work, settings: Settings, *, with_targets: bool = False) -> Timing:
        """Let it translate, in the process that these settings take.

        Raises:
            RuntimeError: As `ask` does.
        """
        worker = self._active_worker() if settings.get(WAIT_POLICY) == ACTIVE else self._usual
        found = worker.ask(
            {
                "command": "translate",
                "work": work.message(),
                "settings": settings,
                "with_targets": with_targets,
            }
        )
        return Timing(**found)  # type: ignore[arg-type]  # the worker's own message

    def cpu_seconds(self) -> float:
        """Processor time of all its threads so far."""
        workers = (self._usual, self._active)
        return sum(worker.cpu_seconds() for worker in workers if worker is not None)

    def stop(self) -> None:
        """End its processes."""
        for worker in (self._usual, self._active):
            if worker is not None:
                worker.stop()

    def _active_worker(self) -> _Worker:
        if self._active is None:
            self._active = _Worker(self.spec.name, self._start(_ACTIVELY), waits_actively=True)
            self._active.read()
        return self._active


@contextmanager
def running(
    specs: list[Spec], *, models: Path, num_threads: int, is_loaded: bool = True
) -> Iterator[dict[str, Rival]]:
    """Rivals by name, imported and, unless it is left to the caller, loaded."""
    started: dict[str, Rival] = {}
    try:
        for spec in specs:
            start = partial(_start, spec, models, num_threads)
            started[spec.name] = Rival(spec, start)
        for rival in started.values():
            rival.wait_ready()
        for rival in started.values() if is_loaded else ():
            rival.ask("load", settings=rival.spec.settings)
        yield started
    finally:
        for rival in started.values():
            rival.stop()


def _start(
    spec: Spec, models: Path, num_threads: int, more: Mapping[str, str]
) -> "subprocess.Popen[str]":
    if spec.engine == "marian":
        worker = "benchmarks/peers/marian_worker.py"
        command = [spec.python, worker, str(models), str(num_threads)]
    else:
        command = [spec.python, "-m", "benchmarks.peers.worker", spec.engine]
        command += ["--models", str(models), "--compute-type", spec.compute_type]
        command += ["--threads", str(num_threads)]
    # OpenMP's own waiting, if nothing else is asked for: threads spin for some milliseconds after
    # their work, then sleep; whoever waits for its turn is watched, see `offline`.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "MKL_"))}
    environment |= isa.held(os.environ)
    environment |= {"OMP_NUM_THREADS": str(num_threads), "MKL_NUM_THREADS": str(num_threads)}
    environment |= more
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
