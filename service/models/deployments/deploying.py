"""Interface of the deployments of a process, to whatever translates with them.

Owns the interface alone, and that of the processes that follow them: `rollout` beside it opens
engines, `service.fronts.following` has the deployments of another process, and
`service.fronts.keeper` the followers.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol

from service.models.deployments.deployment import Deployment
from service.models.deployments.holding import Held
from service.models.deployments.registry import Routes


class Followers(Protocol):
    """Processes that translate with this one's deployments."""

    async def began(self, deployment: Deployment) -> None:
        """Have them serve the first one, and return when each does, or after a while."""

    async def prepare(self, deployment: Deployment) -> None:
        """Have all followers read the next deployment's checkpoints; failures stay with them."""

    async def switch(self, deployment: Deployment, kept: Collection[Deployment]) -> None:
        """Have them serve it from now on, and only then return.

        Args:
            deployment: What they have read.
            kept: Earlier ones, which still serve what it could not load.
        """


class OnDemand(Protocol):
    """Loads of checkpoints that their first request loads."""

    def note_use(self, name: str) -> None:
        """A checkpoint is used now."""

    async def load_all(self, names: Sequence[str], held: Held) -> None:
        """Load those that are not in memory, and give all of them to `held`."""


class Deploying(Protocol):
    """Deployments of one process."""

    @property
    def routes(self) -> Routes:
        """Which deployment has which checkpoint."""

    @property
    def on_demand(self) -> OnDemand:
        """What loads those that are loaded by their first request."""

    async def open(self) -> Deployment:
        """The first deployment, which nothing is routed to yet."""

    async def begin(self, deployment: Deployment) -> None:
        """Serve the first deployment."""

    async def reload(self, before: Callable[[], Awaitable[object]] | None = None) -> None:
        """Serve another deployment; `before` is waited for first, unless this is refused."""

    async def wait_turn(self) -> bool:
        """Return once nothing is being replaced; False at once if another one waits for that."""

    async def set_loaded(self, name: str, *, is_loaded: bool) -> None:
        """Load or unload a checkpoint."""

    def abandon(self) -> None:
        """End a reload that is running."""

    async def close(self) -> None:
        """End all engines; pending segments fail."""

    async def stop_retiring(self) -> None:
        """Wait for no request of deployments that are being retired."""
