"""Jobs that are kept, with what they take: of all callers and of each, known without a count.

Owns these sums, as room is asked for with every piece of a file that comes, and there may be
thousands of jobs. Pure; whose they are and what becomes of them is `service.documents.queue`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from service.documents.jobs import DocumentJob


class KeptJobs(Mapping[str, DocumentJob]):
    """Jobs by name.

    Args:
        jobs: Those that there are at first.

    Attributes:
        num_bytes: Of the files of all of them.
    """

    def __init__(self, jobs: Iterable[DocumentJob] = ()) -> None:
        self._jobs: dict[str, DocumentJob] = {}
        self._own: dict[str, dict[str, DocumentJob]] = {}
        self._bytes: Counter[str] = Counter()
        self.num_bytes = 0
        for job in jobs:
            self.put(job)

    def __repr__(self) -> str:
        return f"<KeptJobs: {len(self)} of {len(self._own)} callers, {self.num_bytes} bytes>"

    def __getitem__(self, job_id: str) -> DocumentJob:
        return self._jobs[job_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    def number_of(self, identity: str) -> int:
        """How many jobs a caller has."""
        return len(self._own.get(identity, ()))

    def of(self, identity: str) -> list[DocumentJob]:
        """The jobs of a caller."""
        return list(self._own.get(identity, {}).values())

    def bytes_of(self, identity: str) -> int:
        """What the files of a caller's jobs have."""
        return self._bytes[identity]

    def put(self, job: DocumentJob) -> None:
        """Keep a job, in the place of the one of its name."""
        self.pop(job.id)
        self._jobs[job.id] = job
        self._own.setdefault(job.owner.identity, {})[job.id] = job
        self._count(job, 1)

    def pop(self, job_id: str) -> DocumentJob | None:
        """Keep a job no longer; returns it, None where there is none."""
        job = self._jobs.pop(job_id, None)
        if job is None:
            return None
        identity = job.owner.identity
        self._count(job, -1)
        del self._own[identity][job_id]
        if not self._own[identity]:  # callers come and go
            del self._own[identity], self._bytes[identity]
        return job

    def _count(self, job: DocumentJob, sign: int) -> None:
        identity, size = job.owner.identity, sign * job.stored_bytes
        self.num_bytes += size
        self._bytes[identity] += size
