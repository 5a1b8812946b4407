"""Trains the shapes that docs/results.md compares: deep and shallow students of one teacher.

    python experiments/shapes.py DATA --teacher runs/multi30k-de-en

translates the training text of `multi30k-de-en-student.yaml` with the teacher, unless that is done,
and trains that experiment once for every shape, one after the other, each from where it stands.
`--shapes` names some of them, so that several can run side by side: one translates, the others wait
for it. `python -m benchmarks.shapes` measures what they trained.
"""

import argparse
import fcntl
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from model.checkpoint.checksums import CHECKSUMS_FILE
from model.train.data import find_text

HERE = Path(__file__).parent
FOLDER = Path("runs/shapes")
BASE = "multi30k-de-en-student"
SHAPES = ("3-3", "2-1", "4-1", "6-1")
"""Encoder and decoder layers."""


def main() -> None:
    """Translate, then train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="folder that holds multi30k/")
    parser.add_argument("--teacher", type=Path, required=True, help="folder of the teacher's run")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES, help="only these")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (%(default)s)")
    arguments = parser.parse_args()
    document = yaml.safe_load((HERE / f"{BASE}.yaml").read_text(encoding="utf-8"))
    FOLDER.mkdir(parents=True, exist_ok=True)
    data = document["data"]
    source = find_text(
        arguments.data / data["folder"] / "train", data["train"][0]["name"], data["source_language"]
    )
    text = translate(source, arguments.teacher / "checkpoint")
    for shape in arguments.shapes:
        num_encoder_layers, num_decoder_layers = map(int, shape.split("-"))
        name = f"{BASE}-{shape}"
        document["name"] = name
        document["data"]["train"][0]["target_file"] = str(text)
        document["network"]["num_encoder_layers"] = num_encoder_layers
        document["network"]["num_decoder_layers"] = num_decoder_layers
        experiment = FOLDER / f"{name}.yaml"
        experiment.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
        output = FOLDER / name
        flags: Sequence[str] = ("--resume",) if any(output.glob("state*.pt")) else ()
        dragoman(
            "train",
            *(str(experiment), "--data", str(arguments.data), "--output", str(output)),
            *("--threads", str(arguments.threads), *flags),
        )


def translate(source: Path, checkpoint: Path) -> Path:
    """What the teacher writes for `source`; made now unless it is there."""
    text, note = FOLDER / "text.gz", FOLDER / "teacher.sha256"
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            teacher = (checkpoint / CHECKSUMS_FILE).read_bytes()
        except OSError as error:
            raise SystemExit(f"{error.filename}: {error.strerror}") from error
        if not text.exists():
            note.write_bytes(teacher)
            words = (str(source), "--checkpoint", str(checkpoint), "--output", str(text))
            dragoman("translate", *words)
        elif not note.exists() or note.read_bytes() != teacher:
            raise SystemExit(
                f"{text} was not written by {checkpoint}; to begin anew, move {FOLDER} away, whose"
                " students have another teacher"
            )
    return text


def dragoman(*words: str) -> None:
    """Run a sub-command; the script ends when it fails."""
    command = [sys.executable, "-m", "service.cli.main", *words]
    status = subprocess.run(command, check=False).returncode  # noqa: S603  # our own
    if status:
        raise SystemExit(f"dragoman {' '.join(words)}: exit status {status}")


if __name__ == "__main__":
    main()
