"""The run that makes the bundled checkpoints: three stages over text of the right shape."""

import gzip
import subprocess
import sys
import tarfile
from pathlib import Path

from model.train.data import read_lines
from model.train.experiment import read_experiment
from support.tiny_checkpoint import generated_pairs

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
SCRIPT = EXPERIMENTS / "bundled.py"


def write_corpus(folder: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for language, side in (("en", 0), ("zh", 1)):
        lines = "".join(f"{pair[side]}\n" for pair in pairs).encode()
        (folder / f"{name}.{language}.gz").write_bytes(gzip.compress(lines))


def test_teacher_text_and_students(tmp_path: Path) -> None:
    data = tmp_path / "data" / "en-zh"
    pairs = list(generated_pairs(6))
    student = read_experiment(EXPERIMENTS / "en-zh-student.yaml").data.directions[0]
    for corpus in student.train:
        write_corpus(data / "train", corpus.name, pairs)
    for name in student.dev:
        write_corpus(data / "dev", name, pairs[:2])
    for entry in student.report:
        split, name = entry.split("/")
        write_corpus(data / split, name, pairs[:2])
    command = [sys.executable, str(SCRIPT), "data", "--quick", "--keep", "kept"]

    subprocess.run(command, cwd=tmp_path, check=True)

    text = tmp_path / "runs" / "bundled" / "text"
    for corpus in student.train:
        assert len(read_lines(text / "en-zh" / f"{corpus.name}.zh.gz")) == 6
        assert len(read_lines(text / "zh-en" / f"{corpus.name}.en.gz")) == 6
    for name in ("en-zh-student", "zh-en-student"):
        with tarfile.open(tmp_path / "kept" / f"{name}.tar") as archive:
            assert f"{name}/checkpoint/model.safetensors" in archive.getnames()
            assert f"{name}/report.md" in archive.getnames()
