"""Teacher → translate → student, by the three commands of experiments/README.md."""

import gzip
from pathlib import Path

import pytest

from model.train.data.parallel import read_lines
from service.cli.main import main
from support.tiny_checkpoint import generated_pairs

EXPERIMENT = """
name: %s
licence: CC0-1.0
data:
  folder: en-zh
  source_language: en
  target_language: zh
  target_tag: zh-Hans
  train: [{name: talk, licence: CC0-1.0%s}]
  dev: [talk]
  filters: {drop_blank: true}
vocabulary: {size: 450}
network: {d_model: 16, num_heads: 2, d_ff: 16, num_encoder_layers: 1, num_decoder_layers: 1}
schedule: {peak: 1e-2, warmup_updates: 2}
run: {max_updates: 4, batch_tokens: 400, score_dev: false, final_beam_size: 1, average_counts: []}
"""


def test_a_student_learns_from_what_its_teacher_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pairs = list(generated_pairs(60))
    for split in ("train", "dev"):
        folder = tmp_path / "data" / "en-zh" / split
        folder.mkdir(parents=True)
        for language, side in (("en", 0), ("zh", 1)):
            lines = "".join(f"{pair[side]}\n" for pair in pairs).encode()
            (folder / f"talk.{language}.gz").write_bytes(gzip.compress(lines))
    distilled = "runs/teacher/talk.zh.gz"
    (tmp_path / "teacher.yaml").write_text(EXPERIMENT % ("teacher", ""))
    (tmp_path / "student.yaml").write_text(EXPERIMENT % ("student", f", target_file: {distilled}"))
    flags = ["--data", "data", "--device", "cpu", "--threads", "1"]
    assert main(["train", "student.yaml", *flags]) == 1
    assert f"{distilled}: no such file; data.train names it" in capsys.readouterr().err

    assert main(["train", "teacher.yaml", *flags]) == 0
    translate = ["translate", "data/en-zh/train/talk.en.gz", "--beam-size", "2", "--threads", "1"]
    translate += ["--checkpoint", "runs/teacher/checkpoint", "--output", distilled]
    assert main(translate) == 0
    assert main(["train", "student.yaml", *flags]) == 0

    written = read_lines(Path(distilled))
    assert len(written) == len(pairs)
    card = Path("runs/student/checkpoint/card.md").read_text(encoding="utf-8")
    num_kept = sum(1 for line in written if line.strip())
    assert f"| talk with {distilled} | {num_kept} | 1 | CC0-1.0 |" in card
