"""Where a server is in its life, and what it says to whoever comes too early or too late."""

from enum import Enum


class Phase(Enum):
    """Where the front is in its life."""

    BOOTING = "booting"
    READY = "ready"
    RESTARTING = "restarting"
    DRAINING = "draining"
    FAILED = "failed"
    LOST = "lost"


REFUSALS = {
    Phase.BOOTING: "the translation engine is starting",
    Phase.RESTARTING: "the translation engine is starting again",
    Phase.DRAINING: "the server is shutting down",
    Phase.FAILED: "the translation engine did not start",
    Phase.LOST: "the translation engine is not running",
}
