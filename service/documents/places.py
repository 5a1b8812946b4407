"""Places for documents that are worked on: taken, given back while a job rests, and taken again.

Owns how many jobs are in work at once, and which one has the next place. A job that waits for its
caller's characters a minute rests: it holds no place, and no further job of that caller begins
meanwhile, as that would only wait too. What a job's work is, is `service.documents.queue`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

from service.documents.jobs import DocumentJob, next_job


class Places:
    """Places of one queue.

    Args:
        num_places: How many there are.
        on_free: Called when one has become free.
    """

    def __init__(self, num_places: int, on_free: Callable[[], None]) -> None:
        self._num_places = num_places
        self._on_free = on_free
        self._held: set[str] = set()
        self._resting: set[str] = set()
        self._returning: dict[str, asyncio.Event] = {}

    def __repr__(self) -> str:
        return f"<Places: {len(self._held)} of {self._num_places} held, {len(self._resting)} rest>"

    def take(self, jobs: Collection[DocumentJob]) -> DocumentJob | None:
        """The job that a place was given to, and that is to begin; None: there is no such.

        Jobs that come back from a rest have their turn among those that wait, and go on by
        themselves.

        Args:
            jobs: All that there are.
        """
        while len(self._held) < self._num_places:
            job = self._next(jobs)
            if job is None:
                return None
            self._held.add(job.id)
            returns = self._returning.pop(job.id, None)
            if returns is None:
                return job
            self._resting.discard(job.id)
            returns.set()
        return None

    def _next(self, jobs: Collection[DocumentJob]) -> DocumentJob | None:
        resting = {job.owner.identity for job in jobs if job.id in self._resting}
        working = [job for job in jobs if job.id in self._held]
        waiting = [
            job
            for job in jobs
            if job.id in self._returning
            or (job.state == "queued" and self._may_begin(job, resting))
        ]
        return next_job(waiting, working)

    def _may_begin(self, job: DocumentJob, resting: Collection[str]) -> bool:
        has_begun = job.id in self._held or job.id in self._resting
        return not has_begun and job.owner.identity not in resting

    @asynccontextmanager
    async def rest(self, job_id: str) -> AsyncIterator[None]:
        """Be without a place until the block is left, and then until there is one again."""
        self._held.discard(job_id)
        self._resting.add(job_id)
        self._on_free()
        yield
        event = self._returning[job_id] = asyncio.Event()
        self._on_free()
        await event.wait()

    def leave(self, job_id: str) -> None:
        """Forget a job whose work is over, wherever it was."""
        self._held.discard(job_id)
        self._resting.discard(job_id)
        self._returning.pop(job_id, None)
        self._on_free()
