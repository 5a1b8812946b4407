"""Whole runs of a tiny network on generated text, for tests to stop, resume and look at."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

import torch

from model.train import run as run_module
from model.train.config.data import CorpusConfig, DataConfig
from model.train.config.experiment import Experiment
from model.train.config.network import NetworkConfig
from model.train.config.run import RunConfig
from model.train.config.schedule import ScheduleConfig
from model.train.config.vocabulary import VocabularyConfig
from model.train.config.yaml_lines import KeyPlaces
from model.train.loop.distributed import Group
from model.train.loop.trainer import Observer, Trainer
from model.train.records.recorder import RunRecorder
from model.train.run import train
from model.train.saved.state import snapshot_path
from model.train.stopping import ShouldStop, never
from support.tiny_checkpoint import generated_pairs

EXPERIMENT = Experiment(
    name="tiny",
    licence="CC0-1.0",
    description="A test",
    notes="Good for nothing.",
    data=DataConfig(
        folder="en-zh",
        source_language="en",
        target_language="zh",
        target_tag="zh-Hans",
        train=(CorpusConfig(name="talk", licence="CC0-1.0", url="https://example.org", copies=2),),
        dev=("held-out",),
        report=("test/held-out",),
    ),
    vocabulary=VocabularyConfig(size=450, denormalisation={",": "，"}),
    network=NetworkConfig(
        d_model=16, num_heads=2, d_ff=16, num_encoder_layers=1, num_decoder_layers=1, dropout=0.2
    ),
    schedule=ScheduleConfig(peak=5e-3, warmup_updates=4, tail_fraction=0.5),
    run=RunConfig(
        max_updates=12,
        batch_tokens=200,
        snapshot_every_updates=4,
        num_snapshots=3,
        max_dev_sentences=5,
        final_beam_size=2,
        average_counts=(2, 3),
    ),
)


def write_text(folder: Path) -> Path:
    """The run's text, below `folder`; returns `folder`."""
    pairs = list(generated_pairs(120))
    for split, corpus, lines in (
        ("train", "talk", pairs[:100]),
        ("dev", "held-out", pairs[100:110]),
        ("test", "held-out", pairs[110:]),
    ):
        (folder / "en-zh" / split).mkdir(parents=True)
        for language, side in (("en", 0), ("zh", 1)):
            path = folder / "en-zh" / split / f"{corpus}.{language}"
            path.write_text("".join(f"{pair[side]}\n" for pair in lines), encoding="utf-8")
    return folder


class StopAfter:
    """Says yes from some question on: after so many noes."""

    def __init__(self, num_noes: int) -> None:
        self._num_noes = num_noes

    def __call__(self) -> bool:
        self._num_noes -= 1
        return self._num_noes < 0


class StopInScores:
    """Says yes from some question on that is asked while one snapshot is scored.

    Args:
        folder: Of the run.
        update: The snapshot's.
        num_noes: So many questions before.
    """

    def __init__(self, folder: Path, *, update: int, num_noes: int = 0) -> None:
        self._path = snapshot_path(folder, update)
        self._left = self._written_at()  # by a run that is resumed, which makes it again
        self._stop = StopAfter(num_noes)

    def __call__(self) -> bool:
        return self._written_at() not in {None, self._left} and self._stop()

    def _written_at(self) -> int | None:
        return self._path.stat().st_mtime_ns if self._path.exists() else None


CPU = torch.device("cpu")


@contextmanager
def undrawn() -> Iterator[None]:
    """No curves are drawn of runs in this process: that takes longer than all the rest."""
    with patch.object(RunRecorder, "draw", return_value=False):
        yield


def run(
    data_folder: Path,
    output: Path,
    *,
    experiment: Experiment = EXPERIMENT,
    resume: bool = False,
    device: torch.device = CPU,
    num_updates: int = 10_000,
    should_stop: ShouldStop = never,
    start_from: Path | None = None,
    cache: Path | None = None,
    group: Group | None = None,
    places: KeyPlaces | None = None,
    draws_curves: bool = False,
) -> bool:
    """Train, no more than so many updates; whether the run came to its end."""
    is_enough = StopAfter(num_updates)

    class Stopped(Trainer):
        def train(self, observer: Observer, *, should_stop: ShouldStop = never) -> None:
            super().train(observer, should_stop=lambda: is_enough() or should_stop())

    drawing = nullcontext() if draws_curves else undrawn()
    with drawing, patch.object(run_module, "Trainer", Stopped):
        return train(
            experiment,
            data_folder=data_folder,
            output=output,
            resume=resume,
            device=device,
            command="dragoman train tiny.yaml",
            start_from=start_from,
            cache=cache,
            group=group,
            places=places,
            should_stop=should_stop,
        )
