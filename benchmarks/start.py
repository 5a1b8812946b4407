"""`python -m benchmarks.start`: how long the first translation takes, from command to text.

Measures `dragoman translate` of one line, a server until it is ready, and CTranslate2's Python
(import, load, one line) on the same weights, each in a new process and in turns; writes
benchmarks/results/start-<time>.json with every run, and prints medians.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.machine import describe_command, describe_machine
from benchmarks.processes import end
from benchmarks.results_file import RESULTS, write_result

ROOT = Path(__file__).resolve().parents[1]
CHECKPOINT = ROOT / "checkpoints" / "en-de-small"
TEXT = "Where is the station?"
MARKS = {"translate": 1.0, "serve": 2.0}
"""Seconds that a median may take."""
_MOST_SECONDS = 120.0
_CTRANSLATE2 = """
import sys
import ctranslate2
import sentencepiece

folder, pieces, text, threads = sys.argv[1:]
source = sentencepiece.SentencePieceProcessor(model_file=pieces)
translator = ctranslate2.Translator(folder, compute_type="int8", intra_threads=int(threads))
tokens = [">>de<<", *source.encode(text, out_type=str), "</s>"]
found = translator.translate_batch([tokens], beam_size=4)[0].hypotheses[0]
print(source.decode(found))
"""

Run = Mapping[str, float]


def timed(command: Sequence[str], environment: Mapping[str, str]) -> Run:
    """Seconds of a command, its processor's seconds, and the most memory that it had.

    Raises:
        CalledProcessError: It failed.
    """
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return {
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,
    }


def until_ready(environment: Mapping[str, str]) -> Run:
    """Seconds from the command to the first 200 of /readyz.

    Raises:
        TimeoutError: The server did not get ready.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "service.cli.main", "serve", "--port", str(port)]
    command += ["--checkpoint", str(CHECKPOINT)]
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while not _is_ready(port):
            if process.poll() is not None or time.perf_counter() - started > _MOST_SECONDS:
                raise TimeoutError(f"the server was not ready within {_MOST_SECONDS:g} s")
            time.sleep(0.005)
        return {"seconds": time.perf_counter() - started}
    finally:
        end(process)


def _is_ready(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1) as reply:
            return bool(reply.status == 200)
    except (URLError, OSError):
        return False


def exported(folder: Path) -> tuple[Path, Path]:
    """The checkpoint as a CTranslate2 model, and the file of its pieces."""
    target = folder / "ctranslate2"
    flags = ["--to", "ctranslate2", "--quantization", "int8"]
    command = [sys.executable, "-m", "service.cli.main", "export", *flags]
    command += [str(CHECKPOINT), str(target)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return target, CHECKPOINT / "source.spm"


def measure(num_runs: int, threads: int) -> dict[str, list[Run]]:
    """All runs of each, in turns; the first of each, which fills the page cache, is left out."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(threads)}
    ours = [sys.executable, "-m", "service.cli.main", "translate", "--from", "en", "--to", "de"]
    ours += ["--checkpoint", str(CHECKPOINT), "--compute-type", "int8", "--text", TEXT]
    with tempfile.TemporaryDirectory() as folder:
        model, pieces = exported(Path(folder))
        theirs = [sys.executable, "-c", _CTRANSLATE2, str(model), str(pieces), TEXT, str(threads)]
        tasks: dict[str, Callable[[], Run]] = {
            "translate": lambda: timed(ours, environment),
            "ctranslate2": lambda: timed(theirs, environment),
            "serve": lambda: until_ready(environment),
        }
        runs: dict[str, list[Run]] = {name: [] for name in tasks}
        for number in range(num_runs + 1):
            for name, task in tasks.items():
                found = task()
                if number > 0:
                    runs[name].append(found)
    return runs


def medians(runs: Mapping[str, Sequence[Run]]) -> dict[str, dict[str, float]]:
    """The median of every figure of every task."""
    return {
        name: {key: statistics.median(run[key] for run in several) for key in several[0]}
        for name, several in runs.items()
    }


def missed_marks(found: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Marks that the medians miss, in words."""
    return [
        f"{name}: {found[name]['seconds']:.2f} s, at most {most:g} s"
        for name, most in MARKS.items()
        if found[name]["seconds"] > most
    ]


def main() -> int:
    """Measure, write, judge."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=11, help="of each (%(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="of each (%(default)s)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    started = datetime.now(UTC)
    runs = measure(arguments.runs, arguments.threads)
    found = medians(runs)
    report = {
        "benchmark": "start",
        "command": describe_command("benchmarks.start", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "runs": runs,
        "medians": found,
        "missed_marks": missed_marks(found),
    }
    path = write_result(arguments.results, "start", started, report)
    for name, figures in found.items():
        print(name, *(f"{key} {value:.2f}" for key, value in figures.items()))
    print(path)
    for mark in report["missed_marks"]:
        print(f"missed: {mark}", file=sys.stderr)
    return 1 if report["missed_marks"] else 0


if __name__ == "__main__":
    sys.exit(main())
