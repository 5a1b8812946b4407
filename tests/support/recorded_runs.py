"""Whole runs that tell what every update was, to be killed, starved of disk, and resumed."""

import os
import resource
import signal
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from model.errors import TrainingError
from model.train import run
from model.train.config.data import CorpusConfig, DataConfig
from model.train.config.experiment import Experiment
from model.train.config.network import NetworkConfig
from model.train.config.optimiser import OptimiserConfig
from model.train.config.regularisation import RegularisationConfig
from model.train.config.run import RunConfig
from model.train.config.schedule import ScheduleConfig
from model.train.config.vocabulary import VocabularyConfig
from model.train.loop.trainer import UpdateResult
from model.train.observer import RunObserver
from model.train.saved.retention import CHECKPOINT_FOLDER
from model.train.saved.state import Progress, has_state
from support.forked import Send
from support.tiny_checkpoint import generated_pairs

NUM_UPDATES = 40
EXPERIMENT = Experiment(
    name="tiny",
    licence="CC0-1.0",
    data=DataConfig(
        folder="en-zh",
        source_language="en",
        target_language="zh",
        train=(CorpusConfig(name="talk", licence="CC0-1.0"),),
        dev=("talk",),
    ),
    vocabulary=VocabularyConfig(size=450),
    network=NetworkConfig(
        d_model=16, num_heads=2, d_ff=16, num_encoder_layers=1, num_decoder_layers=1, dropout=0.2
    ),
    optimiser=OptimiserConfig(rdrop_alpha=1.0, ema_decay=0.9),
    schedule=ScheduleConfig(kind="cosine", peak=5e-3, warmup_updates=4),
    run=RunConfig(
        max_updates=NUM_UPDATES,
        batch_tokens=120,
        save_every_updates=3,
        snapshot_every_updates=4,
        num_snapshots=3,
        score_dev=False,
        metric="loss",
        final_beam_size=1,
        average_counts=(2, 3),
    ),
)

RICH_EXPERIMENT = replace(
    EXPERIMENT,
    data=replace(
        EXPERIMENT.data,
        train=(
            CorpusConfig(name="few", licence="CC0-1.0", copies=1.5),
            CorpusConfig(name="again", licence="CC0-1.0", copies=0.5),
        ),
        dev=("few",),
        report=("test/some",),
        regularisation=RegularisationConfig(alpha=0.05),
    ),
    vocabulary=VocabularyConfig(size=340),
    network=replace(EXPERIMENT.network, d_model=32, d_ff=64, dropout=0.1),
    optimiser=OptimiserConfig(),
    schedule=ScheduleConfig(peak=2e-2, warmup_updates=4),
    run=replace(
        EXPERIMENT.run,
        max_updates=100,
        precision="bfloat16",
        batch_tokens=400,
        update_freq=2,
        score_dev=True,
        metric="bleu",
        dev_beam_size=2,
        final_beam_size=3,
        patience=3,
    ),
)
"""Learns its few pairs by heart within some 30 updates. From then on no BLEU is better than the one
before, so that patience ends it: later than it would where BLEU goes up and down on the way."""


def write_text(folder: Path) -> Path:
    """The text of both runs, below `folder`; returns `folder`."""
    pairs = list(generated_pairs(60))
    for split, name, lines in (
        ("train", "talk", pairs),
        ("train", "few", pairs[:6] * 4),
        ("train", "again", pairs[:6] * 4),
        ("dev", "talk", pairs[:6]),
        ("dev", "few", pairs[:6]),
        ("test", "some", pairs[3:9]),  # the last three were never learnt by the second run
    ):
        (folder / "en-zh" / split).mkdir(parents=True, exist_ok=True)
        for language, side in (("en", 0), ("zh", 1)):
            path = folder / "en-zh" / split / f"{name}.{language}"
            path.write_text("".join(f"{pair[side]}\n" for pair in lines), encoding="utf-8")
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What becomes of a run.

    Attributes:
        full_after: After this update the system lets no file become larger than a few bytes, as
            on a full disk.
        stop_after: The run is asked to stop after this update.
        killed_after: It kills itself as soon as it has said what this update was.
        kill_delay: Seconds from then, while it goes on with whatever it does.
        killed_while: It kills itself after its last update: while the weights are chosen; while
            the checkpoint is put in its place (what stood there is beside it by then); or while
            the checkpoint, which is there, is scored.
    """

    full_after: int | None = None
    stop_after: int | None = None
    killed_after: int | None = None
    kill_delay: float = 0.0
    killed_while: Literal["choosing", "storing", "scoring"] | None = None


UNTOUCHED = Fate()


def recorded_run(
    send: Send, experiment: Experiment, data_folder: Path, output: Path, fate: Fate
) -> None:
    """Begin or resume the run; says (update, loss) of every update, and how it ended.

    No curves are drawn, as where matplotlib is not installed, so that it begins and ends sooner.
    """
    sys.modules["model.train.records.curves"] = None  # type: ignore[assignment]  # how Python says so
    updates: list[int] = []
    checkpoint = output / CHECKPOINT_FOLDER
    num_questions = 0
    if fate.killed_while == "storing":
        _kill_at_rename(checkpoint)

    class Recording(RunObserver):
        is_over = False

        def after_update(
            self, result: UpdateResult, progress: Progress, fraction: float
        ) -> Progress:
            updates.append(result.update)
            send((result.update, result.loss.hex()))
            if result.update == fate.killed_after:
                _kill_after(fate.kill_delay)
            if result.update == fate.full_after:
                resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
            return super().after_update(result, progress, fraction)

        def last(self, progress: Progress, *, is_over: bool) -> Progress:
            progress = super().last(progress, is_over=is_over)
            Recording.is_over = is_over
            return progress

    def should_stop() -> bool:
        nonlocal num_questions
        now = "scoring" if checkpoint.exists() else "choosing"
        num_questions += Recording.is_over and fate.killed_while == now
        if num_questions == 4:
            _kill()
        return fate.stop_after in updates

    setattr(run, "RunObserver", Recording)  # noqa: B010  # mypy: this process only runs this
    try:
        is_complete = run.train(
            experiment,
            data_folder=data_folder,
            output=output,
            resume=has_state(output),
            device=torch.device("cpu"),
            command="dragoman train tiny.yaml",
            should_stop=should_stop,
        )
    except TrainingError as error:
        send(str(error))
    else:
        send(is_complete)


def _kill_after(seconds: float) -> None:
    if seconds:
        threading.Timer(seconds, _kill).start()
    else:
        _kill()


def _kill_at_rename(place: Path) -> None:
    """Kill this process when something that is whole is about to be moved to `place`."""

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event == "os.rename" and str(arguments[1]) == str(place):
            _kill()

    sys.addaudithook(watch)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
