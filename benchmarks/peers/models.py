"""The same weights for every rival, in one directory.

Owns the layout that the rivals read: `checkpoint`, `ctranslate2-int8`, `ctranslate2-float32`,
`huggingface`, `marian`. Runs as a process of its own, so that whoever measures never holds a
network.

    python -m benchmarks.peers.models OUTPUT
        (--vocabulary N | --checkpoint DIRECTORY | --family SHAPE [--marian PYTHON])
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = ROOT / "checkpoints" / "en-zh-small"
SEED = 1
TWINS = {"student": "attention-student"}
"""What CTranslate2 is given in place of a shape whose decoder it does not have: one as large."""


def write_models(
    output: Path,
    *,
    vocabulary: int | None = None,
    checkpoint: Path | None = None,
    family: str | None = None,
    marian: str | None = None,
) -> None:
    """Write all of them in another process.

    Args:
        output: A directory that does not exist yet.
        vocabulary: Pieces of a random network of base size; or
        checkpoint: what to copy; or
        family: a shape of `benchmarks.random_checkpoint`.
        marian: An interpreter with pymarian; the family is written for Marian too.

    Raises:
        CalledProcessError: Something could not be written; the reason is on standard error.
    """
    command = [sys.executable, "-m", "benchmarks.peers.models", str(output)]
    command += ["--vocabulary", str(vocabulary)] if vocabulary is not None else []
    command += ["--checkpoint", str(checkpoint)] if checkpoint is not None else []
    command += ["--family", family] if family is not None else []
    command += ["--marian", marian] if marian is not None else []
    subprocess.run(command, cwd=ROOT, check=True)


def write_family(output: Path, shape: str, *, marian: str | None) -> None:
    """A random network of a shape, for Dragoman, CTranslate2 and perhaps Marian."""
    from benchmarks.random_checkpoint import SHAPES, write_random_checkpoint  # noqa: PLC0415  # torch
    from model.checkpoint.weights import load_checkpoint  # noqa: PLC0415  # same
    from model.exchange.export.ctranslate2 import export_ctranslate2  # noqa: PLC0415  # same

    def write(name: str) -> Path:
        size = SHAPES[name].vocab_size
        write_random_checkpoint(output / name, vocab_size=size, seed=SEED, shape=name)
        return output / name

    write(shape).rename(output / "checkpoint")
    twin = write(TWINS[shape]) if shape in TWINS else output / "checkpoint"
    exported = load_checkpoint(twin)
    export_ctranslate2(exported, output / "ctranslate2-float32")
    export_ctranslate2(exported, output / "ctranslate2-int8", quantization="int8")
    if marian is not None:
        from benchmarks.peers.marian_model import write_marian  # noqa: PLC0415  # torch

        (output / "marian").mkdir()
        write_marian(load_checkpoint(output / "checkpoint"), output / "marian", python=marian)


def export_all(output: Path) -> None:
    """The rivals' directories beside `output / "checkpoint"`."""
    from model.checkpoint.weights import load_checkpoint  # noqa: PLC0415  # torch: see above
    from model.exchange.export.ctranslate2 import export_ctranslate2  # noqa: PLC0415  # same
    from model.exchange.export.huggingface.exporter import export_huggingface  # noqa: PLC0415  # same

    checkpoint = load_checkpoint(output / "checkpoint")
    export_huggingface(checkpoint, output / "huggingface")
    export_ctranslate2(checkpoint, output / "ctranslate2-float32")
    export_ctranslate2(checkpoint, output / "ctranslate2-int8", quantization="int8")


def main() -> None:
    """Read the flags and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--vocabulary", type=int)
    chosen.add_argument("--checkpoint", type=Path)
    chosen.add_argument("--family")
    parser.add_argument("--marian")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True)
    if arguments.family is not None:
        write_family(arguments.output, arguments.family, marian=arguments.marian)
        return
    if arguments.checkpoint is not None:
        shutil.copytree(arguments.checkpoint, arguments.output / "checkpoint")
    else:
        from benchmarks.random_checkpoint import write_random_checkpoint  # noqa: PLC0415  # torch

        write_random_checkpoint(
            arguments.output / "checkpoint", vocab_size=arguments.vocabulary, seed=SEED
        )
    export_all(arguments.output)


if __name__ == "__main__":
    main()
