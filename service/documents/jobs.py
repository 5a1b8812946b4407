"""Jobs: documents that are to be translated, and what becomes of them; types and pure choices.

Owns what is known of a job, which of those that wait is next, and the refusals that concern one.
It keeps nothing: memory and disk are `service.documents.queue` and `service.documents.store`.
"""

import errno
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from service.errors import Problem, RequestError, unavailable

NO_ROOM = "there is no room for the document on the server's disk"

JobState = Literal["queued", "translating", "done", "failed"]
"""It waits; it is read, translated or put together; its result is there; there will be none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """Options of a document's translation.

    Attributes:
        kind: One of `model.documents.formats.KINDS`.
        name: Of the file, without a folder.
        source: Tag of its language, or "auto".
        target: Tag of the language that it is wanted in.
        model: Name of the only checkpoint that may translate it; None leaves it to the server.
    """

    kind: str
    name: str
    source: str
    target: str
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Owner of a job.

    Attributes:
        key_name: Name of the key that it was sent with, without which nobody sees it; empty where
            it came without one.
        identity: The caller that it counts for.
        characters_per_minute: Which they may have translated; None is no limit.
    """

    key_name: str
    identity: str
    characters_per_minute: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentJob:
    """A document on its way.

    Attributes:
        id: A name that nobody guesses.
        secret: Another one, for contracts whose clients show one.
        owner: Whose it is.
        asked: What is to be done.
        num_bytes: Of the file.
        created: When it came, seconds since 1970.
        state: What became of it.
        ended: When it was done or failed.
        detected: Tag of the language that its source was found to be in.
        num_characters: Of its texts; 0 while it has not been read.
        num_done: Of these, how many are translated.
        num_flagged: Segments whose checks failed.
        result_bytes: Of the translated file.
        work_bytes: Of the files that it has beside its source while it is worked on.
        error: Why there is no result, as a sentence.
        is_fetched: Whoever could ask for its result has had all of it: nobody need delete it.
    """

    id: str
    secret: str
    owner: Owner
    asked: JobOptions
    num_bytes: int
    created: float
    state: JobState = "queued"
    ended: float | None = None
    detected: str | None = None
    num_characters: int = 0
    num_done: int = 0
    num_flagged: int = 0
    result_bytes: int = 0
    work_bytes: int = 0
    error: str | None = None
    is_fetched: bool = False

    @property
    def is_ended(self) -> bool:
        """It is done or has failed."""
        return self.state in ("done", "failed")

    @property
    def stored_bytes(self) -> int:
        """Of its files: the result of one that has ended, until then all that it has."""
        return self.result_bytes if self.is_ended else self.num_bytes + self.work_bytes

    @property
    def progress(self) -> float:
        """What is translated, from 0 to 1."""
        if self.state == "done":
            return 1.0
        return self.num_done / self.num_characters if self.num_characters else 0.0


def next_job(
    waiting: Iterable[DocumentJob], working: Collection[DocumentJob]
) -> DocumentJob | None:
    """The job whose turn it is: the oldest of the callers that have fewest in work."""
    in_work = Counter(job.owner.identity for job in working)
    return min(
        waiting, key=lambda job: (in_work[job.owner.identity], job.created, job.id), default=None
    )


def no_such_document() -> RequestError:
    """A 404: there is no such job, or it is another caller's."""
    return RequestError(
        Problem(status=404, code="unknown_document", message="there is no such document")
    )


def is_full(error: Exception) -> bool:
    """Whether an error says that a disk, or a user's part of it, is full."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def not_kept(error: Exception | None = None) -> RequestError:
    """A 503: the disk refuses, with this error if it is known."""
    message = NO_ROOM if error is not None and is_full(error) else "the document cannot be kept"
    return unavailable(message, code="no_storage")


def not_ready(job: DocumentJob) -> RequestError:
    """A 409: the result is not there, or never will be."""
    if job.state == "failed":
        return RequestError(
            Problem(status=409, code="document_failed", message=job.error or "it failed")
        )
    return RequestError(
        Problem(
            status=409,
            code="document_not_ready",
            message="the document is not translated yet",
            value=job.state,
            retry_after_seconds=1.0,
        )
    )
