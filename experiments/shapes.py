"""Trains the shapes that docs/results.md compares: deep and shallow students of one teacher.

    python experiments/shapes.py DATA --teacher runs/multi30k-de-en

translates the training text of `multi30k-de-en-student.yaml` with the teacher, unless that is done,
and trains that experiment once for every shape, one after the other, each from where it stands.
`--shapes` names some of them, so that several can run side by side. `python -m benchmarks.shapes`
measures what they trained.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

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
    text = FOLDER / "text.gz"
    if not text.exists():
        source = find_text(
            arguments.data / document["data"]["folder"] / "train",
            document["data"]["train"][0]["name"],
            document["data"]["source_language"],
        )
        checkpoint = arguments.teacher / "checkpoint"
        partial = text.with_name("partial.gz")
        dragoman(
            "translate", str(source), "--checkpoint", str(checkpoint), "--output", str(partial)
        )
        partial.rename(text)
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


def dragoman(*words: str) -> None:
    """Run a sub-command; the script ends when it fails."""
    command = [sys.executable, "-m", "service.cli.main", *words]
    status = subprocess.run(command, check=False).returncode  # noqa: S603  # our own
    if status:
        raise SystemExit(f"dragoman {' '.join(words)}: exit status {status}")


if __name__ == "__main__":
    main()
