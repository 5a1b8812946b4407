"""Experiment files: one YAML file describes one training run.

Owns the shape of such a file and the errors it can have; every value is checked here, once.
Does not own the run.
"""

import dataclasses
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Union, get_args, get_origin, get_type_hints

import yaml

from model.config import ModelConfig
from model.errors import ConfigError
from model.train.data_config import CorpusConfig, DataConfig, DirectionConfig
from model.train.schedule import ScheduleConfig
from model.train.yaml_lines import key_lines, line_of

__all__ = ["CorpusConfig", "DataConfig", "DirectionConfig", "Experiment", "read_experiment"]

Precision = Literal["float32", "bfloat16"]


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
        normalisation: SentencePiece's rule, such as "nmt_nfkc" or "identity".
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
    normalisation: str = "nmt_nfkc"
    denormalisation: Mapping[str, str] = field(default_factory=dict)
    user_symbols: tuple[str, ...] = ()
    max_lines: int = 0

    def __post_init__(self) -> None:
        """Reject sizes and symbols that cannot be."""
        _at_least("vocabulary.size", self.size, 8)
        _at_least("vocabulary.max_lines", self.max_lines, 0)
        for symbol in self.user_symbols:
            is_repeated = self.user_symbols.count(symbol) > 1
            if is_repeated or not symbol or any(map(str.isspace, symbol)):
                raise ConfigError(
                    f"vocabulary.user_symbols has {symbol!r}; symbols are not empty, have no space"
                    " and occur once"
                )
        if not 0.9 <= self.character_coverage <= 1.0:
            raise ConfigError(
                f"vocabulary.character_coverage is {self.character_coverage};"
                " it must be from 0.9 to 1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """The `ModelConfig` fields that an experiment may set; the vocabulary sets the rest."""

    d_model: int = 512
    num_heads: int = 8
    d_ff: int = 2048
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    activation: Literal["relu", "gelu", "silu"] = "relu"
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    norm_placement: Literal["post", "pre"] = "post"
    position: str = "sinusoidal-marian"
    tie_output: bool = True
    output_bias: bool = True
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0

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
    """Adam and what is done to gradients.

    Attributes:
        beta1: Decay of the mean of gradients.
        beta2: Decay of the mean of squares.
        epsilon: Added to the root of the mean of squares.
        weight_decay: Decoupled (AdamW); 0 is Adam.
        max_gradient_norm: Gradients are scaled down to this norm; 0 leaves them alone.
        label_smoothing: ε of the loss.
    """

    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9
    weight_decay: float = 0.0
    max_gradient_norm: float = 1.0
    label_smoothing: float = 0.1

    def __post_init__(self) -> None:
        """Reject impossible values."""
        for name in ("beta1", "beta2", "label_smoothing"):
            value = getattr(self, name)
            if not 0.0 <= value < 1.0:
                raise ConfigError(f"optimiser.{name} is {value}; it must be in [0, 1)")
        for name in ("weight_decay", "max_gradient_norm"):
            value = getattr(self, name)
            if value < 0.0:
                raise ConfigError(f"optimiser.{name} is {value}; it must be at least 0")
        if self.epsilon <= 0.0:
            raise ConfigError(f"optimiser.epsilon is {self.epsilon}; it must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """How long a run is, and what it leaves behind on its way.

    Attributes:
        max_updates: The run ends after so many updates; 0 means no such limit.
        max_minutes: The run ends after so many minutes of training; 0 means no such limit.
        batch_tokens: Limit of a batch's padded tokens, on either side.
        update_freq: Batches per update; their gradients add up to the large batch's exactly.
        precision: "bfloat16" runs matrix products under autocast.
        seed: Of the weights, the dropout and the order of batches.
        log_every_updates: Updates between two lines of progress.
        save_every_minutes: Minutes between two saves of the state a run resumes from.
        snapshot_every_updates: Updates between two snapshots of the weights, which are scored
            on the dev text and averaged at the end.
        num_snapshots: Snapshots kept, the latest ones.
        score_dev: Score snapshots by BLEU with the real decoder; otherwise by dev loss only.
        dev_beam_size: Beams of that decoder while training; the end uses `final_beam_size`.
        final_beam_size: Beams when the weights are chosen and scored at the end.
        max_dev_sentences: First sentences of each dev corpus that are scored while training; 0
            means all.
        patience: The run ends after so many snapshots without a better one; 0 means never.
        average_counts: At the end, averages of so many latest snapshots compete with the best
            single one on the first dev corpus.
    """

    max_updates: int = 0
    max_minutes: float = 0.0
    batch_tokens: int = 4096
    update_freq: int = 1
    precision: Precision = "float32"
    seed: int = 1
    log_every_updates: int = 100
    save_every_minutes: float = 5.0
    snapshot_every_updates: int = 1000
    num_snapshots: int = 10
    score_dev: bool = True
    dev_beam_size: int = 1
    final_beam_size: int = 4
    max_dev_sentences: int = 0
    patience: int = 0
    average_counts: tuple[int, ...] = (5, 10)

    def __post_init__(self) -> None:
        """Reject a run without an end and other impossible values."""
        minima = {
            "max_updates": 0,
            "max_minutes": 0,
            "batch_tokens": 1,
            "update_freq": 1,
            "log_every_updates": 1,
            "save_every_minutes": 0,
            "snapshot_every_updates": 1,
            "num_snapshots": 1,
            "dev_beam_size": 1,
            "final_beam_size": 1,
            "max_dev_sentences": 0,
            "patience": 0,
        }
        for name, minimum in minima.items():
            _at_least(f"run.{name}", getattr(self, name), minimum)
        if not self.max_updates and not self.max_minutes:
            raise ConfigError("run.max_updates and run.max_minutes are both 0; the run has no end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One training run.

    Attributes:
        name: Name of the checkpoint.
        description: One line for people.
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


def read_experiment(path: Path) -> Experiment:
    """Read an experiment file.

    Raises:
        ConfigError: The file is missing or is not YAML, a key is unknown, missing or there twice,
            or a value has the wrong type or is out of its range; the message names the file, the
            line and the key.
    """
    try:
        text = path.read_text(encoding="utf-8")
        document = yaml.safe_load(text)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: not YAML: {error}") from error
    lines: dict[str, int] = {}
    try:
        lines = key_lines(text)
        experiment = _convert(document, Experiment, "")
    except ConfigError as error:
        line = line_of(str(error), lines)
        where = str(path) if line is None else f"{path}:{line}"
        raise ConfigError(f"{where}: {error}") from error
    assert isinstance(experiment, Experiment)
    return experiment


def _at_least(name: str, value: float, minimum: float) -> None:
    if value < minimum:
        raise ConfigError(f"{name} is {value}; it must be at least {minimum}")


def _convert(value: object, kind: object, where: str) -> object:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _convert_mapping(value, kind, where)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _convert_choice(value, arguments, where)
    if origin is tuple:
        return _convert_list(value, arguments[0], where)
    if origin is Mapping:
        return _convert_items(value, arguments, where)
    if origin in (types.UnionType, Union):
        (kind,) = (argument for argument in arguments if argument is not type(None))
        return None if value is None else _convert(value, kind, where)
    return _convert_scalar(value, kind, where)


def _convert_choice(value: object, choices: tuple[object, ...], where: str) -> object:
    if value not in choices:
        listed = ", ".join(map(str, choices))
        raise ConfigError(f"{where} is {value!r}; it must be one of {listed}")
    return value


def _convert_list(value: object, kind: object, where: str) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise ConfigError(f"{where} is {value!r}; it must be a list")
    return tuple(_convert(item, kind, f"{where}[{index}]") for index, item in enumerate(value))


def _convert_items(value: object, kinds: tuple[object, ...], where: str) -> dict[object, object]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where} is {value!r}; it must be a mapping")
    key_kind, item_kind = kinds
    return {
        _convert(key, key_kind, where): _convert(item, item_kind, f"{where}.{key}")
        for key, item in value.items()
    }


def _convert_mapping(value: object, kind: type, where: str) -> object:
    name = where or "the experiment"
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} is {value!r}; it must be a mapping")
    fields = {item.name: item for item in dataclasses.fields(kind)}
    prefix = f"{where}." if where else ""
    unknown = sorted(f"{prefix}{key}" for key in value if key not in fields)
    if unknown:
        known = ", ".join(sorted(fields))
        raise ConfigError(f"unknown key {', '.join(unknown)}; known here: {known}")
    missing = [
        f"{prefix}{key}"
        for key, item in fields.items()
        if key not in value
        and item.default is dataclasses.MISSING
        and item.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ConfigError(f"missing key {', '.join(missing)}")
    hints = get_type_hints(kind)
    return kind(
        **{key: _convert(item, hints[key], f"{prefix}{key}") for key, item in value.items()}
    )


def _convert_scalar(value: object, kind: object, where: str) -> object:
    if kind is float and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)  # YAML 1.1 reads 1e-3, without a dot, as a string
        except ValueError:
            pass
    elif isinstance(kind, type) and type(value) is kind:  # not isinstance: True is no number
        return value
    wanted = kind.__name__ if isinstance(kind, type) else str(kind)
    raise ConfigError(f"{where} is {value!r}; it must be of type {wanted}")
