"""Makes the checkpoints that are meant to be bundled: a teacher, its translations, two students.

    python experiments/bundled.py DATA

trains `en-zh-teacher.yaml`, translates its training text both ways, and trains
`en-zh-student.yaml` and `zh-en-student.yaml` on that, side by side. It is made for one GPU and half
an hour; docs/bundled-models.md is its plan. Every stage can be given alone, and goes on where it
was interrupted. `--quick` shows on any machine that it works, with networks too small to learn.
"""

import argparse
import gzip
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

from model.train.data import find_text, read_lines
from model.train.experiment import read_experiment

HERE = Path(__file__).parent
FOLDER = Path("runs/bundled")  # the students' experiments name it
TEACHER = "en-zh-teacher"
STUDENTS = ("en-zh-student", "zh-en-student")
STAGES = ("teacher", "text", "students")

QUICK = {
    "data": {"filters": {"drop_blank": True}},
    "network": {
        "d_model": 32,
        "num_heads": 2,
        "d_ff": 64,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "dropout": 0.0,
    },
    "vocabulary": {"kind": "bpe", "size": 330},
    "optimiser": {"ema_decay": 0.5},
    "schedule": {"peak": 1e-2, "warmup_updates": 5},
    "run": {
        "max_updates": 80,
        "batch_tokens": 512,
        "log_every_updates": 20,
        "snapshot_every_updates": 20,
        "average_counts": [2],
    },
}
"""What `--quick` changes in every experiment."""


def main() -> None:
    """Run the stages that are asked for, in their order."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="folder that holds en-zh/")
    parser.add_argument(
        "--stages", nargs="+", choices=STAGES, default=STAGES, help="all, unless some are named"
    )
    parser.add_argument("--keep", type=Path, help="folder for one archive of each student")
    parser.add_argument("--quick", action="store_true", help="shows that it works, no more")
    arguments = parser.parse_args()
    if "teacher" in arguments.stages:
        train([TEACHER], arguments.data, is_quick=arguments.quick)
    if "text" in arguments.stages:
        translate_all(arguments.data)
    if "students" in arguments.stages:
        train(STUDENTS, arguments.data, is_quick=arguments.quick)
        if arguments.keep is not None:
            keep(arguments.keep)


def train(names: Sequence[str], data: Path, *, is_quick: bool) -> None:
    """Train experiments side by side, each from where it stands."""
    commands = []
    for name in names:
        output = FOLDER / name
        experiment = quick_experiment(name) if is_quick else HERE / f"{name}.yaml"
        words = ["train", str(experiment), "--data", str(data), "--output", str(output)]
        if any(output.glob("state*.pt")):
            words.append("--resume")
        commands.append(words)
    run_all(commands)


def quick_experiment(name: str) -> Path:
    """The experiment with `QUICK` written over it."""
    document = yaml.safe_load((HERE / f"{name}.yaml").read_text(encoding="utf-8"))
    for section, values in QUICK.items():
        document[section].update(values)
    path = FOLDER / f"{name}-quick.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    return path


def translate_all(data: Path) -> None:
    """The teacher's translations of each corpus, where the students' experiments look for them.

    A direction is one command over all its corpora, laid end to end: starting is dear.
    """
    directions = read_experiment(HERE / f"{TEACHER}.yaml").data.directions
    commands, sizes = [], {}
    for direction in directions:
        source, target = direction.source_language, direction.target_language
        texts = {
            corpus.name: read_lines(
                find_text(data / direction.folder / "train", corpus.name, source)
            )
            for corpus in direction.train
        }
        sizes[direction.name] = {name: len(lines) for name, lines in texts.items()}
        whole = FOLDER / "text" / f"{direction.name}.{source}.gz"
        write_lines(whole, [line for lines in texts.values() for line in lines])
        words = ["translate", str(whole), "--checkpoint", str(FOLDER / TEACHER / "checkpoint")]
        words += ["--from", direction.source, "--to", direction.target, "--max-rows", "2048"]
        commands.append([*words, "--output", str(whole.with_name(f"{direction.name}.{target}.gz"))])
    run_all(commands)
    for direction in directions:
        target = direction.target_language
        folder = FOLDER / "text" / direction.name
        lines = iter(read_lines(folder.with_name(f"{direction.name}.{target}.gz")))
        for name, size in sizes[direction.name].items():
            write_lines(folder / f"{name}.{target}.gz", [next(lines) for _ in range(size)])


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write a packed file; the same lines make the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=1, mtime=0))


def run_all(commands: Sequence[Sequence[str]]) -> None:
    """Run `dragoman` commands side by side; when one fails, the others are stopped too."""
    program = [sys.executable, "-m", "service.cli.main"]
    running = [subprocess.Popen([*program, *words]) for words in commands]  # noqa: S603  # our own
    try:
        while any(process.poll() is None for process in running):
            for process, words in zip(running, commands, strict=True):
                _check(process, words)
            time.sleep(0.2)
        for process, words in zip(running, commands, strict=True):
            _check(process, words)
    finally:
        for process in running:
            process.terminate()  # nothing, where it has ended
            process.wait()


def _check(process: "subprocess.Popen[bytes]", words: Sequence[str]) -> None:
    if status := process.poll():
        raise SystemExit(f"dragoman {' '.join(words)}: exit status {status}")


def keep(folder: Path) -> None:
    """Pack each student's checkpoint and report."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in STUDENTS:
        with tarfile.open(folder / f"{name}.tar", "w") as archive:
            for part in ("checkpoint", "report.md", "curves.png"):
                if (FOLDER / name / part).exists():
                    archive.add(FOLDER / name / part, arcname=f"{name}/{part}")


if __name__ == "__main__":
    main()
