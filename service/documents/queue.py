"""Queue of document jobs: accepted, worked on a few at a time, kept for a while, then forgotten.

Owns the life of jobs and their return after a restart. What is known of all jobs is in memory, and
written down whenever it changes. The disk is `service.documents.store`, the limits
`service.documents.room`, whose turn it is `service.documents.places`, the work on one document
`service.documents.work`.
"""

import asyncio
import contextlib
import logging
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TypeVar

from model.errors import ConfigError
from service.documents.jobs import (
    DocumentJob,
    JobOptions,
    Owner,
    no_such_document,
    not_kept,
    not_ready,
)
from service.documents.kept import KeptJobs
from service.documents.places import Places
from service.documents.room import QueueLimits, Upload, check_bytes, check_number, gives_way
from service.documents.store import JobFiles, JobStore
from service.documents.work import TextTranslator, work_on
from service.errors import RequestError, cut_off, draining, unavailable
from service.telemetry.document_metrics import DocumentMetrics, DocumentResult

_LOGGER = logging.getLogger("dragoman.documents")

_DISK_ERRORS = (OSError, sqlite3.Error)

T = TypeVar("T")


class DocumentQueue:
    """Jobs of one server.

    Args:
        open_store: Makes or opens what they are kept in; called on a thread.
        limits: Room for them.
        translator: What translates their texts.
        metrics: Where they are counted.
        now: Seconds since 1970.
        new_id: Makes names that nobody guesses.

    Attributes:
        limits: Room for jobs.
        thread: Where everything is done that waits for the disk.
    """

    def __init__(
        self,
        open_store: Callable[[], JobStore],
        limits: QueueLimits,
        translator: TextTranslator,
        metrics: DocumentMetrics,
        *,
        now: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self.limits = limits
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="documents")
        self._open_store = open_store
        self._opened: JobStore | None = None
        self._translator = translator
        self._metrics = metrics
        self._now = now
        self._new_id = new_id
        self._jobs = KeptJobs()
        self._uploads: dict[str, Upload] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Event] = {}
        self._places = Places(limits.max_working, self._begin_next)
        self._is_leaving = False
        metrics.watch_states(lambda: [job.state for job in self._jobs.values()])

    def __repr__(self) -> str:
        return f"<DocumentQueue of {len(self._jobs)} jobs, {len(self._tasks)} in work>"

    @property
    def _store(self) -> JobStore:
        if self._opened is None:
            raise unavailable("documents cannot be kept on this server", code="no_storage")
        return self._opened

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take up the jobs of before and work until the block is left; what is unfinished stays.

        Where jobs cannot be kept the log says why, and documents are refused.
        """
        expiry = None
        try:
            await self._open()
            expiry = asyncio.create_task(self._forget_in_time(), name="documents expiry")
            self._begin_next()
        except (ConfigError, RequestError) as error:
            _LOGGER.warning("documents_off", extra={"fields": {"reason": str(error)}})
        try:
            yield
        finally:
            self._leave()
            tasks = [*self._tasks.values(), *([expiry] if expiry else [])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.thread.shutdown(cancel_futures=True)
            if self._opened is not None:
                self._opened.close()

    async def _open(self) -> None:
        self._opened = await self.on_disk(self._open_store)
        for job in await self.on_disk(self._opened.load):
            self._jobs.put(job if job.is_ended else replace(job, state="queued"))

    def _leave(self) -> None:
        """Begin no further job, and wake all waiters."""
        self._is_leaving = True
        for event in self._ends.values():
            event.set()

    async def on_disk(self, function: Callable[..., T], *arguments: object) -> T:
        """What waits for the disk, on the thread of documents.

        Raises:
            RequestError: A 503: the disk refuses.
        """
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self.thread, function, *arguments)
        except _DISK_ERRORS as error:
            _LOGGER.exception("document_not_kept")
            raise not_kept(error) from error

    @contextmanager
    def room(self, owner: Owner) -> Iterator[Upload]:
        """Room for a file that begins to arrive: no bytes at first, whatever it announces.

        It goes when the block is left, unless the file was submitted.

        Args:
            owner: Whose it is.

        Raises:
            RequestError: A 429: the caller has too many jobs, or all have; a 503.
        """
        if self._is_leaving:
            raise draining()
        store, job_id = self._store, self._new_id()
        uploads = self._uploads.values()
        while job := gives_way(self.limits, self._jobs, uploads, owner.identity):
            self._jobs.pop(job.id)
            self._remove_later(store, job.id)
        check_number(self.limits, self._jobs, uploads, owner.identity, now=self._now())
        upload = Upload(job_id=job_id, files=store.files(job_id), identity=owner.identity)
        self._uploads[job_id] = upload
        try:
            yield upload
        finally:
            del self._uploads[job_id]
            if job_id not in self._jobs:
                self._remove_later(store, job_id)

    def _remove_later(self, store: JobStore, job_id: str) -> None:
        with contextlib.suppress(RuntimeError):  # the thread has left: the next start tidies
            self.thread.submit(store.remove, job_id)

    def hold(self, upload: Upload, num_bytes: int) -> None:
        """Have a file that arrives hold room for so many bytes, if it holds fewer.

        Raises:
            RequestError: A 429: there is no room.
        """
        if num_bytes > upload.num_bytes:
            check_bytes(self.limits, self._jobs, self._uploads.values(), upload, num_bytes)
            upload.num_bytes = num_bytes

    async def submit(
        self, upload: Upload, asked: JobOptions, owner: Owner, *, num_bytes: int
    ) -> DocumentJob:
        """Accept a file that has arrived: it is a job from now on.

        Raises:
            RequestError: A 503: it cannot be kept, or the server leaves.
        """
        if self._is_leaving:
            raise draining()
        job = DocumentJob(
            id=upload.job_id,
            secret=self._new_id(),
            owner=owner,
            asked=asked,
            num_bytes=num_bytes,
            created=self._now(),
        )
        await self.on_disk(self._store.save, job)
        self._jobs.put(job)
        self._begin_next()
        return job

    def find(self, job_id: str, key_name: str) -> DocumentJob:
        """A job as it is now.

        Args:
            job_id: Its name.
            key_name: Of the caller's key; empty without one.

        Raises:
            RequestError: A 404: there is none, or it is not theirs.
        """
        job = self._jobs.get(job_id)
        if job is None or job.owner.key_name != key_name:
            raise no_such_document()
        return job

    def find_by_secret(self, job_id: str, secret: str) -> DocumentJob:
        """A job by its secret, for any caller; errors as of `find`."""
        job = self._jobs.get(job_id)
        if job is None or not _is_same(job.secret, secret):
            raise no_such_document()
        return job

    def result(self, job: DocumentJob) -> JobFiles:
        """The files of a job that has a result.

        Raises:
            RequestError: A 409: it has none.
        """
        if job.state != "done":
            raise not_ready(job)
        return self._store.files(job.id)

    async def note_fetched(self, job_id: str) -> None:
        """Have a job whose result was fetched give way to its caller's next files."""
        job = self._jobs.get(job_id)
        if job is not None and not job.is_fetched:
            with contextlib.suppress(RequestError):  # known while the server runs, and logged
                await self.change(job_id, is_fetched=True)

    async def ended(self, job_id: str) -> DocumentJob:
        """A job, once it is done or has failed.

        Raises:
            RequestError: A 404: it was removed; a 503: the server leaves.
        """
        while True:
            job = self._jobs.get(job_id)
            if job is None:
                raise no_such_document()
            if job.is_ended:
                return job
            if self._is_leaving:
                raise cut_off()
            await self._ends.setdefault(job_id, asyncio.Event()).wait()

    async def remove(self, job: DocumentJob) -> None:
        """Stop and forget a job, of which nothing may be left.

        Args:
            job: As it is now, or as it was.

        Raises:
            RequestError: A 503: the disk refuses.
        """
        known = self._jobs.pop(job.id)
        self._wake_waiters(job.id)
        task = self._tasks.get(job.id)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if known is not None and not known.is_ended:
            self._metrics.ended(job.asked.kind, "cancelled")
        await self.on_disk(self._store.remove, job.id)

    def _wake_waiters(self, job_id: str) -> None:
        """Wake the tasks that wait for a job's end."""
        event = self._ends.pop(job_id, None)
        if event is not None:
            event.set()

    def _begin_next(self) -> None:
        """Begin jobs while there are places for them."""
        while not self._is_leaving:
            job = self._places.take(self._jobs.values())
            if job is None:
                return
            task = asyncio.create_task(self._work(job.id), name=f"document {job.id}")
            self._tasks[job.id] = task
            task.add_done_callback(partial(self._done, job.id))

    def _done(self, job_id: str, _task: asyncio.Task[None]) -> None:
        self._tasks.pop(job_id, None)
        self._places.leave(job_id)

    async def _work(self, job_id: str) -> None:
        opened = _QueuedJob(self, job_id, self._store.files(job_id), self._places)
        has_ended = await work_on(
            opened, self._translator, max_characters=self.limits.max_characters
        )
        if not has_ended:
            self._leave()

    def job(self, job_id: str) -> DocumentJob:
        """A job that there is."""
        return self._jobs[job_id]

    async def change(self, job_id: str, **changes: object) -> None:
        """Have a job have other values, in memory and on the disk."""
        job = replace(self._jobs[job_id], **changes)  # type: ignore[arg-type]  # fields of a job
        self._jobs.put(job)
        await self.on_disk(self._store.save, job)

    async def end(self, job_id: str, result: DocumentResult, **changes: object) -> None:
        """Have a job be done or failed; of its files only its result stays."""
        ended = replace(self._jobs[job_id], ended=self._now(), **changes)  # type: ignore[arg-type]  # same
        # Where the disk refuses, it is known at least while the server runs.
        with contextlib.suppress(RequestError):
            await self.on_disk(self._store.save, ended)
        self._jobs.put(ended)
        self._metrics.ended(ended.asked.kind, result)
        self._wake_waiters(job_id)
        files = self._store.files(job_id)
        with contextlib.suppress(RequestError):
            await self.on_disk(files.keep_only, *([files.result] if ended.state == "done" else []))

    async def _forget_in_time(self) -> None:
        """Remove ended jobs when their time is over, until cancelled."""
        keep = self.limits.keep_seconds
        while True:
            oldest = self._now() - keep
            over = (
                job for job in self._jobs.values() if job.ended is not None and job.ended <= oldest
            )
            for job in list(islice(over, 1_000)):
                try:
                    await self.remove(job)
                except RequestError:
                    _LOGGER.warning("document_not_removed")
            await asyncio.sleep(self.limits.look_seconds)


def _is_same(secret: str, shown: str) -> bool:
    return secrets.compare_digest(secret.encode(), shown.encode("utf-8", "replace"))


class _QueuedJob:
    """A job of a queue while it is worked on; see `service.documents.work.OpenJob`."""

    def __init__(self, queue: DocumentQueue, job_id: str, files: JobFiles, places: Places) -> None:
        self._queue = queue
        self._job_id = job_id
        self.files = files
        self._places = places

    @property
    def job(self) -> DocumentJob:
        """It as it is now."""
        return self._queue.job(self._job_id)

    async def on_disk(self, function: Callable[..., T], *arguments: object) -> T:
        """What waits for the disk."""
        return await self._queue.on_disk(function, *arguments)

    async def change(self, **changes: object) -> None:
        """Have it have other values."""
        await self._queue.change(self._job_id, **changes)

    async def end(self, result: DocumentResult, **changes: object) -> None:
        """Have it be done or failed."""
        await self._queue.end(self._job_id, result, **changes)

    def rest(self) -> AbstractAsyncContextManager[None]:
        """Have it be without a place until the block is left."""
        return self._places.rest(self._job_id)
