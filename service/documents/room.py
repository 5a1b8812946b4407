"""Room for documents: how many jobs a caller may have, and how many bytes all of them.

Owns these limits and their refusals. What has come of a file is what it takes, and of the bytes
that others have not taken each caller leaves a part: whoever announces much, sends much, or slowly,
shuts nobody out. Pure; what there is at a moment is `service.documents.queue`.
"""

from collections.abc import Collection
from dataclasses import dataclass

from service.documents.jobs import DocumentJob
from service.documents.kept import KeptJobs
from service.documents.store import JobFiles
from service.errors import RequestError, overloaded

_RETRY_SECONDS = 60.0
_MAX_LOOK_SECONDS = 60.0
_LEFT_TO_OTHERS = 0.25
"""Of the bytes that others have not taken; the first file of a caller may have them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """Room for jobs, and what one may be.

    Attributes:
        max_bytes: Of one file.
        max_characters: Of the texts of one document.
        max_jobs: Of one caller, those that have ended and are kept included.
        max_total_jobs: Of all callers.
        max_total_bytes: Of all files, those of jobs in work included.
        max_working: Jobs that are worked on at once.
        keep_seconds: How long results can be had.
    """

    max_bytes: int
    max_characters: int
    max_jobs: int
    max_total_bytes: int
    max_working: int
    keep_seconds: float
    max_total_jobs: int = 10_000

    @property
    def look_seconds(self) -> float:
        """Between two looks at which results have been kept for long enough."""
        return min(_MAX_LOOK_SECONDS, self.keep_seconds / 2)


@dataclass(slots=True, kw_only=True, eq=False)
class Upload:
    """A file that arrives: its place, and where it is written.

    Attributes:
        job_id: Of the job that it will be.
        files: Of that job; the source may be written.
        identity: The caller that it counts for.
        num_bytes: Room that it holds, which grows with what comes.
    """

    job_id: str
    files: JobFiles
    identity: str
    num_bytes: int = 0


def check_number(
    limits: QueueLimits,
    jobs: KeptJobs,
    uploads: Collection[Upload],
    identity: str,
    *,
    now: float,
) -> None:
    """Return if one more file may come, whatever it has.

    Args:
        limits: On all of it.
        jobs: Those that there are.
        uploads: Files that arrive already.
        identity: The caller that it would count for.
        now: Seconds since 1970.

    Raises:
        RequestError: A 429: there are too many.
    """
    own = number_of(jobs, uploads, identity)
    if own >= limits.max_jobs:
        words = f"{own} documents are kept for you"
        seconds = _RETRY_SECONDS
        ends = [job.ended for job in jobs.of(identity)]
        if len(ends) == own and None not in ends:  # nothing changes before one is forgotten
            first = min(end for end in ends if end is not None)
            seconds = max(1.0, first + limits.keep_seconds + limits.look_seconds - now)
        raise slowdown(words, value=own, limit=limits.max_jobs, seconds=seconds)
    total = len(jobs) + len(uploads)
    if total >= limits.max_total_jobs:
        raise slowdown(f"{total} documents are kept", value=total, limit=limits.max_total_jobs)


def number_of(jobs: KeptJobs, uploads: Collection[Upload], identity: str) -> int:
    """How many documents a caller has, those that arrive included."""
    return jobs.number_of(identity) + sum(upload.identity == identity for upload in uploads)


def gives_way(
    limits: QueueLimits, jobs: KeptJobs, uploads: Collection[Upload], identity: str
) -> DocumentJob | None:
    """The job of a caller that goes for their next file, because its result has been fetched.

    None where they may have one more in any case, or where all are still waited for.
    """
    if number_of(jobs, uploads, identity) < limits.max_jobs:
        return None
    fetched = (job for job in jobs.of(identity) if job.is_fetched)
    return min(fetched, key=lambda job: (job.ended or 0.0, job.id), default=None)


def check_bytes(
    limits: QueueLimits,
    jobs: KeptJobs,
    uploads: Collection[Upload],
    upload: Upload,
    num_bytes: int,
) -> None:
    """Return if a file that arrives may have so many bytes.

    Args:
        limits: On all of it.
        jobs: Those that there are.
        uploads: Files that arrive, this one included.
        upload: This one.
        num_bytes: That it would have instead of those that it has.

    Raises:
        RequestError: A 429: there is no room.
    """
    more = num_bytes - upload.num_bytes
    kept = jobs.num_bytes + sum(one.num_bytes for one in uploads) + more
    if kept > limits.max_total_bytes:
        raise slowdown(
            f"{kept} bytes of documents would be kept", value=kept, limit=limits.max_total_bytes
        )
    arriving = sum(one.num_bytes for one in uploads if one.identity == upload.identity)
    own_bytes = jobs.bytes_of(upload.identity) + arriving + more
    share = share_of(limits.max_total_bytes - (kept - own_bytes))
    if own_bytes > max(num_bytes, share):  # one file may have more than a share
        words = f"{own_bytes} bytes of documents would be kept for you"
        raise slowdown(words, value=own_bytes, limit=share)


def share_of(free: int) -> int:
    """The most that one caller may have of the bytes that the others have not taken."""
    return free - int(free * _LEFT_TO_OTHERS)


def slowdown(
    words: str, *, value: int, limit: int, seconds: float = _RETRY_SECONDS
) -> RequestError:
    """A 429 in LibreTranslate's words: there is no room for a document.

    Args:
        words: What there would be too much of.
        value: So much there would be.
        limit: So much there may be.
        seconds: After which to ask again.
    """
    return overloaded(
        f"Slowdown: {words}; the limit is {limit}",
        value=value,
        limit=limit,
        seconds=seconds,
    )
