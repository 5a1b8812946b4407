"""Deployments that a request has got from a load that it waited for.

Owns that each of them is there until the request has ended, whatever is loaded in its place
meanwhile. What loads is `service.models.deployments.on_demand`; the place of a request among all
others is `service.models.deployments.requests_in_flight`.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from service.models.deployments.deployment import Deployment


class Held:
    """Deployments that stay until this is left; a load may give them at any time before.

    So a request that is cancelled, whether it still waits or has just been served, holds nothing.
    """

    __slots__ = ("_deployments", "_is_left")

    def __init__(self) -> None:
        self._deployments: dict[str, Deployment] = {}
        self._is_left = False

    def __repr__(self) -> str:
        return f"<Held {', '.join(self._deployments)}>"

    def give(self, deployments: Mapping[str, Deployment]) -> None:
        """Hold the deployments of some checkpoints, by their names; none once this is left."""
        if self._is_left:
            return
        for name, deployment in deployments.items():
            if name not in self._deployments:
                deployment.in_flight.enter()
                self._deployments[name] = deployment

    def find(self, name: str) -> Deployment | None:
        """The deployment of a checkpoint; None if none was given."""
        return self._deployments.get(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_left = True
        for deployment in self._deployments.values():
            deployment.in_flight.leave()
        self._deployments.clear()
