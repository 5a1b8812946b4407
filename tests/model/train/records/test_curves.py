import errno
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from model.errors import TrainingError
from model.train.records.curves import collect, draw_curves
from model.train.records.journal import JournalEntry


def records(num_updates: int) -> list[JournalEntry]:
    found = []
    for update in range(1, num_updates + 1):
        fields = {"loss": 9.0 / update, "learning_rate": 1e-3, "tokens_per_second": 5e3}
        found.append(JournalEntry(event="progress", update=update, time=0.0, fields=fields))
    dev = {"corpus": "talk", "loss": 2.0, "perplexity": 7.4, "bleu": 3.0}
    return [*found, JournalEntry(event="evaluation", update=num_updates, time=0.0, fields=dev)]


def test_points_are_collected_by_panel_and_line() -> None:
    found = collect(records(2))
    assert found["loss"] == {"train": [(1, 9.0), (2, 4.5)], "talk": [(2, 2.0)]}
    assert found["bleu"] == {"talk": [(2, 3.0)]}
    assert "chrf" not in found


def test_a_curve_is_drawn_from_records(tmp_path: Path) -> None:
    path = tmp_path / "curves.png"
    assert draw_curves(records(5), tmp_path)
    with Image.open(path) as picture:
        first = np.asarray(picture.convert("RGB"))
    assert first.std() > 0
    assert draw_curves(records(50), tmp_path)
    with Image.open(path) as picture:
        assert not np.array_equal(first, np.asarray(picture.convert("RGB")))
    assert [item.name for item in tmp_path.iterdir()] == ["curves.png"]


def test_without_figures_there_is_no_picture(tmp_path: Path) -> None:
    start = JournalEntry(event="start", update=0, time=0.0, fields={"device": "cpu"})
    assert not draw_curves([start], tmp_path)
    assert not (tmp_path / "curves.png").exists()


def test_a_picture_that_cannot_be_written_leaves_the_one_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(_: Figure, path: Path, **__: object) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    draw_curves(records(5), tmp_path)
    before = (tmp_path / "curves.png").read_bytes()
    monkeypatch.setattr(Figure, "savefig", fill)
    with pytest.raises(TrainingError, match=r"curves\.png: cannot be written: No space left"):
        draw_curves(records(50), tmp_path)
    assert [item.name for item in tmp_path.iterdir()] == ["curves.png"]
    assert (tmp_path / "curves.png").read_bytes() == before
