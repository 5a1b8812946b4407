"""Room for documents: how many jobs a caller may have, and how many bytes all of them.

Owns these limits and their refusals. Of the bytes that others have not taken, each caller leaves a
part, so that whoever sends much, or slowly, shuts nobody out. Pure; what there is at a moment is
`service.documents.queue`.
"""

from collections.abc import Collection
from dataclasses import dataclass

from service.documents.jobs import DocumentJob
from service.documents.store import JobFiles
from service.errors import RequestError, overloaded, too_long

_RETRY_SECONDS = 60.0
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that arrives: its place, and where it is written.

    Attributes:
        job_id: Of the job that it will be.
        files: Of that job; the source may be written.
        identity: The caller that it counts for.
        num_bytes: Room that is held for it.
    """

    job_id: str
    files: JobFiles
    identity: str
    num_bytes: int


def check_room(
    limits: QueueLimits,
    jobs: Collection[DocumentJob],
    uploads: Collection[Upload],
    *,
    identity: str,
    num_bytes: int,
) -> None:
    """Return if one more file may come.

    Args:
        limits: On all of it.
        jobs: Those that there are.
        uploads: Files that arrive already.
        identity: The caller that it would count for.
        num_bytes: The most that it can have.

    Raises:
        RequestError: A 429: there is no room.
    """
    sizes = [job.stored_bytes for job in jobs if job.owner.identity == identity]
    sizes += [upload.num_bytes for upload in uploads if upload.identity == identity]
    own, own_bytes = len(sizes), sum(sizes) + num_bytes
    kept = sum(job.stored_bytes for job in jobs)
    kept += sum(upload.num_bytes for upload in uploads) + num_bytes
    if own >= limits.max_jobs:
        raise slowdown(f"{own} documents are kept for you", value=own, limit=limits.max_jobs)
    total = len(jobs) + len(uploads)
    if total >= limits.max_total_jobs:
        raise slowdown(f"{total} documents are kept", value=total, limit=limits.max_total_jobs)
    if kept > limits.max_total_bytes:
        raise slowdown(
            f"{kept} bytes of documents would be kept", value=kept, limit=limits.max_total_bytes
        )
    free_of_others = limits.max_total_bytes - (kept - own_bytes)
    share = share_of(free_of_others)
    if own and own_bytes > share:
        words = f"{own_bytes} bytes of documents would be kept for you"
        raise slowdown(words, value=own_bytes, limit=share)


def share_of(free: int) -> int:
    """The most that one caller may have of the bytes that the others have not taken."""
    return free - int(free * _LEFT_TO_OTHERS)


def too_large(num_bytes: int, limit: int) -> RequestError:
    """A 413: a document is longer than any may be."""
    return too_long(
        f"the document has {num_bytes} bytes; the limit is {limit}", value=num_bytes, limit=limit
    )


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
