"""What a run says its weights are worth, against `dragoman evaluate` on the same text."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.checkpoint.weights import TokenizerParts, load_checkpoint, save_checkpoint
from model.offline.evaluate import Score
from model.train.records.journal import JournalEntry, read_journal
from model.train.run import train
from model.train.saved.state import average_path, load_snapshot
from service.cli.main import main
from support.recorded_runs import RICH_EXPERIMENT, write_text

EXPERIMENT = replace(
    RICH_EXPERIMENT,
    data=replace(RICH_EXPERIMENT.data, target_tag="zh-Hans"),
    optimiser=replace(RICH_EXPERIMENT.optimiser, ema_decay=0.5),
    # Ends before it knows its pairs by heart, while beams and arithmetic still make a difference.
    run=replace(RICH_EXPERIMENT.run, max_updates=20, patience=0, max_dev_sentences=5),
)
"""Dev text is scored with two beams while training, with three at the end."""


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("data")) / "en-zh"


@pytest.fixture(scope="module")
def folder(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert train(
        EXPERIMENT,
        data_folder=text.parent,
        output=folder,
        resume=False,
        device=torch.device("cpu"),
        command="dragoman train tiny.yaml",
    )
    return folder


Evaluate = Callable[..., tuple[list[str], str]]


@pytest.fixture
def evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Evaluate:
    """`dragoman evaluate`: the lines that it prints, and the translations."""

    def evaluate(checkpoint: Path, corpus: Path, *flags: str) -> tuple[list[str], str]:
        output = tmp_path / "translations.zh"
        source, target = (str(corpus.with_suffix(suffix)) for suffix in (".en", ".zh"))
        flags = ("--from", "en", "--to", "zh-Hans", "--output", str(output), *flags)
        assert main(["evaluate", str(checkpoint), source, target, *flags]) == 0
        return capsys.readouterr().out.splitlines(), output.read_text(encoding="utf-8")

    return evaluate


def printed(record: JournalEntry) -> list[str]:
    """The final scores of a corpus in the journal, as `dragoman evaluate` would print them."""
    scores = []
    for field, name in (("bleu", "BLEU"), ("chrf", "chrF2")):
        value = record.number(field)
        assert value is not None
        assert value > 0
        signature = record.text(f"{field}_signature")
        scores.append(str(Score(name=name, value=value, signature=signature)))
    return scores


def test_the_final_scores_are_those_that_the_checkpoint_gets_from_its_user(
    text: Path, folder: Path, evaluate: Evaluate
) -> None:
    checkpoint = folder / "checkpoint"
    card, report = (
        path.read_text(encoding="utf-8") for path in (checkpoint / "card.md", folder / "report.md")
    )
    records = [record for record in read_journal(folder) if record.event == "score"]
    assert [record.text("corpus") for record in records] == ["dev/few", "test/some"]
    for record in records:
        name = record.text("corpus")
        beam_size = str(EXPERIMENT.run.final_beam_size)
        lines, hypotheses = evaluate(checkpoint, text / name, "--beam-size", beam_size)
        assert lines == printed(record)
        kept = folder / "translations" / f"{name}.hypothesis.txt"
        assert hypotheses == kept.read_text(encoding="utf-8")
        assert f"| {name} | {record.number('bleu'):.2f} | {record.number('chrf'):.2f} |" in card
        for told in (card, report):
            assert f"`{record.text('bleu_signature')}`" in told


def write_float_checkpoint(folder: Path, weights: Path, directory: Path) -> Path:
    """A checkpoint of one snapshot of a run, not quantised."""
    found = load_checkpoint(folder / "checkpoint")
    found.transformer.load_state_dict(dict(load_snapshot(weights)))
    manifest = found.manifest
    save_checkpoint(
        directory,
        transformer=found.transformer,
        name=manifest.name,
        description=manifest.description,
        licence=manifest.licence,
        tokens=manifest.tokens,
        pairs=manifest.pairs,
        limits=manifest.limits,
        licences=manifest.licences,
        tokenizer=TokenizerParts(source_pieces=(folder / "joint.spm").read_bytes()),
        card="# One snapshot\n",
        quantise=False,
    )
    return directory


def test_the_dev_scores_are_those_of_the_average_that_was_saved_in_float32(
    text: Path, folder: Path, evaluate: Evaluate, tmp_path: Path
) -> None:
    *_, record = [record for record in read_journal(folder) if record.event == "evaluation"]
    assert record.update == EXPERIMENT.run.max_updates
    for suffix in (".en", ".zh"):
        lines = (text / "dev/few").with_suffix(suffix).read_text(encoding="utf-8").splitlines()
        first = "".join(f"{line}\n" for line in lines[: EXPERIMENT.run.max_dev_sentences])
        (tmp_path / "first").with_suffix(suffix).write_text(first, encoding="utf-8")
    flags = ("--compute-type", "float32", "--beam-size", str(EXPERIMENT.run.dev_beam_size))
    weights = average_path(folder, record.update)
    checkpoint = write_float_checkpoint(folder, weights, tmp_path / "average")
    found, _ = evaluate(checkpoint, tmp_path / "first", *flags)
    bleu, chrf = record.number("bleu"), record.number("chrf")
    assert bleu is not None
    assert bleu > 0
    lines = [line.partition(" (")[0] for line in found]
    assert lines == [f"BLEU {bleu:.2f}", f"chrF2 {chrf:.2f}"]
