"""One training run from an experiment file to a folder of snapshots.

Owns the order of things: text, vocabulary, network, resume, loop, saving and scoring. Each of
them is another file's.
"""

import hashlib
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from model.errors import TrainingError
from model.nn.transformer import Transformer
from model.train.batching import BatchStream
from model.train.data import ParallelText, TokenisedPairs, read_parallel, tokenise
from model.train.experiment import Experiment
from model.train.progress import ProgressReporter
from model.train.state import (
    STATE_FILE,
    Progress,
    load_state,
    prune_snapshots,
    save_snapshot,
    save_state,
    snapshot_path,
)
from model.train.trainer import Trainer, UpdateResult, build_optimiser
from model.train.validation import dev_loss
from model.train.vocabulary import (
    EOS_ID,
    PAD_ID,
    START_ID,
    Vocabularies,
    load_pieces,
    train_vocabularies,
    vocabulary_paths,
)

LOGGER = logging.getLogger("dragoman.train")


def train(
    experiment: Experiment,
    *,
    data_folder: Path,
    output: Path,
    resume: bool,
    device: torch.device,
    should_stop: Callable[[], bool] = lambda: False,
) -> Progress:
    """Run an experiment.

    Args:
        experiment: What to run.
        data_folder: Holds the language pair's folder.
        output: Gets the vocabulary, `state.pt`, snapshots; made if missing.
        resume: Go on from `output`'s state; otherwise `output` must hold none.
        device: Where to train.
        should_stop: Asked between updates; the state is saved before stopping.

    Raises:
        DataError: Text is missing, misaligned or empty.
        TrainingError: The run diverged, or its state does not fit.
    """
    if not resume and (output / STATE_FILE).exists():
        raise TrainingError(
            f"{output}: holds a run already; resume it, or choose another output folder"
        )
    output.mkdir(parents=True, exist_ok=True)
    folder = data_folder / experiment.data.folder
    texts = _read(experiment, folder / "train", [item.name for item in experiment.data.train])
    dev_texts = _read(experiment, folder / "dev", list(experiment.data.dev))
    vocabularies = _vocabularies(experiment, output, texts, resume=resume)
    copies = [item.copies for item in experiment.data.train]
    pairs = _tokenise(experiment, vocabularies, list(zip(texts, copies, strict=True)))
    dev = {text.name: _tokenise(experiment, vocabularies, [(text, 1)]) for text in dev_texts}
    torch.manual_seed(experiment.run.seed)
    transformer = _network(experiment, vocabularies).to(device)
    optimiser = build_optimiser(transformer, experiment.optimiser)
    progress = Progress()
    if resume:
        progress = load_state(
            output,
            transformer=transformer,
            optimiser=optimiser,
            fingerprint=fingerprint(experiment),
            device=device,
        )
    trainer = Trainer(
        transformer,
        optimiser,
        BatchStream(
            pairs,
            max_tokens=experiment.run.batch_tokens,
            seed=experiment.run.seed,
            pad_id=PAD_ID,
            start_id=START_ID,
            position=progress.position,
        ),
        optimiser_config=experiment.optimiser,
        schedule=experiment.schedule,
        run=experiment.run,
        clock=time.monotonic,
        progress=progress,
    )
    num_parameters = sum(parameter.numel() for parameter in transformer.parameters())
    LOGGER.info("%d pairs, %d parameters, %s", len(pairs), num_parameters, device)
    with ProgressReporter(
        stream=sys.stderr, progress=progress, fraction=trainer.fraction()
    ) as reporter:
        observer = _RunObserver(
            experiment=experiment,
            output=output,
            trainer=trainer,
            transformer=transformer,
            optimiser=optimiser,
            dev=dev,
            reporter=reporter,
        )
        trainer.train(observer, should_stop=should_stop)
        observer.finish()
    return trainer.progress


def fingerprint(experiment: Experiment) -> str:
    """Identifies what must not change between a save and a resume.

    A longer run, other intervals of saving or other dev text do not change it.
    """
    run = experiment.run
    fixed = (
        experiment.data.train,
        experiment.data.max_length,
        experiment.vocabulary,
        experiment.network,
        experiment.optimiser,
        (run.batch_tokens, run.update_freq, run.seed),
    )
    return hashlib.sha256(repr(fixed).encode()).hexdigest()[:16]


def _read(experiment: Experiment, folder: Path, names: list[str]) -> list[ParallelText]:
    data = experiment.data
    return [
        read_parallel(
            folder,
            name,
            source_language=data.source_language,
            target_language=data.target_language,
        )
        for name in names
    ]


def _vocabularies(
    experiment: Experiment, output: Path, texts: list[ParallelText], *, resume: bool
) -> Vocabularies:
    if resume:
        return vocabulary_paths(experiment.vocabulary, output)
    return train_vocabularies(
        experiment.vocabulary,
        output,
        source=[line for text in texts for line in text.source],
        target=[line for text in texts for line in text.target],
    )


def _tokenise(
    experiment: Experiment, vocabularies: Vocabularies, texts: list[tuple[ParallelText, int]]
) -> TokenisedPairs:
    source, target = (
        load_pieces(path) for path in (vocabularies.source_path, vocabularies.target_path)
    )
    return tokenise(
        texts,
        encode_source=source.encode,
        encode_target=target.encode,
        eos_id=EOS_ID,
        max_length=experiment.data.max_length,
    )


def _network(experiment: Experiment, vocabularies: Vocabularies) -> Transformer:
    sizes = [
        load_pieces(path).get_piece_size()
        for path in (vocabularies.source_path, vocabularies.target_path)
    ]
    return Transformer(
        experiment.network.build(
            source_size=sizes[0], target_size=sizes[1], is_joint=vocabularies.is_joint
        )
    )


@dataclass(kw_only=True)
class _RunObserver:
    experiment: Experiment
    output: Path
    trainer: Trainer
    transformer: Transformer
    optimiser: torch.optim.Optimizer
    dev: dict[str, TokenisedPairs]
    reporter: ProgressReporter
    saved_seconds: float = 0.0

    def after_update(self, result: UpdateResult, progress: Progress) -> Progress:
        run = self.experiment.run
        self.reporter.add(loss=result.loss, num_target_tokens=result.num_target_tokens)
        if result.update % run.log_every_updates == 0:
            self.reporter.report(
                progress, fraction=self.trainer.fraction(), learning_rate=result.learning_rate
            )
        if result.update % run.snapshot_every_updates == 0:
            progress = self._snapshot(progress)
        if progress.elapsed_seconds - self.saved_seconds >= 60.0 * run.save_every_minutes:
            self._save(progress)
        return progress

    def finish(self) -> None:
        """Leave a state, and a snapshot of the last update."""
        progress = self.trainer.progress
        if not snapshot_path(self.output, progress.update).exists():
            progress = self._snapshot(progress)
        self.trainer.progress = progress
        self._save(progress)

    def _save(self, progress: Progress) -> None:
        save_state(
            self.output,
            transformer=self.transformer,
            optimiser=self.optimiser,
            progress=progress,
            fingerprint=fingerprint(self.experiment),
        )
        self.saved_seconds = progress.elapsed_seconds

    def _snapshot(self, progress: Progress) -> Progress:
        run = self.experiment.run
        save_snapshot(self.output, self.transformer, progress.update)
        losses = {
            name: dev_loss(
                self.transformer,
                pairs,
                batch_tokens=run.batch_tokens,
                precision=run.precision,
                start_id=START_ID,
            )
            for name, pairs in self.dev.items()
        }
        listed = " ".join(f"{name} loss {loss:.3f}" for name, loss in losses.items())
        self.reporter.say(f"dev at update {progress.update}: {listed}")
        score = -losses[self.experiment.data.dev[0]]
        if progress.best_score is None or score > progress.best_score:
            progress = replace(progress, best_score=score, best_update=progress.update)
        keep = frozenset({snapshot_path(self.output, progress.best_update or 0)})
        prune_snapshots(self.output, num_kept=run.num_snapshots, keep=keep)
        return progress
