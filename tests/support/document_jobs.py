"""Document jobs, and a translator of them that puts texts in capitals."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from service.documents.jobs import DocumentJob, JobOptions, Owner
from service.documents.translating import DocumentRoute, Rest
from service.models.routes.routing import Route

OWNER = Owner(key_name="", identity="address:1")
ASKED = JobOptions(kind="txt", name="a.txt", source="en", target="de")
STAYS = Route(hops=(), stays_in="de")


def job(job_id: str, *, owner: Owner = OWNER, created: float = 0.0, **changes: Any) -> DocumentJob:
    """A job that waits, or as it is said to be."""
    made = DocumentJob(
        id=job_id, secret="s", owner=owner, asked=ASKED, num_bytes=10, created=created
    )
    return replace(made, **changes)


class Capitals:
    """Translator that puts texts in capitals; its gate can be shut."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.seen: list[str] = []
        self.failure: Exception | None = None

    async def choose_route(
        self, asked: JobOptions, texts: Sequence[str]
    ) -> DocumentRoute:  # as the real one
        """The route of a document."""
        return DocumentRoute(route=STAYS, detected="en" if asked.source == "auto" else None)

    async def translate(
        self,
        parts: Sequence[str],
        chosen: DocumentRoute,  # as the real one
        owner: Owner,  # as the real one
        rest: Rest,  # as the real one
    ) -> tuple[list[str], int]:
        """Parts in capitals, once the gate is open."""
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.seen += parts
        return [part.upper() for part in parts], 1
