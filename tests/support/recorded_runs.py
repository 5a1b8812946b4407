"""Whole runs that tell what every update was, to be killed, starved of disk, and resumed."""

import resource
from pathlib import Path

import torch

from model.errors import TrainingError
from model.train import run
from model.train.data_config import CorpusConfig, DataConfig
from model.train.experiment import (
    Experiment,
    NetworkConfig,
    OptimiserConfig,
    RunConfig,
    VocabularyConfig,
)
from model.train.observer import RunObserver
from model.train.schedule import ScheduleConfig
from model.train.state import Progress, has_state
from model.train.trainer import UpdateResult
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


def write_text(folder: Path) -> Path:
    """The run's text, below `folder`; returns `folder`."""
    for split, num_pairs in (("train", 60), ("dev", 6)):
        (folder / "en-zh" / split).mkdir(parents=True)
        for language, side in (("en", 0), ("zh", 1)):
            lines = "".join(f"{pair[side]}\n" for pair in generated_pairs(num_pairs))
            path = folder / "en-zh" / split / f"talk.{language}"
            path.write_text(lines, encoding="utf-8")
    return folder


def recorded_run(
    send: Send, data_folder: Path, output: Path, full_after: int | None, stop_after: int | None
) -> None:
    """Begin or resume the run; says (update, loss) of every update, and how it ended.

    Args:
        send: Gets it.
        data_folder: As `write_text` made it.
        output: Of the run.
        full_after: After this update the system lets no file become larger than a few bytes, as
            on a full disk.
        stop_after: The run is asked to stop after this update.
    """
    updates: list[int] = []

    class Recording(RunObserver):
        def after_update(
            self, result: UpdateResult, progress: Progress, fraction: float
        ) -> Progress:
            updates.append(result.update)
            send((result.update, result.loss.hex()))
            if result.update == full_after:
                resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
            return super().after_update(result, progress, fraction)

    setattr(run, "RunObserver", Recording)  # noqa: B010  # mypy: this process only runs this
    try:
        is_complete = run.train(
            EXPERIMENT,
            data_folder=data_folder,
            output=output,
            resume=has_state(output),
            device=torch.device("cpu"),
            command="dragoman train tiny.yaml",
            should_stop=lambda: stop_after in updates,
        )
    except TrainingError as error:
        send(str(error))
    else:
        send(is_complete)
