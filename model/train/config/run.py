"""The `run` part of an experiment file: how long a run is, its batches, when it saves and scores.

Owns the keys and their limits. The run itself is `model.train.run`.
"""

from dataclasses import dataclass
from typing import Literal

from model.errors import ConfigError
from model.train.config.limits import at_least

Precision = Literal["float32", "bfloat16"]
PrecisionName = Literal["auto", "float32", "bfloat16"]
Time = Literal["wall", "processor"]
Metric = Literal["bleu", "chrf", "loss"]
BleuTokenizer = Literal["13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none"]
"""As `model.offline.evaluate.TOKENIZERS`."""

MAX_BEAM_SIZE = 128
"""Rows of the `Translator` that scores."""

_MAX_UPDATE_FREQ = 100_000  # all batches of an update are made before its first
_AVERAGE_COUNTS = (5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Length of a run, its batches, and when it saves and scores.

    Attributes:
        max_updates: The run ends after so many updates; 0 means no such limit.
        max_minutes: The run ends after so many minutes of training; 0 means no such limit.
        time: What these minutes are of. "processor" counts the processor time of a worker on a
            CPU: a run that waits for a core, or is stopped for a while, learns as much as one
            that has it for itself. The minutes between saves, and the time that is said to be
            left, are then the processor's, too.
        batch_tokens: Limit of a batch's padded tokens, on either side.
        update_freq: Batches per update; their gradients add up to the large batch's exactly.
        precision: "bfloat16" computes encoder and decoder in it (`model.train.loop.working_copy`)
            and the products of the output projection. Weights, embeddings, softmax and the loss are
            float32 either way, and so is what a CPU sums over tokens for norms. "auto" is the
            faster one of both on the machine that trains, of several workers the first one's
            (`model.train.loop.precision`).
        compile: Run the stacks through `torch.compile` while training; needs triton on CUDA, a
            C++ compiler on a CPU.
        max_skipped_updates: An update whose loss or gradient is not finite is skipped; the run
            ends with an error when more than so many in a row are.
        seed: Of the weights, the dropout and the order of batches.
        log_every_updates: Updates between two lines of progress.
        save_every_minutes: Minutes between two saves of the state a run resumes from; 0 leaves it
            to the updates.
        save_every_updates: Updates between two such saves, besides; 0 leaves it to the minutes.
            With neither, a state is saved before the first update, at a stop and at the end.
        snapshot_every_updates: Updates between two snapshots of the weights, which are scored
            on the dev text and averaged at the end.
        num_snapshots: Snapshots kept, the latest ones.
        score_dev: Score snapshots by BLEU with the real decoder; otherwise by dev loss only.
        metric: What the best snapshot, the patience and the final choice of weights go by; None
            is BLEU, or, while training without `score_dev`, the loss.
        bleu_tokenizer: sacrebleu's tokenizer, "none" for text that is tokenised already; None
            chooses by the target language.
        dev_beam_size: Beams of that decoder while training; the end uses `final_beam_size`.
        final_beam_size: Beams when the weights are chosen and scored at the end.
        max_dev_sentences: First sentences of each dev corpus that are scored while training; 0
            means all.
        patience: The run ends after so many snapshots without a better one; 0 means never.
        average_counts: At the end, averages of so many latest snapshots compete with the best
            single one on the first dev corpus of each direction. None is above `num_snapshots`;
            of the default counts, those that are have no average.
    """

    max_updates: int = 0
    max_minutes: float = 0.0
    time: Time = "wall"
    batch_tokens: int = 4096
    update_freq: int = 1
    precision: PrecisionName = "float32"
    compile: bool = False
    max_skipped_updates: int = 10
    seed: int = 1
    log_every_updates: int = 100
    save_every_minutes: float = 5.0
    save_every_updates: int = 0
    snapshot_every_updates: int = 1000
    num_snapshots: int = 10
    score_dev: bool = True
    metric: Metric | None = None
    bleu_tokenizer: BleuTokenizer | None = None
    dev_beam_size: int = 1
    final_beam_size: int = 4
    max_dev_sentences: int = 0
    patience: int = 0
    average_counts: tuple[int, ...] = _AVERAGE_COUNTS

    def __post_init__(self) -> None:
        """Reject a run without an end and other impossible values."""
        minima = {
            "max_updates": 0,
            "max_minutes": 0,
            "batch_tokens": 1,
            "update_freq": 1,
            "log_every_updates": 1,
            "max_skipped_updates": 0,
            "save_every_minutes": 0,
            "save_every_updates": 0,
            "snapshot_every_updates": 1,
            "num_snapshots": 1,
            "max_dev_sentences": 0,
            "patience": 0,
        }
        for name, minimum in minima.items():
            at_least(f"run.{name}", getattr(self, name), minimum)
        if self.update_freq > _MAX_UPDATE_FREQ:
            raise ConfigError(
                f"run.update_freq is {self.update_freq}; it must be at most {_MAX_UPDATE_FREQ}"
            )
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"run.seed is {self.seed}; it must be from 0 to 2^63 - 1")
        for name in ("dev_beam_size", "final_beam_size"):
            value = getattr(self, name)
            if not 1 <= value <= MAX_BEAM_SIZE:
                raise ConfigError(f"run.{name} is {value}; it must be from 1 to {MAX_BEAM_SIZE}")
        for count in self.average_counts:
            if count < 1:
                raise ConfigError(f"run.average_counts has {count}; counts are at least 1")
            if count > self.num_snapshots and self.average_counts != _AVERAGE_COUNTS:
                raise ConfigError(
                    f"run.average_counts has {count}; no more snapshots are kept than"
                    f" run.num_snapshots, {self.num_snapshots}"
                )
        if not self.max_updates and not self.max_minutes:
            raise ConfigError("run.max_updates and run.max_minutes are both 0; the run has no end")
        if self.metric in {"bleu", "chrf"} and not self.score_dev:
            raise ConfigError(
                f"run.metric is {self.metric!r}; it must be loss when run.score_dev is false"
            )

    @property
    def snapshot_metric(self) -> Metric:
        """Metric that compares snapshots during training."""
        return self.metric or ("bleu" if self.score_dev else "loss")
