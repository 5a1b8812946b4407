"""Experiment files: one YAML file describes one training run.

Owns the keys of such a file at its top, and what its parts must not contradict each other in. Each
part is a file beside this one. Does not own how YAML becomes dataclasses
(`model.train.config.yaml_config`), nor the run.
"""

from dataclasses import dataclass, field
from pathlib import Path

from model.checkpoint.description.names import name_problem
from model.errors import ConfigError
from model.text.languages.tags import LanguagePair
from model.train.config.data import DataConfig, DirectionConfig, tag_piece
from model.train.config.network import NetworkConfig
from model.train.config.optimiser import OptimiserConfig
from model.train.config.run import RunConfig
from model.train.config.schedule import ScheduleConfig
from model.train.config.vocabulary import VocabularyConfig
from model.train.config.yaml_config import read_placed_yaml
from model.train.config.yaml_lines import KeyPlaces


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
    run: RunConfig

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
