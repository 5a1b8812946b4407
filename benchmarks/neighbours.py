"""`python -m benchmarks.neighbours`: what threads gain, and lose to whoever wants their cores.

Decodes with the engine's kernels in one process, in every form of a team (one thread, two, two
that stay on a core each, two that do not spin while they wait), alone, beside a process that never
rests, and where somebody takes one core for half of the time, as a hypervisor does that has sold it
twice. Who takes it is asked first if the system allows it (`has_priority` of a round); if not, it
is one more process that wants the core. Forms and neighbours take turns within a round. Writes
benchmarks/results/neighbours-<time>.json with every round and prints the medians in tokens/s.
"""

import argparse
import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from model.config import SearchConfig
from model.loading import Runnable, load_for_decoding
from model.native import kernels
from model.native.network import Int8Network
from service.cli.network.bench import Rounds

ROOT = Path(__file__).resolve().parents[1]
_PRIORITY = b"first\n"
_BUSY = "print(flush=True)\nwhile True: pass"
_THIEF = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except PermissionError:
    print("like anybody", flush=True)
else:
    print("first", flush=True)
while True:
    until = time.monotonic() + 0.004
    while time.monotonic() < until:
        pass
    time.sleep(0.004)
"""
"""Whoever wants a core for 4 of every 8 ms, and is asked first if that is allowed; says whether."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A team.

    Attributes:
        num_threads: The calling one included.
        is_pinned: Each stays on a core of its own.
        spins: Threads look for the next loop for a while before they sleep.
    """

    num_threads: int
    is_pinned: bool = False
    spins: bool = True


FORMS: Mapping[str, Form] = {
    "1 thread": Form(num_threads=1),
    "2 threads": Form(num_threads=2),
    "2 threads, pinned": Form(num_threads=2, is_pinned=True),
    "2 threads, not spinning": Form(num_threads=2, spins=False),
}
NEIGHBOURS: Mapping[str, Sequence[str] | None] = {
    "alone": None,
    "beside a busy process": (_BUSY,),
    "on a stolen core": (_THIEF,),
}


@contextmanager
def neighbour(name: str, core: int) -> Iterator[bool]:
    """One of `NEIGHBOURS`, until the block is left, and whether it is asked before others.

    Args:
        name: Which one.
        core: The one that is stolen.
    """
    code = NEIGHBOURS[name]
    if code is None:
        yield False
        return
    command = [sys.executable, "-c", *code, str(core)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline() == _PRIORITY  # said when it begins
        finally:
            process.kill()


def _threads() -> set[int]:
    """Threads of this process."""
    return {int(thread.name) for thread in Path("/proc/self/task").iterdir()}


@contextmanager
def team_of(network: Int8Network, form: Form, cores: Sequence[int]) -> Iterator[Int8Network]:
    """The network with threads of a form, which are where the form says until the block is left."""
    before = _threads()
    made = kernels.load().team
    number = form.num_threads
    team = made(number) if form.spins else made(number, spin_microseconds=0)
    workers = sorted(_threads() - before)
    if form.is_pinned:
        for thread, core in zip((0, *workers), cores, strict=True):
            os.sched_setaffinity(thread, {core})
    try:
        yield replace(network, team=team)
    finally:
        os.sched_setaffinity(0, cores)


def speed(runnable: Runnable, arguments: argparse.Namespace) -> float:
    """Tokens a second of the rounds that are asked for."""
    search = SearchConfig(beam_size=arguments.beam_size, max_length=arguments.max_length)
    rounds = Rounds(runnable, arguments, search)
    for _ in range(arguments.rounds + 1):
        rounds.run()
    return rounds.num_tokens / rounds.seconds


def measure(
    runnable: Runnable, arguments: argparse.Namespace, cores: Sequence[int]
) -> list[dict[str, object]]:
    """Every turn: its round, form, neighbour, whether that is asked first, and speed."""
    assert isinstance(runnable.network, Int8Network)
    found: list[dict[str, object]] = []
    for turn in range(arguments.turns):
        for other in NEIGHBOURS:
            for name, form in FORMS.items():
                with (
                    neighbour(other, cores[-1]) as has_priority,
                    team_of(runnable.network, form, cores) as network,
                ):
                    fast = speed(replace(runnable, network=network), arguments)
                gc.collect()  # a session holds its team, whose threads end with it
                row = {"turn": turn, "form": name, "neighbour": other}
                row |= {"has_priority": has_priority, "tokens_per_second": round(fast, 1)}
                found.append(row)
    return found


def medians(rows: Sequence[Mapping[str, object]]) -> dict[str, dict[str, float]]:
    """Tokens a second by form and neighbour."""
    speeds: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        of_form = speeds.setdefault(str(row["form"]), {})
        of_form.setdefault(str(row["neighbour"]), []).append(float(str(row["tokens_per_second"])))
    return {
        form: {other: median(values) for other, values in of_form.items()}
        for form, of_form in speeds.items()
    }


def parse_arguments() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--checkpoint", type=Path, help="a random one of base size without it")
    for flag, default in (
        ("--sentences", 8),
        ("--beam-size", 4),
        ("--source-length", 25),
        ("--max-length", 33),
        ("--rounds", 2),
        ("--turns", 3),
    ):
        parser.add_argument(flag, type=int, default=default, help="%(default)s")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> int:
    """Measure, write, print."""
    arguments = parse_arguments()
    started = datetime.now(UTC)
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        print("there is one core; two are needed", file=sys.stderr)
        return 1
    os.sched_setaffinity(0, cores)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = arguments.checkpoint
        if checkpoint is None:
            checkpoint = Path(folder) / "random"
            script = ROOT / "benchmarks" / "random_checkpoint.py"
            subprocess.run([sys.executable, str(script), str(checkpoint)], check=True)
        runnable = load_for_decoding(checkpoint, device="cpu", compute_type="int8", num_threads=1)
        rows = measure(runnable, arguments, cores)
    report = {
        "benchmark": "neighbours",
        "command": describe_command("benchmarks.neighbours", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "rounds": rows,
        "medians": medians(rows),
    }
    path = write_result(arguments.results, "neighbours", started, report)
    if not any(row["has_priority"] for row in rows):
        print("the core was not stolen: nobody had the right to be asked first", file=sys.stderr)
    for form, of_form in medians(rows).items():
        print(form, *(f"{other}: {fast:.0f}" for other, fast in of_form.items()), sep="; ")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
