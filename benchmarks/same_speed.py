"""`python -m benchmarks.same_speed OLD NEW`: are two checkouts as fast as each other?

Both run the same checkpoint, the new one's unless --checkpoint names another, in turns: `dragoman
bench` in some settings, then the load of `benchmarks.served`. Prints the medians and the median of
the quotients within each round, and writes benchmarks/results/same-speed-<time>.json. Both
checkouts need their own kernels, and run in this interpreter.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result

SETTINGS: Mapping[str, Sequence[str]] = {
    "int8, 1 sentence, beam 4": ("--sentences", "1"),
    "int8, 8 sentences, beam 4": (),
    "int8, 32 sentences, beam 4": ("--sentences", "32"),
    "int8, 32 sentences, greedy": ("--sentences", "32", "--beam-size", "1"),
    "float32, 8 sentences, beam 4": ("--compute-type", "float32"),
}
CLIENTS = (1, 8, 32)
_SPEED = re.compile(r"(\d+) tokens/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One setting.

    Attributes:
        name: For people.
        unit: Of the speeds.
        old: Speed of the old checkout in every round.
        new: That of the new one.
    """

    name: str
    unit: str
    old: tuple[float, ...]
    new: tuple[float, ...]

    @property
    def quotient(self) -> float:
        """New by old: the median of the rounds'."""
        return median(new / old for old, new in zip(self.old, self.new, strict=True))


def library_speed(checkout: Path, checkpoint: Path, flags: Sequence[str], num_rounds: int) -> float:
    """Target tokens a second that `dragoman bench` tells."""
    command = [sys.executable, "-m", "service.cli.main", "bench", str(checkpoint), *flags]
    command += ["--rounds", str(num_rounds)]
    return spoken_speed(_run(checkout, command))


def spoken_speed(line: str) -> float:
    """The speed in the line of `dragoman bench`.

    Raises:
        ValueError: It has none.
    """
    found = _SPEED.search(line)
    if found is None:
        raise ValueError(f"dragoman bench said {line!r}, without tokens/s")
    return float(found[1])


def served_speeds(checkout: Path, checkpoint: Path, seconds: float) -> dict[int, float]:
    """Sentences a second, by number of clients."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.served", "--checkpoint", str(checkpoint)]
        command += ["--seconds", str(seconds), "--results", folder, "--clients"]
        _run(checkout, [*command, *map(str, CLIENTS)], may_fail=True)  # 1: a mark was missed
        (path,) = Path(folder).iterdir()
        levels = json.loads(path.read_text(encoding="utf-8"))["levels"]
    return {level["num_clients"]: level["sentences_per_second"] for level in levels}


def _run(checkout: Path, command: Sequence[str], *, may_fail: bool = False) -> str:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        command, cwd=checkout, env=environment, check=not may_fail, capture_output=True, text=True
    )
    return done.stdout


def compare_libraries(
    old: Path, new: Path, checkpoint: Path, *, num_rounds: int, num_threads: int | None
) -> Iterator[Compared]:
    """All settings; who goes first changes with every round."""
    threads = () if num_threads is None else ("--threads", str(num_threads))
    for name, setting in SETTINGS.items():
        flags = (*setting, *threads)
        speeds: dict[Path, list[float]] = {old: [], new: []}
        for number in range(num_rounds):
            for checkout in (old, new) if number % 2 else (new, old):
                speeds[checkout].append(library_speed(checkout, checkpoint, flags, 10))
        yield _compared(name, "tokens/s", speeds[old], speeds[new])


def compare_servers(
    old: Path, new: Path, checkpoint: Path, *, num_rounds: int, seconds: float
) -> Iterator[Compared]:
    """All numbers of clients; who goes first changes with every round."""
    served: dict[Path, list[dict[int, float]]] = {old: [], new: []}
    for number in range(num_rounds):
        for checkout in (old, new) if number % 2 else (new, old):
            served[checkout].append(served_speeds(checkout, checkpoint, seconds))
    for clients in CLIENTS:
        before, after = ([one[clients] for one in served[checkout]] for checkout in (old, new))
        yield _compared(f"served, {clients} clients", "sentences/s", before, after)


def _compared(name: str, unit: str, old: Sequence[float], new: Sequence[float]) -> Compared:
    found = Compared(name=name, unit=unit, old=tuple(old), new=tuple(new))
    print(
        f"{name}: {median(old):.0f} and {median(new):.0f} {unit}, {found.quotient:.2f}×", flush=True
    )
    return found


def main() -> None:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", type=Path, metavar="OLD", help="folder of a checkout")
    parser.add_argument("new", type=Path, metavar="NEW", help="folder of another")
    parser.add_argument("--checkpoint", type=Path, help="what both run")
    parser.add_argument(
        "--ways", nargs="+", choices=("library", "http"), default=("library", "http")
    )
    parser.add_argument("--rounds", type=int, default=5, help="of every setting (%(default)s)")
    parser.add_argument("--threads", type=int, help="of the library (dragoman bench's default)")
    parser.add_argument("--seconds", type=float, default=4.0, help="of load a level (%(default)s)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    old, new = arguments.old.resolve(), arguments.new.resolve()
    checkpoint = (arguments.checkpoint or new / "checkpoints" / "en-zh-small").resolve()
    started = datetime.now(UTC)
    machine = describe_machine()
    compared: list[Compared] = []
    num_rounds = arguments.rounds
    if "library" in arguments.ways:
        threads = arguments.threads
        compared += compare_libraries(
            old, new, checkpoint, num_rounds=num_rounds, num_threads=threads
        )
    if "http" in arguments.ways:
        seconds = arguments.seconds
        compared += compare_servers(old, new, checkpoint, num_rounds=num_rounds, seconds=seconds)
    result = {
        "benchmark": "same-speed",
        "command": describe_command("benchmarks.same_speed", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": machine,
        "compared": [asdict(one) | {"quotient": round(one.quotient, 3)} for one in compared],
    }
    path = write_result(arguments.results, "same-speed", started, result)
    print(path)


if __name__ == "__main__":
    main()
