from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from model.train.records.events import EVENTS_FOLDER, EventWriter
from model.train.records.journal import JournalEntry


def progress(update: int, loss: float | None) -> JournalEntry:
    return JournalEntry(event="progress", update=update, time=100.0 + update, fields={"loss": loss})


def read(folder: Path) -> dict[str, list[tuple[int, float, float]]]:
    """What TensorBoard itself reads: update, time and value by tag."""
    found = EventAccumulator(str(folder / EVENTS_FOLDER)).Reload()
    return {
        tag: [(item.step, item.wall_time, item.value) for item in found.Scalars(tag)]
        for tag in found.Tags()["scalars"]
    }


def test_tensorboard_reads_every_figure_at_its_update_and_time(tmp_path: Path) -> None:
    dev = {"corpus": "talk", "loss": 1.5, "perplexity": 4.5, "bleu": 12.25, "chrf": 0.5}
    evaluation = JournalEntry(event="evaluation", update=20, time=120.5, fields=dev)
    with EventWriter(tmp_path, [progress(10, 3.5)], time=100.0) as writer:
        for record in (progress(15, None), progress(20, 2.5), evaluation):
            writer.write(record)
    assert read(tmp_path) == {
        "loss/train": [(10, 110.0, 3.5), (20, 120.0, 2.5)],
        "loss/talk": [(20, 120.5, 1.5)],
        "perplexity/talk": [(20, 120.5, 4.5)],
        "bleu/talk": [(20, 120.5, 12.25)],
        "chrf/talk": [(20, 120.5, 0.5)],
    }


def test_a_resume_shows_nothing_that_it_took_back(tmp_path: Path) -> None:
    with EventWriter(tmp_path, [], time=100.0) as writer:
        for update in (10, 20, 30):
            writer.write(progress(update, 9.0))
    with EventWriter(tmp_path, [progress(10, 9.0)], time=200.0) as writer:
        writer.write(progress(20, 1.0))
    assert read(tmp_path) == {"loss/train": [(10, 110.0, 9.0), (20, 120.0, 1.0)]}
    assert len(list((tmp_path / EVENTS_FOLDER).iterdir())) == 1
