import json
import logging
import math
from pathlib import Path

import pytest

from model.errors import TrainingError
from model.train.records.journal import (
    JOURNAL_FILE,
    Journal,
    JournalEntry,
    perplexity,
    read_journal,
    scalars,
)
from support.logged import events_of


def write(folder: Path, *updates: int, event: str = "progress") -> None:
    with Journal(folder, update=max(updates), is_resumed=False) as journal:
        for update in updates:
            journal.append(event, update=update, time=float(update), fields={"loss": 1.5})  # type: ignore[arg-type]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    with Journal(tmp_path, update=0, is_resumed=False) as journal:
        journal.append("start", update=0, time=1.0, fields={"commit": None, "device": "cpu"})
        journal.append("evaluation", update=5, time=2.0, fields={"corpus": "电影", "bleu": 3})
        assert read_journal(tmp_path) == journal.entries
    found = read_journal(tmp_path)
    assert [record.event for record in found] == ["start", "evaluation"]
    assert found[1].text("corpus") == "电影"
    assert found[1].number("bleu") == 3
    assert found[0].number("commit") is None
    assert found[0].text("commit") == ""


def test_every_record_is_a_line_on_the_disk_before_the_next(tmp_path: Path) -> None:
    with Journal(tmp_path, update=0, is_resumed=False) as journal:
        for update in (1, 2, 3):
            journal.append("progress", update=update, time=0.5, fields={})
            lines = (tmp_path / JOURNAL_FILE).read_text(encoding="utf-8").splitlines()
            assert [json.loads(line)["update"] for line in lines] == list(range(1, update + 1))


def test_a_resume_drops_what_will_be_done_again(tmp_path: Path) -> None:
    with Journal(tmp_path, update=0, is_resumed=False) as journal:
        for update in (10, 20, 30):
            journal.append("progress", update=update, time=0.5, fields={})
        journal.append("score", update=20, time=0.5, fields={"bleu": 1.0})
    with Journal(tmp_path, update=20, is_resumed=True) as journal:
        assert [record.update for record in journal.entries] == [10, 20]
        journal.append("progress", update=25, time=0.5, fields={})
    assert [(r.event, r.update) for r in read_journal(tmp_path)] == [
        ("progress", 10),
        ("progress", 20),
        ("progress", 25),
    ]


def test_a_new_run_begins_an_empty_journal(tmp_path: Path) -> None:
    write(tmp_path, 1, 2)
    with Journal(tmp_path, update=0, is_resumed=False) as journal:
        assert not journal.entries
    assert read_journal(tmp_path) == []


def test_a_run_resumed_from_its_first_state_keeps_how_it_began(tmp_path: Path) -> None:
    with Journal(tmp_path, update=0, is_resumed=False) as journal:
        journal.append("start", update=0, time=1.0, fields={"command": "dragoman train a.yaml"})
        journal.append("progress", update=1, time=2.0, fields={})
    with Journal(tmp_path, update=0, is_resumed=True) as journal:
        assert [(record.event, record.update) for record in journal.entries] == [("start", 0)]


@pytest.mark.parametrize(
    "damage",
    [
        b'{"event": "progress", "upd',
        b'{"event": "progress", "update": 3, "time": 1.0}',  # no line feed: may be cut short
        b"\x00\x00\n",
        b'"text"\n',
        b'{"event": "dinner", "update": 3, "time": 1.0}\n',
        b'{"event": "progress", "update": 3, "time": 1.0, "loss": [1]}\n',
    ],
)
def test_a_damaged_line_and_what_follows_are_left_out_with_a_warning(
    damage: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, 1, 2)
    path = tmp_path / JOURNAL_FILE
    path.write_bytes(path.read_bytes() + damage)
    with caplog.at_level(logging.WARNING), Journal(tmp_path, update=9, is_resumed=True) as journal:
        assert [record.update for record in journal.entries] == [1, 2]
        journal.append("progress", update=10, time=0.5, fields={})
    assert [record.update for record in read_journal(tmp_path)] == [1, 2, 10]
    [(event, fields)] = events_of(caplog)
    assert event == "journal_damaged"
    assert (fields["path"], fields["line"]) == (str(path), 3)


def test_numbers_that_are_not_finite_are_null(tmp_path: Path) -> None:
    with Journal(tmp_path, update=0, is_resumed=False) as journal:
        fields = {"loss": math.nan, "perplexity": math.inf, "bleu": 1.0}
        journal.append("progress", update=1, time=0.5, fields=fields)
    line = (tmp_path / JOURNAL_FILE).read_text(encoding="utf-8")
    assert json.loads(line) == {
        "event": "progress",
        "update": 1,
        "time": 0.5,
        "loss": None,
        "perplexity": None,
        "bleu": 1.0,
    }


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"nowhere/metrics\.jsonl: cannot be written"):
        Journal(tmp_path / "nowhere", update=0, is_resumed=False)


def test_curves_are_made_of_progress_and_evaluations_only() -> None:
    def of(event: str, **fields: float | str | None) -> dict[str, float]:
        return dict(scalars(JournalEntry(event=event, update=1, time=0.0, fields=fields)))  # type: ignore[arg-type]

    assert of("progress", loss=2.0, learning_rate=1e-3, epoch=4) == {
        "loss/train": 2.0,
        "learning_rate/train": 1e-3,
    }
    assert of("evaluation", corpus="talk", loss=1.0, bleu=None, chrf=7.0) == {
        "loss/talk": 1.0,
        "chrf/talk": 7.0,
    }
    assert of("start", loss=1.0) == of("score", bleu=1.0) == {}


def test_perplexity_is_e_to_the_loss() -> None:
    assert perplexity(math.log(7)) == pytest.approx(7)
    assert perplexity(1e6) == math.inf
