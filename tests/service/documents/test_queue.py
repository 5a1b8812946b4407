"""The life of jobs, over real files and processes and a translator that puts texts in capitals."""

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from service.documents import process
from service.documents.jobs import NO_ROOM, DocumentJob, JobOptions, Owner
from service.documents.queue import DocumentQueue
from service.documents.room import QueueLimits
from service.documents.store import JobStore
from service.documents.translating import DocumentRoute, Rest
from service.errors import RequestError, draining
from service.telemetry.document_metrics import DocumentMetrics
from support.document_jobs import ASKED, OWNER, Capitals

LIMITS = QueueLimits(
    max_bytes=10_000,
    max_characters=1_000,
    max_jobs=3,
    max_total_bytes=30_000,
    max_working=1,
    keep_seconds=100.0,
)
KEY = Owner(key_name="key:office", identity="key:office")


class Parts:
    """A queue and what it stands on, over one folder for several lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.translator = Capitals()
        self.now = 1_000.0
        self.registry = CollectorRegistry()

    @asynccontextmanager
    async def queue(self, **limits: float) -> AsyncIterator[DocumentQueue]:
        self.registry = CollectorRegistry()
        queue = DocumentQueue(
            partial(JobStore, self.folder),
            replace(LIMITS, **limits),  # type: ignore[arg-type]
            self.translator,
            DocumentMetrics(self.registry),
            now=lambda: self.now,
        )
        async with queue.running():
            yield queue

    def count(self, state: str) -> float:
        return self.registry.get_sample_value("dragoman_document_jobs", {"state": state}) or 0.0

    def ended(self, result: str) -> float:
        labels = {"kind": "txt", "result": result}
        return self.registry.get_sample_value("dragoman_documents_total", labels) or 0.0


async def sent(
    queue: DocumentQueue, data: bytes = b"one\n", *, owner: Owner = OWNER, asked: JobOptions = ASKED
) -> DocumentJob:
    """The job of a file that has arrived."""
    with queue.room(owner) as upload:
        queue.hold(upload, len(data))
        upload.files.folder.mkdir()
        upload.files.source.write_bytes(data)
        return await queue.submit(upload, asked, owner, num_bytes=len(data))


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path / "jobs")


Scenario = Callable[[], Awaitable[None]]


def run(scenario: Scenario) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await scenario()

    asyncio.run(main())


async def refusal(work: Awaitable[object]) -> RequestError:
    with pytest.raises(RequestError) as caught:
        await work
    return caught.value


def test_a_document_is_translated_and_only_its_result_stays(parts: Parts) -> None:
    async def scenario() -> None:
        async with parts.queue() as queue:
            job = await sent(queue, b"one\n\ntwo\n", asked=replace(ASKED, source="auto"))
            done = await queue.ended(job.id)
            assert (done.state, done.detected, done.progress) == ("done", "en", 1.0)
            assert (done.num_characters, done.num_flagged, done.result_bytes) == (6, 1, 9)
            files = queue.result(done)
            assert files.result.read_bytes() == b"ONE\n\nTWO\n"
            await queue.on_disk(lambda: None)
            assert [path.name for path in files.folder.iterdir()] == ["result"]
            assert (parts.count("done"), parts.ended("translated")) == (1, 1)

    run(scenario)


def test_a_document_without_texts_comes_back_as_it_is(parts: Parts) -> None:
    async def scenario() -> None:
        async with parts.queue() as queue:
            done = await queue.ended((await sent(queue, b"\n7.30\n")).id)
            assert (done.state, done.error) == ("done", None)
            assert queue.result(done).result.read_bytes() == b"\n7.30\n"

    run(scenario)


def test_a_job_is_there_for_its_key_alone(parts: Parts) -> None:
    async def scenario() -> None:
        async with parts.queue() as queue:
            job = await sent(queue, owner=KEY)
            assert queue.find(job.id, "key:office").id == job.id
            for key_name in ("", "key:other"):
                with pytest.raises(RequestError, match="no such document") as caught:
                    queue.find(job.id, key_name)
                assert caught.value.problem.status == 404
            assert queue.find_by_secret(job.id, job.secret).id == job.id
            for secret in ("", "x" * 32, "\ud800"):
                with pytest.raises(RequestError, match="no such document"):
                    queue.find_by_secret(job.id, secret)
            assert len({job.id, job.secret}) == 2
            assert len(job.id) == len(job.secret) == 32

    run(scenario)


def test_what_is_wrong_with_a_document_is_kept_with_it(parts: Parts) -> None:
    async def scenario() -> None:
        async with parts.queue() as queue:
            job = await sent(queue, b"\xff")
            failed = await queue.ended(job.id)
            assert failed.state == "failed"
            assert (failed.error or "").startswith("the txt document is not text in utf-8")
            with pytest.raises(RequestError, match="is not text in utf-8") as caught:
                queue.result(failed)
            assert caught.value.problem.status == 409
            parts.translator.failure = ValueError("a fault of ours")
            failed = await queue.ended((await sent(queue)).id)
            assert failed.error == "an unexpected failure"
            assert (parts.ended("refused"), parts.ended("failed")) == (1, 1)

    run(scenario)


def test_a_job_that_is_removed_stops_and_leaves_nothing(parts: Parts) -> None:
    async def scenario() -> None:
        parts.translator.gate.clear()
        async with parts.queue() as queue:
            job, waiting = await sent(queue), await sent(queue)
            end = asyncio.create_task(queue.ended(waiting.id))
            await asyncio.sleep(0)
            with pytest.raises(RequestError, match="not translated yet"):
                queue.result(queue.find(job.id, ""))
            await queue.remove(job)
            await queue.remove(waiting)
            assert (await refusal(end)).problem.status == 404
            assert not list(parts.folder.glob("*/"))
            assert parts.ended("cancelled") == 2

    run(scenario)


def test_a_job_that_has_ended_or_is_gone_was_not_cancelled(parts: Parts) -> None:
    async def scenario() -> None:
        async with parts.queue() as queue:
            job = await sent(queue)
            await queue.ended(job.id)
            for _ in range(2):
                await queue.remove(job)  # as it was when it came
            assert (parts.ended("translated"), parts.ended("cancelled")) == (1, 0)

    run(scenario)


def test_what_was_stopped_goes_on_where_it_was(parts: Parts) -> None:
    data = b"".join(b"line %d\n" % number for number in range(70))

    class TwoBatches(Capitals):
        """Translator that shuts its gate behind the second batch."""

        async def translate(self, *arguments: object) -> tuple[list[str], int]:
            done = await super().translate(*arguments)  # type: ignore[arg-type]
            if len(self.seen) >= 64:
                self.gate.clear()
            return done

    async def scenario() -> None:
        parts.translator = TwoBatches()
        async with parts.queue() as queue:
            job = await sent(queue, data)
            num_characters = sum(len(f"line {number}") for number in range(64))
            while queue.job(job.id).num_done < num_characters:  # noqa: ASYNC110  # nothing tells it
                await asyncio.sleep(0.01)
        parts.translator = Capitals()
        async with parts.queue() as queue:
            done = await queue.ended(job.id)
            assert queue.result(done).result.read_bytes() == data.upper()
            assert parts.translator.seen == [f"line {number}" for number in range(64, 70)]
            assert done.num_flagged == 3
        async with parts.queue() as queue:
            assert queue.find(job.id, "").state == "done"

    run(scenario)


def test_a_server_that_leaves_keeps_the_job_and_tells_who_waits(parts: Parts) -> None:
    async def scenario() -> None:
        parts.translator.failure = draining()
        async with parts.queue() as queue:
            job, other = await sent(queue), await sent(queue)
            for one in (job, other):
                error = await refusal(queue.ended(one.id))
                assert (error.problem.status, error.problem.code) == (503, "cut_off")
            assert (await refusal(sent(queue))).problem.code == "draining"
        parts.translator.failure = None
        async with parts.queue() as queue:
            for one in (job, other):
                assert (await queue.ended(one.id)).state == "done"

    run(scenario)


def test_room_is_held_while_a_file_arrives_and_given_back(parts: Parts) -> None:
    async def scenario() -> None:
        parts.translator.gate.clear()
        async with parts.queue(max_jobs=2) as queue:
            with queue.room(OWNER) as upload, queue.room(OWNER):
                upload.files.folder.mkdir()
                with pytest.raises(RequestError, match="2 documents are kept for you"):
                    queue.room(OWNER).__enter__()
            await sent(queue)
            await queue.on_disk(lambda: None)
            assert not upload.files.folder.exists()

    run(scenario)


def test_what_was_fetched_gives_way_to_its_callers_next_file_after_a_restart_too(
    parts: Parts,
) -> None:
    async def scenario() -> None:
        async with parts.queue(max_jobs=2) as queue:
            first, second = [await queue.ended((await sent(queue)).id) for _ in range(2)]
            with pytest.raises(RequestError) as caught:
                queue.room(OWNER).__enter__()
            assert caught.value.problem.retry_after_seconds == 100.0 + 50.0
            await queue.note_fetched(second.id)
            await queue.note_fetched("none")
            assert queue.find(second.id, "").is_fetched  # until another file comes
        async with parts.queue(max_jobs=2) as queue:
            third = await sent(queue)
            with pytest.raises(RequestError, match="no such document"):
                queue.find(second.id, "")
            await queue.on_disk(lambda: None)
            assert not (parts.folder / second.id).exists()
            for one in (first, third):
                assert (await queue.ended(one.id)).state == "done"
            with pytest.raises(RequestError, match="2 documents are kept for you"):
                await sent(queue)

    run(scenario)


def test_an_upload_holds_what_has_come_of_it_and_gives_it_back(parts: Parts) -> None:
    async def scenario() -> None:
        async with parts.queue(max_total_bytes=10_000) as queue:
            with queue.room(OWNER) as first, queue.room(KEY) as second:
                queue.hold(first, 6_000)
                queue.hold(first, 5_000)  # less than it holds
                with pytest.raises(RequestError, match="10001 bytes of documents would be kept;"):
                    queue.hold(second, 4_001)
                queue.hold(second, 4_000)
                assert (first.num_bytes, second.num_bytes) == (6_000, 4_000)
            with queue.room(KEY) as upload:
                queue.hold(upload, 10_000)

    run(scenario)


def test_what_rests_leaves_its_place_to_others(parts: Parts) -> None:
    class Resting(Capitals):
        """Translator that rests with each document of the key until its gate is open."""

        async def translate(
            self, parts: Sequence[str], chosen: DocumentRoute, owner: Owner, rest: Rest
        ) -> tuple[list[str], int]:
            if owner == KEY:
                async with rest():
                    await self.gate.wait()
            self.seen += parts
            return [part.upper() for part in parts], 0

    async def scenario() -> None:
        translator = parts.translator = Resting()
        translator.gate.clear()
        async with parts.queue() as queue:
            limited = [await sent(queue, b"mine\n", owner=KEY) for _ in range(2)]
            free = [await sent(queue, b"other\n") for _ in range(2)]
            for job in free:
                assert (await queue.ended(job.id)).state == "done"
            assert [queue.job(job.id).state for job in limited] == ["translating", "queued"]
            translator.gate.set()
            for job in limited:
                assert (await queue.ended(job.id)).state == "done"
            assert translator.seen == ["other", "other", "mine", "mine"]

    run(scenario)


def test_files_of_jobs_in_work_take_room(parts: Parts) -> None:
    async def scenario() -> None:
        parts.translator.gate.clear()
        async with parts.queue() as queue:
            job = await sent(queue, b"one\n")
            while not queue.job(job.id).work_bytes:  # noqa: ASYNC110  # nothing tells it
                await asyncio.sleep(0.01)
            assert queue.job(job.id).stored_bytes == len(b'one\n["one"]')
            parts.translator.gate.set()
            assert (await queue.ended(job.id)).stored_bytes == len(b"ONE\n")

    run(scenario)


def test_results_are_forgotten_in_time(parts: Parts) -> None:
    async def scenario() -> None:
        async with parts.queue(keep_seconds=0.05) as queue:
            job = await sent(queue)
            await queue.ended(job.id)
            parts.now += 1.0
            while parts.count("done"):  # noqa: ASYNC110  # nothing tells it
                await asyncio.sleep(0.01)
            with pytest.raises(RequestError, match="no such document"):
                queue.find(job.id, "")
            await queue.on_disk(lambda: None)
            assert not list(parts.folder.glob("*/"))

    run(scenario)


def test_where_nothing_can_be_kept_documents_are_refused(
    parts: Parts, caplog: pytest.LogCaptureFixture
) -> None:
    parts.folder.write_bytes(b"a file")

    async def scenario() -> None:
        async with parts.queue() as queue:
            error = await refusal(sent(queue))
            assert (error.problem.status, error.problem.code) == (503, "no_storage")

    run(scenario)
    assert "documents_off" in caplog.text


@pytest.mark.parametrize("step", ["open_source", "rebuild"])
def test_a_full_disk_is_no_fault_of_the_document(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    async def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(process, step, full)

    async def scenario() -> None:
        async with parts.queue() as queue:
            failed = await queue.ended((await sent(queue)).id)
            assert (failed.state, failed.error) == ("failed", NO_ROOM)
            assert (parts.ended("failed"), parts.ended("refused")) == (1, 0)

    run(scenario)


def test_a_disk_that_refuses_later_ends_the_job_and_no_other(parts: Parts) -> None:
    async def scenario() -> None:
        parts.translator.gate.clear()
        async with parts.queue() as queue:
            job = await sent(queue)
            while not queue.job(job.id).num_characters:  # noqa: ASYNC110  # nothing tells it
                await asyncio.sleep(0.01)
            translations = parts.folder / job.id / "translations.jsonl"
            translations.mkdir()
            parts.translator.gate.set()
            failed = await queue.ended(job.id)
            assert (failed.state, failed.error) == ("failed", "the document cannot be kept")
            assert (parts.ended("failed"), parts.ended("refused")) == (1, 0)
            assert (await queue.ended((await sent(queue)).id)).state == "done"

    run(scenario)
