"""Experiment files: one YAML file describes one training run.

Owns the keys of such a file, except those of its text (`model.train.config.data`) and learning rate
(`model.train.config.schedule`), and the limits of its values. Does not own how YAML becomes
dataclasses (`model.train.config.yaml_config`), nor the run.
"""

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from model.checkpoint.consistency import MAX_LAYERS, MAX_WIDTH
from model.checkpoint.names import name_problem
from model.config import (
    Activation,
    DecoderCell,
    ModelConfig,
    NormKind,
    NormPlacement,
    PositionKind,
)
from model.errors import ConfigError
from model.text.languages.tags import LanguagePair
from model.train.config.data import DataConfig, DirectionConfig, tag_piece
from model.train.config.presets import NETWORK_PRESETS
from model.train.config.schedule import ScheduleConfig
from model.train.config.yaml_config import read_placed_yaml
from model.train.config.yaml_lines import KeyPlaces

Normalisation = Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"]
"""The rules that SentencePiece has by name; "_cf" folds upper case."""

Precision = Literal["float32", "bfloat16"]
Metric = Literal["bleu", "chrf", "loss"]
BleuTokenizer = Literal["13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none"]
"""As `model.offline.evaluate.TOKENIZERS`."""

MAX_BEAM_SIZE = 128
"""Rows of the `Translator` that scores."""

_MAX_PIECES = 1_000_000  # SentencePiece has no limit of its own, and fails in odd ways far above
_MAX_UPDATE_FREQ = 100_000  # all batches of an update are made before its first
_AVERAGE_COUNTS = (5, 10)
_SPECIAL_PIECE = re.compile(r"<pad>|</?s>|<unk>|<0x[0-9A-Fa-f]{2}>")


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyConfig:
    """A SentencePiece model, trained on the training split only.

    Attributes:
        kind: "bpe" or "unigram".
        size: Pieces, special and byte pieces included; per side when not joint.
        is_joint: One model for both sides.
        character_coverage: Share of characters that get a piece of their own.
        byte_fallback: Characters without a piece are spelt in bytes, so nothing is unknown.
        split_digits: Every digit is a piece.
        normalisation: SentencePiece's rule.
        denormalisation: What is put back wherever pieces are joined to text: NFKC folds the
            full-width punctuation that Chinese is written with.
        user_symbols: Texts that are always one piece, such as placeholders.
        max_lines: Learn from so many lines of either side, evenly spread over the text; 0 means
            all. SentencePiece holds in memory what it learns from.
    """

    kind: Literal["bpe", "unigram"] = "bpe"
    size: int = 8000
    is_joint: bool = True
    character_coverage: float = 0.9995
    byte_fallback: bool = True
    split_digits: bool = True
    normalisation: Normalisation = "nmt_nfkc"
    denormalisation: Mapping[str, str] = field(default_factory=dict)
    user_symbols: tuple[str, ...] = ()
    max_lines: int = 0

    def __post_init__(self) -> None:
        """Reject sizes and symbols that cannot be."""
        if not 8 <= self.size <= _MAX_PIECES:
            raise ConfigError(f"vocabulary.size is {self.size}; it must be from 8 to {_MAX_PIECES}")
        _at_least("vocabulary.max_lines", self.max_lines, 0)
        for symbol in self.user_symbols:
            is_repeated = self.user_symbols.count(symbol) > 1
            if is_repeated or not symbol or "\0" in symbol or any(map(str.isspace, symbol)):
                raise ConfigError(
                    f"vocabulary.user_symbols has {symbol!r}; symbols are not empty, have no space"
                    " and no NUL, and occur once"
                )
            if _SPECIAL_PIECE.fullmatch(symbol):
                raise ConfigError(
                    f"vocabulary.user_symbols has {symbol!r}; text must not spell a special piece"
                )
        if "" in self.denormalisation:
            raise ConfigError("vocabulary.denormalisation has '' as a key; it must be some text")
        for text in (*self.denormalisation, *self.denormalisation.values()):
            if "\0" in text:
                raise ConfigError(f"vocabulary.denormalisation has {text!r}; text has no NUL here")
        if not 0.9 <= self.character_coverage <= 1.0:
            raise ConfigError(
                f"vocabulary.character_coverage is {self.character_coverage};"
                " it must be from 0.9 to 1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """Fields of `ModelConfig` that an experiment may set; the vocabulary sets the rest.

    In a file, `preset` names the values to begin with: `model.train.config.presets`.
    """

    PRESETS: ClassVar = NETWORK_PRESETS

    d_model: int = 512
    num_heads: int = 8
    d_ff: int = 2048
    decoder_d_ff: int | None = None
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    decoder_cell: DecoderCell = "self-attention"
    gated_feed_forward: bool = False
    feed_forward_bias: bool = True
    embedding_norm: bool = False
    scale_attention: bool = True
    scale_output: bool = False
    activation: Activation = "relu"
    norm: NormKind = "layernorm"
    norm_placement: NormPlacement = "post"
    position: PositionKind = "sinusoidal-marian"
    tie_output: bool = True
    output_bias: bool = True
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0

    def __post_init__(self) -> None:
        """Reject shapes that cannot work."""
        try:
            self.build(source_size=1, target_size=1, is_joint=True)  # sizes play no part here
        except ConfigError as error:
            raise ConfigError(f"network.{error}") from error
        for name in ("d_model", "num_heads", "d_ff"):
            _at_most(f"network.{name}", getattr(self, name), MAX_WIDTH)
        if self.decoder_d_ff is not None:
            _at_most("network.decoder_d_ff", self.decoder_d_ff, MAX_WIDTH)
        for name in ("num_encoder_layers", "num_decoder_layers"):
            _at_most(f"network.{name}", getattr(self, name), MAX_LAYERS)

    def build(self, *, source_size: int, target_size: int, is_joint: bool) -> ModelConfig:
        """The network's configuration for vocabularies of the given sizes.

        Raises:
            ConfigError: The values contradict each other.
        """
        fields = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return ModelConfig(
            vocab_size=source_size,
            target_vocab_size=None if is_joint else target_size,
            share_embeddings=is_joint,
            pad_id=0,
            **fields,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimiserConfig:
    """Adam, the loss, gradient clipping and the moving average of weights.

    Attributes:
        beta1: Decay of the mean of gradients.
        beta2: Decay of the mean of squares.
        epsilon: Added to the root of the mean of squares.
        weight_decay: Decoupled (AdamW); 0 is Adam.
        max_gradient_norm: Gradients are scaled down to this norm; 0 leaves them alone.
        label_smoothing: ε of the loss.
        rdrop_alpha: α of R-Drop (Liang et al. 2021): every pair passes twice with different
            dropout, and the two distributions are drawn together; 0 is one pass.
        ema_decay: The weights' moving average keeps so much of itself at every update; it is
            what dev text scores, and competes at the end. 0 keeps no such average.
    """

    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9
    weight_decay: float = 0.0
    max_gradient_norm: float = 1.0
    label_smoothing: float = 0.1
    rdrop_alpha: float = 0.0
    ema_decay: float = 0.0

    def __post_init__(self) -> None:
        """Reject impossible values."""
        for name in ("beta1", "beta2", "label_smoothing", "ema_decay"):
            value = getattr(self, name)
            if not 0.0 <= value < 1.0:
                raise ConfigError(f"optimiser.{name} is {value}; it must be in [0, 1)")
        for name in ("weight_decay", "max_gradient_norm", "rdrop_alpha"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise ConfigError(f"optimiser.{name} is {value}; it must be at least 0, and finite")
        if not 0.0 < self.epsilon < math.inf:
            raise ConfigError(
                f"optimiser.epsilon is {self.epsilon}; it must be above 0, and finite"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Length of a run, its batches, and when it saves and scores.

    Attributes:
        max_updates: The run ends after so many updates; 0 means no such limit.
        max_minutes: The run ends after so many minutes of training; 0 means no such limit.
        batch_tokens: Limit of a batch's padded tokens, on either side.
        update_freq: Batches per update; their gradients add up to the large batch's exactly.
        precision: "bfloat16" runs matrix products under autocast.
        compile: Run the stacks through `torch.compile` while training; needs triton on CUDA, a
            C++ compiler on a CPU.
        max_skipped_updates: An update whose loss or gradient is not finite is skipped; the run
            ends with an error when more than so many in a row are.
        seed: Of the weights, the dropout and the order of batches.
        log_every_updates: Updates between two lines of progress.
        save_every_minutes: Minutes between two saves of the state a run resumes from.
        save_every_updates: Updates between two such saves, besides; 0 leaves it to the minutes.
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
    batch_tokens: int = 4096
    update_freq: int = 1
    precision: Precision = "float32"
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
            _at_least(f"run.{name}", getattr(self, name), minimum)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One training run.

    Attributes:
        name: Name of the checkpoint.
        description: One line of text.
        licence: Of the weights, SPDX where there is one.
        notes: Paragraphs for the card: what the checkpoint is and is not good for.
        data: Text.
        vocabulary: Pieces.
        network: Shape.
        optimiser: Adam, clipping, smoothing.
        schedule: Learning rate.
        run: Length, batches, saving.
    """

    name: str
    licence: str
    data: DataConfig
    description: str = ""
    notes: str = ""
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def __post_init__(self) -> None:
        """Reject what no checkpoint may say, and parts that contradict each other."""
        for name, value in (("name", self.name), ("licence", self.licence)):
            if not value.strip():
                raise ConfigError(f"{name} is {value!r}; it must not be empty")
            if problem := name_problem(value):
                raise ConfigError(f"{name} {problem}")
        shape = self.network.build(source_size=1, target_size=1, is_joint=True)
        num_positions = shape.max_positions - shape.position_offset
        if shape.position == "learned" and self.data.max_length >= num_positions:
            raise ConfigError(
                f"data.max_length is {self.data.max_length}; it must be below the {num_positions}"
                " positions of network.position 'learned'"
            )
        tags = set(map(tag_piece, self.data.pairs))
        for symbol in self.vocabulary.user_symbols:
            if symbol in tags:
                raise ConfigError(
                    f"vocabulary.user_symbols has {symbol!r}, the tag of a direction of data.pairs;"
                    " text must not spell it"
                )
        drawn = self.data.regularisation
        if drawn is not None and drawn.nbest_size != -1 and self.vocabulary.kind == "bpe":
            raise ConfigError(
                f"data.regularisation.nbest_size is {drawn.nbest_size}; it must be -1 where"
                " vocabulary.kind is 'bpe', whose merges have no best segmentations"
            )


def read_experiment(path: Path) -> Experiment:
    """Read an experiment file; errors as of `read_placed_experiment`."""
    return read_placed_experiment(path)[0]


def read_placed_experiment(path: Path) -> tuple[Experiment, KeyPlaces]:
    """Read an experiment file, and where its keys stand.

    Raises:
        ConfigError: The file is missing or is not YAML, a key is unknown, missing or there twice,
            or a value has the wrong type or is out of its range; the message names the file, the
            line and the key.
    """
    return read_placed_yaml(path, Experiment)


def direction_pair(experiment: Experiment, direction: DirectionConfig) -> LanguagePair:
    """A direction as a pair of the manifest, with a tag where directions are listed.

    Raises:
        InputError: A language is not a BCP-47 tag.
    """
    tags = (tag_piece(direction),) if experiment.data.is_tagged else ()
    return LanguagePair(source=direction.source, target=direction.target, source_prefix=tags)


def _at_least(name: str, value: float, minimum: float) -> None:
    if not minimum <= value < math.inf:
        finite = ", and finite" if isinstance(value, float) else ""
        raise ConfigError(f"{name} is {value}; it must be at least {minimum}{finite}")


def _at_most(name: str, value: int, maximum: int) -> None:
    if value > maximum:
        raise ConfigError(f"{name} is {value}; a checkpoint has at most {maximum}")
