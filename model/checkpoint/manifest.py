"""The description of a checkpoint: what config.json says, as frozen dataclasses.

Owns the parts of the description (network, tokens, languages, limits, licences, tensors, files). It
does not own the file itself (`model.checkpoint.description.config_file`) or the checks between the
parts (`model.checkpoint.description.consistency`). Imports no torch: the front process reads it
too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from model.config import LengthLimits, ModelConfig, SpecialTokens
from model.text.languages.tags import Language, LanguagePair
from model.text.subwords.moses import MosesBpe
from model.text.subwords.normalisation import Normalisation

CONFIG_FILE = "config.json"
SCALE_SUFFIX = ".scale"

TensorType = Literal["float32", "float16", "bfloat16", "int8"]
Quantisation = Literal["int8-row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Licence:
    """Licence of a corpus, or of a network that was converted.

    Attributes:
        corpus: Name of the corpus, or of the network that was converted.
        licence: SPDX identifier where there is one.
        url: Where it was published.
    """

    corpus: str
    licence: str
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorEntry:
    """Storage of one tensor of the network.

    Attributes:
        shape: Its shape in the network and in the file.
        dtype: Its element type in the file.
        quantisation: "int8-row" when rows are int8 with a float32 scale each, stored as
            `<name>.scale` of shape (rows,); None when the values are the weights.
    """

    shape: tuple[int, ...]
    dtype: TensorType
    quantisation: Quantisation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFiles:
    """Names of the files, all directly in the checkpoint's directory.

    Attributes:
        source_tokenizer: SentencePiece file of the source; a file of merges where the manifest
            has `moses`.
        target_tokenizer: That of the target; may be the same file.
        source_vocabulary: JSON object from piece to id, apart from the tokenizer's file.
        target_vocabulary: That of the target; may be the same file.
    """

    weights: str = "model.safetensors"
    source_tokenizer: str = "source.spm"
    target_tokenizer: str = "source.spm"
    source_vocabulary: str = "vocabulary.json"
    target_vocabulary: str = "vocabulary.json"
    card: str = "card.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortlistEntry:
    """A lexical shortlist beside the network: target tokens by source token (`model.shortlist`).

    Attributes:
        num_always: Target tokens that every sentence may choose.
        num_ids: Entries of all source tokens together.
        with_source: Source tokens may be chosen too: both sides have one vocabulary.
        file: Its file, directly in the checkpoint's directory.
    """

    num_always: int
    num_ids: int
    with_source: bool
    file: str = "shortlist.safetensors"


@dataclass(frozen=True, kw_only=True)  # without slots: the directions are looked up in a table
class Manifest:
    """Description of a checkpoint: all of config.json but the version of its schema.

    Any new field must have a default: what checkpoints did before there was such a field.

    Attributes:
        name: Short name, shown to users (`dragoman-en-zh`).
        description: One line for people.
        licence: Licence of the weights themselves, SPDX where there is one.
        network: Shape of the network.
        pairs: Directions it translates.
        licences: Of every corpus it was trained on.
        tensors: How every tensor is stored, by the names of the network's `state_dict`.
        moses: How text becomes pieces where SentencePiece does not; None means that it does.
        languages: Where each is translated into each other: `pairs` are then all of them
            (`model.text.languages.tags.all_pairs`), and the file lists languages and no pairs.
        normalisation: How source text is cleaned before it becomes pieces; None leaves it as it is.
        shortlist: What sentences may choose by their source tokens, where that is asked for; None:
            there is no such table.
    """

    name: str
    description: str
    licence: str
    network: ModelConfig
    tokens: SpecialTokens
    pairs: tuple[LanguagePair, ...]
    limits: LengthLimits
    licences: tuple[Licence, ...]
    tensors: Mapping[str, TensorEntry]
    files: CheckpointFiles
    moses: MosesBpe | None = None
    languages: tuple[Language, ...] = ()
    normalisation: Normalisation | None = None
    shortlist: ShortlistEntry | None = None

    def pair(self, source: str, target: str) -> LanguagePair | None:
        """The direction between two canonical tags, or None when it is not translated."""
        return self._by_tags.get((source, target))

    @cached_property
    def _by_tags(self) -> Mapping[tuple[str, str], LanguagePair]:
        return {(pair.source, pair.target): pair for pair in self.pairs}

    @property
    def max_prefix_length(self) -> int:
        """Tokens that a decoder is fed at most before it may choose: start token, forced prefix."""
        return 1 + max((len(pair.target_prefix) for pair in self.pairs), default=0)

    @property
    def max_target_positions(self) -> int:
        """Tokens that a decoder is fed at most: the longest prefix, and the longest target."""
        return self.limits.max_target_length + self.max_prefix_length
