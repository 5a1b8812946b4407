"""Routes from language pairs to deployments, and the state of every deployed checkpoint.

Owns that one faulty checkpoint stops no other: the next deployment serves what it could load, and
the one before goes on with what only it has in memory. Opening and retiring is
`service.models.rollout`.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from model.text.language import LanguagePair
from service.engine.messages import LoadedCheckpoint, Ready
from service.labels import Served
from service.models.deployment import Deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A checkpoint that could not be loaded as it is on the disk.

    Attributes:
        directory: Name of its directory, for people.
        reason: Why, for people; without the path to the checkpoints.
        is_served: An earlier version of it still is.
    """

    directory: str
    reason: str
    is_served: bool


class Routes:
    """Routes to the latest deployment, and to earlier ones for what it could not load."""

    def __init__(self) -> None:
        self._latest: Deployment | None = None
        self._by_pair: dict[LanguagePair, Deployment] = {}

    def __repr__(self) -> str:
        return f"Routes({', '.join(map(repr, self.deployments))})"

    @property
    def latest(self) -> Deployment | None:
        """The deployment that was loaded last; None before the first."""
        return self._latest

    @property
    def pairs(self) -> tuple[LanguagePair, ...]:
        """All pairs that are translated."""
        return tuple(self._by_pair)

    @property
    def served(self) -> dict[LanguagePair, Served]:
        """The labels of these pairs."""
        return {pair: one.served[pair] for pair, one in self._by_pair.items()}

    @property
    def deployments(self) -> list[Deployment]:
        """All deployments that serve, the latest last."""
        latest = [] if self._latest is None else [self._latest]
        earlier = dict.fromkeys(self._by_pair.values())
        return [one for one in earlier if one is not self._latest] + latest

    def find(self, pair: LanguagePair) -> Deployment | None:
        """The deployment that translates the pair; None if none does any more."""
        return self._by_pair.get(pair)

    def take(self, deployment: Deployment) -> list[Deployment]:
        """Serve another deployment, and of what it could not load the versions in memory.

        A checkpoint is known by the name of its directory: the folder may be another one, behind
        the same link. A name or a pair of languages that the new one has is the new one's.

        Returns:
            Those that serve nothing any more.
        """
        before = self.deployments
        faulty = {fault.directory.name for fault in deployment.faulty}
        names = set(deployment.names)
        languages = {(pair.source, pair.target) for pair in deployment.pairs}
        by_pair = dict.fromkeys(deployment.pairs, deployment)
        for old, place in list(self._served()):
            checkpoint = old.checkpoints[place]
            pairs = checkpoint.manifest.pairs
            if (
                checkpoint.directory.name in faulty
                and old.supervisor.is_ready
                and checkpoint.manifest.name not in names
                and languages.isdisjoint((pair.source, pair.target) for pair in pairs)
            ):
                by_pair |= dict.fromkeys(pairs, old)
        self._latest, self._by_pair = deployment, by_pair
        return [old for old in before if old not in self.deployments]

    def _served(self) -> Iterator[tuple[Deployment, int]]:
        """Every checkpoint that serves: its deployment, and its place there."""
        for deployment in self.deployments:
            for place, checkpoint in enumerate(deployment.checkpoints):
                if self._by_pair.get(checkpoint.manifest.pairs[0]) is deployment:
                    yield deployment, place

    @property
    def loaded(self) -> list[LoadedCheckpoint]:
        """Every checkpoint that serves, as its engine has described it."""
        return [one.supervisor.ready.checkpoints[place] for one, place in self._served()]

    @property
    def ready(self) -> Ready | None:
        """The latest engine's Ready message, with all checkpoints that serve."""
        if self._latest is None:
            return None
        return msgspec.structs.replace(
            self._latest.supervisor.ready, checkpoints=tuple(self.loaded)
        )

    @property
    def faults(self) -> list[Fault]:
        """The checkpoints that the latest deployment could not load."""
        if self._latest is None:
            return []
        served = {one.checkpoints[place].directory.name for one, place in self._served()}
        return [
            Fault(
                directory=os.fsencode(fault.directory.name).decode(errors="replace"),
                reason=fault.reason.replace(f"{fault.directory.parent}{os.sep}", ""),
                is_served=fault.directory.name in served,
            )
            for fault in self._latest.faulty
        ]

    @property
    def by_directory(self) -> dict[str, bool]:
        """Names of all directories of the latest deployment, and whether each was loaded."""
        loaded = [] if self._latest is None else self._latest.checkpoints
        names = [os.fsencode(one.directory.name).decode(errors="replace") for one in loaded]
        return dict.fromkeys(names, True) | {fault.directory: False for fault in self.faults}
