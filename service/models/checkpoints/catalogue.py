"""Catalogue of the models: the public facts of each checkpoint, loaded or not.

Owns the entries, which are made once a load: a checkpoint may have tens of thousands of pairs.
Which are loaded is `service.models.deployments.registry`; how an entry is answered
`service.api.operations`.
"""

from dataclasses import dataclass

from model.checkpoint.files.verification import num_weight_bytes
from model.checkpoint.manifest import Manifest
from model.text.languages.tags import LanguagePair

MAX_LISTED_PAIRS = 200
"""Pairs that an entry lists; of a checkpoint with more, its languages alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """Entry of one checkpoint.

    Attributes:
        name: Of the checkpoint.
        description: One line for people.
        licence: Of the weights.
        num_weight_bytes: Of the weights, as they are stored.
        sources: Languages that it translates from.
        targets: Languages that it translates to.
        num_pairs: Directions.
        pairs: The directions; None where there are more than `MAX_LISTED_PAIRS`.
    """

    name: str
    description: str
    licence: str
    num_weight_bytes: int
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    num_pairs: int
    pairs: tuple[LanguagePair, ...] | None


def entry_of(manifest: Manifest) -> ModelEntry:
    """The entry of a checkpoint."""
    pairs = manifest.pairs
    return ModelEntry(
        name=manifest.name,
        description=manifest.description,
        licence=manifest.licence,
        num_weight_bytes=num_weight_bytes(manifest),
        sources=tuple(dict.fromkeys(pair.source for pair in pairs)),
        targets=tuple(dict.fromkeys(pair.target for pair in pairs)),
        num_pairs=len(pairs),
        pairs=pairs if len(pairs) <= MAX_LISTED_PAIRS else None,
    )
