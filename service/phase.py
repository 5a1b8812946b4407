"""Phases of the front's lifecycle, and the refusals outside of readiness."""

from enum import Enum


class Phase(Enum):
    """Phase of the front's lifecycle."""

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
