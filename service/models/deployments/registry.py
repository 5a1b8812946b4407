"""Registry of the checkpoints that are served: which deployment has each, and its state.

Owns that one faulty checkpoint stops no other: the next deployment serves what it could load, and
the one before goes on with what only it has in memory. Opening and retiring is
`service.models.deployments.rollout`; which checkpoint translates what is
`service.models.routes.routing`.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from model.config import LengthLimits
from service.engine.errors import QueueFullError
from service.engine.messages import LoadedCheckpoint, Ready
from service.models.checkpoints.catalogue import ModelEntry
from service.models.checkpoints.discovery import FaultyCheckpoint, TextCheckpoint
from service.models.deployments.deployment import Deployment
from service.models.routes.routing import RoutingTable
from service.priority import Priority


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
    """Checkpoints of the latest deployment, and of earlier ones what it could not load.

    Args:
        preferred: Names of checkpoints that go before others for the same languages.
        pivot: Language between two hops; None where there are no such routes.

    Attributes:
        table: Which of them translates what.
        entries: What is told of each, and of those that are unloaded.
    """

    def __init__(self, *, preferred: Sequence[str] = (), pivot: str | None = None) -> None:
        self._preferred = preferred
        self._pivot = pivot
        self._latest: Deployment | None = None
        self._by_name: dict[str, Deployment] = {}
        self._on_demand: dict[str, Deployment] = {}  # a part of them
        self._describe()

    def __repr__(self) -> str:
        return f"Routes({', '.join(map(repr, self.deployments))})"

    @property
    def latest(self) -> Deployment | None:
        """The deployment that was loaded last; None before the first."""
        return self._latest

    @property
    def deployments(self) -> list[Deployment]:
        """All deployments that serve, the latest last."""
        latest = [] if self._latest is None else [self._latest]
        earlier = dict.fromkeys(self._by_name.values())
        return [one for one in earlier if one is not self._latest] + latest

    @property
    def checkpoints(self) -> list[TextCheckpoint]:
        """Every checkpoint that serves, in the order of `loaded`."""
        return [one.checkpoints[place] for one, place in self._served()]

    @property
    def loaded_on_demand(self) -> dict[str, Deployment]:
        """Checkpoints that were loaded on demand, each with a deployment of its own.

        Also those of which the latest deployment could load no other version.
        """
        return dict(self._on_demand)

    def loadable(self, name: str) -> TextCheckpoint | None:
        """A checkpoint that is loaded on demand and is not now, by its name; None if it is none."""
        if self._latest is None or name in self._by_name:
            return None
        on_demand = self._latest.on_demand
        return next((one for one in on_demand if one.manifest.name == name), None)

    def add(self, name: str, deployment: Deployment) -> None:
        """Serve a checkpoint that was loaded on demand."""
        self._by_name[name] = self._on_demand[name] = deployment

    def remove(self, deployment: Deployment) -> None:
        """Serve nothing more with a deployment beside the latest one.

        What cannot be loaded again is not there any more.
        """
        names = [name for name, one in self._by_name.items() if one is deployment]
        for name in names:
            del self._by_name[name]
            self._on_demand.pop(name, None)
        if any(self.loadable(name) is None for name in names):
            self._describe()

    def limits(self, name: str) -> LengthLimits | None:
        """Lengths that a checkpoint was trained for; None if there is none of this name."""
        return self._limits.get(name)

    def find(self, name: str) -> Deployment | None:
        """The deployment that has a checkpoint; None if none has it any more."""
        return self._by_name.get(name)

    def check_open(self, priority: Priority | None, names: Sequence[str] = ()) -> None:
        """Return if the queues have room for a request.

        Args:
            priority: Its class; None where it is not known yet.
            names: Of its checkpoints; without any, one engine that has room is enough.

        Raises:
            QueueFullError: Too many segments wait already.
        """
        for name in names:
            if (deployment := self.find(name)) is not None:
                deployment.check_open(name, priority)
        if names or self._latest is None:
            return
        try:
            self._latest.pool.check_open(priority)
        except QueueFullError:
            if not any(_is_open(one, priority) for one in self.deployments):
                raise

    def take(self, deployment: Deployment) -> list[Deployment]:
        """Serve another deployment, and of what it could not load the versions in memory.

        A name that the new one has, or leaves out, is the new one's.

        Returns:
            Those that serve nothing any more.
        """
        before = self.deployments
        asleep = [checkpoint.manifest.name for checkpoint in deployment.on_demand]
        kept = self.kept(deployment.faulty, deployment.left_out.union(deployment.names, asleep))
        self._latest = deployment
        self._by_name = dict.fromkeys(deployment.names, deployment) | kept
        self._on_demand = {name: one for name, one in kept.items() if name in self._on_demand}
        self._describe()
        return [old for old in before if old not in self.deployments]

    def kept(
        self, faulty: Sequence[FaultyCheckpoint], taken: Collection[str]
    ) -> dict[str, Deployment]:
        """What stays of the versions in memory where some checkpoints cannot be loaded.

        A checkpoint is known by the name of its directory: the folder may be another one, behind
        the same link.

        Args:
            faulty: Those that cannot be.
            taken: Names that are others' then.
        """
        directories = {fault.directory.name for fault in faulty}
        return {
            one.names[place]: one
            for one, place in self._served()
            if one.checkpoints[place].directory.name in directories
            and one.names[place] not in taken
            and one.pool.is_ready
        }

    def _describe(self) -> None:
        """Make anew what is told of all checkpoints, and the table of those that translate."""
        on_demand = () if self._latest is None else self._latest.on_demand
        unloaded = () if self._latest is None else self._latest.unloaded
        can_sleep = {checkpoint.manifest.name for checkpoint in on_demand}
        stay = [one for one in self.checkpoints if one.manifest.name not in can_sleep]
        self.table = RoutingTable(
            [checkpoint.offer for checkpoint in (*stay, *on_demand)],
            preferred=self._preferred,
            pivot=self._pivot,
        )
        described = [*stay, *on_demand, *unloaded]
        self.entries: tuple[ModelEntry, ...] = tuple(one.entry for one in described)
        self._limits: dict[str, LengthLimits] = {
            one.manifest.name: one.manifest.limits for one in described
        }

    def _served(self) -> Iterator[tuple[Deployment, int]]:
        """Every checkpoint that serves: its deployment, and its place there."""
        for deployment in self.deployments:
            for place, name in enumerate(deployment.names):
                if self._by_name.get(name) is deployment:
                    yield deployment, place

    @property
    def loaded(self) -> list[LoadedCheckpoint]:
        """Every checkpoint that serves, as its engine has described it."""
        return [one.pool.ready.checkpoints[place] for one, place in self._served()]

    @property
    def ready(self) -> Ready | None:
        """The latest engine's Ready message, with all checkpoints that serve."""
        if self._latest is None:
            return None
        return msgspec.structs.replace(self._latest.pool.ready, checkpoints=tuple(self.loaded))

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


def _is_open(deployment: Deployment, priority: Priority | None) -> bool:
    try:
        deployment.pool.check_open(priority)
    except QueueFullError:
        return False
    return True
