"""The run that makes the bundled checkpoints: three stages over text of the right shape."""

import gzip
import os
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

import bundled
from benchmarks.random_checkpoint import TOKENS, synthetic_spm
from model.checkpoint.weights import TokenizerParts, load_checkpoint, save_checkpoint
from model.exchange.export.huggingface.exporter import export_huggingface
from model.nn.transformer import Transformer
from model.text.languages.tags import LanguagePair
from model.train.config.experiment import read_experiment
from model.train.data.parallel import read_lines
from support import commands_in_process
from support.tiny_checkpoint import TINY_LICENCES, TINY_LIMITS, generated_pairs
from support.tiny_runs import undrawn

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
REAL_PIECES_BYTES = 500_000
"""What a trained vocabulary has above `synthetic_spm`: rules of normalisation, longer pieces."""


def write_corpus(folder: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for language, side in (("en", 0), ("zh", 1)):
        lines = "".join(f"{pair[side]}\n" for pair in pairs).encode()
        (folder / f"{name}.{language}.gz").write_bytes(gzip.compress(lines))


def test_teacher_text_and_students(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    pairs = list(generated_pairs(6))
    student, other = (
        read_experiment(EXPERIMENTS / f"{name}.yaml").data.directions[0]
        for name in ("en-zh-student", "zh-en-student")
    )
    for corpus in student.train:
        write_corpus(data / "en-zh" / "train", corpus.name, pairs)
    for direction in (student, other):
        for item in (*direction.dev_corpora, *direction.report_corpora):
            write_corpus(data / item.folder / item.split, item.corpus, pairs[:2])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bundled, "run_all", commands_in_process.run_all)
    monkeypatch.setitem(bundled.QUICK["run"], "snapshot_every_updates", 40)

    with undrawn():
        run_stages(monkeypatch, "--keep", "kept", "--threads", "1")

    text = tmp_path / "runs" / "bundled" / "text"
    for corpus in student.train:
        assert len(read_lines(text / "en-zh" / f"{corpus.name}.zh.gz")) == 6
        assert len(read_lines(text / "zh-en" / f"{corpus.name}.en.gz")) == 6
    for name in ("en-zh-student", "zh-en-student"):
        assert {"checkpoint/model.safetensors", "report.md"} <= packed(tmp_path / "kept", name)
    teacher = packed(tmp_path / "kept", "en-zh-teacher")
    assert {"report.md", "metrics.jsonl", "checkpoint/card.md"} <= teacher
    assert "checkpoint/model.safetensors" not in teacher


def test_what_the_same_teacher_has_translated_is_not_translated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (student,) = read_experiment(EXPERIMENTS / "en-zh-student.yaml").data.directions
    for corpus in student.train:
        write_corpus(tmp_path / "data" / "en-zh" / "train", corpus.name, [("a", "b")])
    made: list[Path] = []

    def translate(commands: Sequence[Sequence[str]]) -> None:
        for words in commands:
            output = Path(words[words.index("--output") + 1])
            output.write_bytes(gzip.compress(b"x\n" * len(student.train)))
            made.append(output)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bundled, "run_all", translate)
    checksums = tmp_path / "runs" / "bundled" / "en-zh-teacher" / "checkpoint" / "checksums.sha256"
    checksums.parent.mkdir(parents=True)
    checksums.write_text("one teacher")
    run_stages(monkeypatch, "--stages", "text")
    both = {"en-zh.zh.gz", "zh-en.en.gz"}
    assert {output.name for output in made} == both
    run_stages(monkeypatch, "--stages", "text")
    assert len(made) == 2
    made.pop().unlink()
    run_stages(monkeypatch, "--stages", "text")
    assert {output.name for output in made} == both
    checksums.write_text("another teacher")
    run_stages(monkeypatch, "--stages", "text")
    assert len(made) == 4


def packed(folder: Path, name: str) -> set[str]:
    """What is in an archive, below its one folder."""
    with tarfile.open(folder / f"{name}.tar") as archive:
        return {found.removeprefix(f"{name}/") for found in archive.getnames()}


def run_stages(monkeypatch: pytest.MonkeyPatch, *flags: str) -> None:
    monkeypatch.setattr(sys, "argv", ["bundled.py", "data", "--quick", *flags])
    bundled.main()


def test_a_stage_that_is_cut_keeps_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(commands: Sequence[Sequence[str]]) -> None:
        for words in commands:
            output = Path(words[words.index("--output") + 1])
            (output / "checkpoint").mkdir(parents=True)
            for file in ("metrics.jsonl", "state.pt", "checkpoint/card.md", "checkpoint/weights"):
                (output / file).touch()
        raise SystemExit(130)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bundled, "run_all", cut)
    for stage in ("teacher", "students"):
        with pytest.raises(SystemExit):
            run_stages(monkeypatch, "--stages", stage, "--keep", "kept")
    student = {"metrics.jsonl", "checkpoint", "checkpoint/card.md", "checkpoint/weights"}
    assert packed(tmp_path / "kept", "en-zh-teacher") == {"metrics.jsonl", "checkpoint/card.md"}
    assert packed(tmp_path / "kept", "en-zh-student") == student
    assert packed(tmp_path / "kept", "zh-en-student") == student


def test_commands_side_by_side_share_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Sequence[str]] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bundled, "run_all", found.extend)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    run_stages(monkeypatch, "--stages", "teacher", "students")
    run_stages(monkeypatch, "--stages", "students", "--threads", "2")
    threads = [words[words.index("--threads") + 1] for words in found]
    assert threads == ["6", "3", "3", "2", "2"]


def test_the_teacher_is_scored_on_what_its_students_report() -> None:
    directions = read_experiment(EXPERIMENTS / "en-zh-teacher.yaml").data.directions
    for name, teaching in zip(bundled.STUDENTS, directions, strict=True):
        (student,) = read_experiment(EXPERIMENTS / f"{name}.yaml").data.directions
        assert (teaching.name, teaching.dev) == (student.name, student.dev)
        left_out = set(student.report_corpora) - set(teaching.report_corpora)
        assert {item.name for item in left_out} == {"test/tatoeba-test-v2021-08-07"}
        assert set(teaching.report_corpora) < set(student.report_corpora)


@pytest.mark.parametrize("name", bundled.STUDENTS)
def test_a_student_can_be_bundled_and_exported(name: str, tmp_path: Path) -> None:
    experiment = read_experiment(EXPERIMENTS / f"{name}.yaml")
    size, direction = experiment.vocabulary.size, experiment.data.directions[0]
    network = experiment.network.build(source_size=size, target_size=size, is_joint=True)
    assert experiment.vocabulary.is_joint
    save_checkpoint(
        tmp_path / name,
        transformer=Transformer(network),
        name=name,
        description=experiment.description,
        licence=experiment.licence,
        tokens=TOKENS,
        pairs=(LanguagePair(source=direction.source, target=direction.target),),
        limits=TINY_LIMITS,
        licences=TINY_LICENCES,
        tokenizer=TokenizerParts(source_pieces=synthetic_spm(size)),
        card="",
    )
    num_bytes = sum(path.stat().st_size for path in (tmp_path / name).iterdir())
    assert num_bytes + REAL_PIECES_BYTES <= 15_000_000
    export_huggingface(load_checkpoint(tmp_path / name), tmp_path / "marian")
