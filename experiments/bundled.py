"""Makes the checkpoints that are meant to be bundled: a teacher, its translations, two students.

    python experiments/bundled.py DATA

trains `en-zh-teacher.yaml`, translates its training text both ways, and trains
`en-zh-student.yaml` and `zh-en-student.yaml` on that, side by side. It is made for one GPU and half
an hour; docs/bundled-models.md is its plan. Every stage can be given alone, and goes on where it
was interrupted. `--quick` shows on any machine that it works, with networks too small to learn.
"""

import argparse
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path

import yaml
from text_files import write_lines

from commands import one_line_errors, run_all
from made_of import checkpoint_digest, digest, read_note, write_note
from model.checkpoint.manifest import CheckpointFiles
from model.train.config.data import DirectionConfig
from model.train.config.experiment import read_experiment
from model.train.data.parallel import find_text, read_lines
from model.train.files import whole_file
from model.train.saved.retention import CHECKPOINT_FOLDER
from model.train.saved.state import has_state

HERE = Path(__file__).parent
FOLDER = Path("runs/bundled")  # the students' experiments name it
TEACHER = "en-zh-teacher"
STUDENTS = ("en-zh-student", "zh-en-student")
STAGES = ("teacher", "text", "students")
ACCOUNTS = ("report.md", "curves.png", "metrics.jsonl", "experiment.yaml")
"""What is kept of every run, besides its card or its checkpoint."""

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
    parser.add_argument("data", type=Path, help="folder that holds en-zh/ and zh-en/")
    parser.add_argument(
        "--stages", nargs="+", choices=STAGES, default=STAGES, help="all, unless some are named"
    )
    parser.add_argument("--keep", type=Path, help="folder for an archive of each run")
    parser.add_argument(
        "--threads", type=int, help="CPU threads of each command; without it they share the cores"
    )
    parser.add_argument("--quick", action="store_true", help="shows that it works, no more")
    arguments = parser.parse_args()
    for stage in STAGES:
        if stage in arguments.stages:
            run_stage(stage, arguments)


def run_stage(stage: str, arguments: argparse.Namespace) -> None:
    """Run one stage, and keep what there is of it, even if it fails."""
    if stage == "text":
        run_all(with_threads(translations(arguments.data), arguments.threads))
        hand_out(arguments.data)
        return
    names = (TEACHER,) if stage == "teacher" else STUDENTS
    commands = [training(name, arguments.data, is_quick=arguments.quick) for name in names]
    try:
        run_all(with_threads(commands, arguments.threads))
    finally:
        if arguments.keep is not None:
            keep(names, arguments.keep)


def with_threads(commands: Sequence[Sequence[str]], num_threads: int | None) -> list[list[str]]:
    """Commands that do not take each other's cores while they compute on the CPU."""
    shared = max(1, len(os.sched_getaffinity(0)) // max(1, len(commands)))
    threads = str(shared if num_threads is None else num_threads)
    return [[*words, "--threads", threads] for words in commands]


def training(name: str, data: Path, *, is_quick: bool) -> list[str]:
    """The command that trains an experiment from where it stands."""
    output = FOLDER / name
    experiment = quick_experiment(name) if is_quick else HERE / f"{name}.yaml"
    words = ["train", str(experiment), "--data", str(data), "--output", str(output)]
    return [*words, "--resume"] if has_state(output) else words


def quick_experiment(name: str) -> Path:
    """The experiment with `QUICK` written over it."""
    document = yaml.safe_load((HERE / f"{name}.yaml").read_text(encoding="utf-8"))
    for section, values in QUICK.items():
        document[section].update(values)
    path = FOLDER / f"{name}-quick.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    return path


def translations(data: Path) -> list[list[str]]:
    """The commands that translate what is not translated yet of the training text.

    A direction is one command over all its corpora, laid end to end: starting is dear.
    """
    commands = []
    for direction in read_experiment(HERE / f"{TEACHER}.yaml").data.directions:
        source, target = direction.source_language, direction.target_language
        whole = FOLDER / "text" / f"{direction.name}.{source}.gz"
        texts = source_texts(direction, data)
        write_lines(whole, [line for lines in texts.values() for line in lines])
        checkpoint = FOLDER / TEACHER / CHECKPOINT_FOLDER
        output = whole.with_name(f"{direction.name}.{target}.gz")
        note = whole.with_name(f"{direction.name}.made-of.sha256")
        made_of = {"teacher": checkpoint_digest(checkpoint), "text": digest(whole)}
        if output.exists() and read_note(note) == made_of:
            continue
        output.unlink(missing_ok=True)  # before there is a note that is not its own
        write_note(note, made_of)
        words = ["translate", str(whole), "--checkpoint", str(checkpoint), "--max-rows", "2048"]
        words += ["--from", direction.source, "--to", direction.target]
        commands.append([*words, "--output", str(output)])
    return commands


def hand_out(data: Path) -> None:
    """Put the translations of each corpus where the students' experiments look for them."""
    for direction in read_experiment(HERE / f"{TEACHER}.yaml").data.directions:
        target = direction.target_language
        folder = FOLDER / "text" / direction.name
        lines = iter(read_lines(folder.with_name(f"{direction.name}.{target}.gz")))
        for name, sources in source_texts(direction, data).items():
            write_lines(folder / f"{name}.{target}.gz", [next(lines) for _ in sources])


def source_texts(direction: DirectionConfig, data: Path) -> dict[str, list[str]]:
    """The source side of each training corpus, by name."""
    folder, language = data / direction.folder / "train", direction.source_language
    return {
        corpus.name: read_lines(find_text(folder, corpus.name, language))
        for corpus in direction.train
    }


def keep(names: Sequence[str], folder: Path) -> None:
    """Pack what there is of runs: their accounts, a student's checkpoint, the teacher's card.

    The teacher's weights are four times a student's, and nothing serves them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        card = f"{CHECKPOINT_FOLDER}/{CheckpointFiles().card}"
        weights = card if name == TEACHER else CHECKPOINT_FOLDER
        found = [part for part in (*ACCOUNTS, weights) if (FOLDER / name / part).exists()]
        if not found:
            continue
        with whole_file(folder / f"{name}.tar") as partial, tarfile.open(partial, "w") as archive:
            for part in found:
                archive.add(FOLDER / name / part, arcname=f"{name}/{part}")


if __name__ == "__main__":
    with one_line_errors():
        main()
