"""Foreign model as an importer reads it: a description, text files, and each tensor's place.

Owns the types between the importers, which know one format each, and the conversion, which writes
checkpoints. An importer reads headers and small files at once; tensors it reads when they are asked
for, one by one, so that a network is converted without ever being in memory as a whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import Tensor

from model.checkpoint.manifest import Licence
from model.checkpoint.tensors.safetensors_file import QuantisedRows
from model.checkpoint.weights import TokenizerParts
from model.config import LengthLimits, ModelConfig, SpecialTokens
from model.shortlist import Shortlist
from model.text.languages.tags import Language, LanguagePair

__all__ = [
    "FamilyImporter",
    "ForeignTensor",
    "ImportOptions",
    "ImportedModel",
    "Importer",
    "QuantisedRows",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTensor:
    """One tensor of the network, still in its source.

    Attributes:
        shape: As the network has it, outputs first.
        read: Reads it, float or quantised, with that shape; may be called more than once.
    """

    shape: tuple[int, ...]
    read: Callable[[], Tensor | QuantisedRows]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedModel:
    """A foreign model, ready to be written as a checkpoint.

    Attributes:
        family: Of the network, for people ("marian", "m2m100", "t5").
        format: Of the files, for people ("Hugging Face", "CTranslate2").
        name: Suggested name of the checkpoint.
        description: One line for people.
        licence: Of the weights, as far as the source says; None if it does not.
        licences: Of corpora or networks it was made of.
        network: The shape.
        tokens: Special ids.
        pairs: Directions.
        limits: Lengths.
        tokenizer: SentencePiece files and tables.
        tensors: By the names of the network's `state_dict`.
        unused: Names of tensors of the source that nothing reads; a conversion fails over them.
        notes: Sentences for the card: what differs from the original program.
        languages: Where each is translated into each other, whose `all_pairs` are then `pairs`.
        shortlist: What sentences may choose by their source tokens; None: the source has no table.
    """

    family: str
    format: str
    name: str
    description: str
    licence: str | None
    licences: tuple[Licence, ...]
    network: ModelConfig
    tokens: SpecialTokens
    pairs: tuple[LanguagePair, ...]
    limits: LengthLimits
    tokenizer: TokenizerParts
    tensors: Mapping[str, ForeignTensor]
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    languages: tuple[Language, ...] = ()
    shortlist: Shortlist | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Options of an import: facts of a model that its files do not tell.

    Attributes:
        pairs: Source and target tags, canonical, which may be others that stand for those of the
            model (`model.exchange.imports.languages.nearest_tag`); empty takes what the files say.
        family: Of multilingual networks (`model.exchange.imports.language_tokens.FAMILIES`), for
            files that do not tell; None takes what they say.
        carried: Directions among `pairs`, with what asks for them as an export carried it along:
            what a vocabulary lets guess of them need not be.
    """

    pairs: tuple[tuple[str, str], ...] = ()
    family: str | None = None
    carried: tuple[LanguagePair, ...] = ()


class Importer(Protocol):
    """One format, or one family of it."""

    @property
    def name(self) -> str:
        """For people: what `dragoman convert` says that it has found."""
        ...

    def recognises(self, source: Path) -> bool:
        """Whether `source`, a file or a folder, is of this format, by its content; never raises."""
        ...

    def read(self, source: Path, options: ImportOptions) -> ImportedModel:
        """Headers, options, vocabularies; no weights yet.

        Raises:
            ForeignModelError: With every problem: unsupported options, missing files, tensors that
                are missing or have other shapes.
        """
        ...


@runtime_checkable
class FamilyImporter(Protocol):
    """An importer of files that may not tell of which family a network is.

    Attributes:
        families: Those that a person may name.
    """

    families: tuple[str, ...]
