"""Trains the shapes that docs/results.md compares: deep and shallow students of one teacher.

    python experiments/shapes.py DATA --teacher runs/multi30k-de-en

translates the training text of `multi30k-de-en-student.yaml` with the teacher, unless that is done,
and trains that experiment once for every shape, one after the other, each from where it stands.
`--shapes` names some of them, so that several can run side by side: one translates, the others wait
for it. `python -m benchmarks.shapes` measures what they trained.
"""

import argparse
import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from commands import one_line_errors, run_all
from made_of import check_same, checkpoint_digest, digest, write_note
from model.train.data.parallel import find_text
from model.train.files import write_whole
from model.train.saved.retention import CHECKPOINT_FOLDER
from model.train.saved.state import has_state

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
    threads = ["--threads", str(arguments.threads)]
    text = translate(source, arguments.teacher / CHECKPOINT_FOLDER, threads)
    for shape in arguments.shapes:
        num_encoder_layers, num_decoder_layers = map(int, shape.split("-"))
        name = f"{BASE}-{shape}"
        document["name"] = name
        document["data"]["train"][0]["target_file"] = str(text)
        document["network"]["num_encoder_layers"] = num_encoder_layers
        document["network"]["num_decoder_layers"] = num_decoder_layers
        experiment, output = FOLDER / f"{name}.yaml", FOLDER / name
        described = yaml.safe_dump(document, allow_unicode=True).encode()
        with locked():  # not where another script is reading it
            if not experiment.exists() or experiment.read_bytes() != described:
                write_whole(experiment, described)
        words = ["train", str(experiment), "--data", str(arguments.data), "--output", str(output)]
        run_all([[*words, *threads, *(["--resume"] if has_state(output) else [])]])


def translate(source: Path, checkpoint: Path, threads: Sequence[str]) -> Path:
    """What the teacher writes for `source`; made now unless it is there.

    Raises:
        SystemExit: What is there was written by another teacher, or of another text.
    """
    text, note = FOLDER / "text.gz", FOLDER / "made-of.sha256"
    with locked():
        made_of = {
            "teacher": (checkpoint, checkpoint_digest(checkpoint)),
            "text": (source, digest(source)),
        }
        if text.exists():
            check_same(text, note, made_of, "students")
            return text
        write_note(note, {key: found for key, (_, found) in made_of.items()})
        words = ["translate", str(source), "--checkpoint", str(checkpoint)]
        run_all([[*words, "--output", str(text), *threads]])
    return text


@contextmanager
def locked() -> Iterator[None]:
    """Only one script at a time is inside."""
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    with one_line_errors():
        main()
