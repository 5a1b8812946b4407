"""Work on one document: read, translated batch by batch, rebuilt; taken up where it was stopped.

Owns the order of these steps, what is written down between them, and how each way to fail ends. It
keeps no job: what becomes of one is told to an `OpenJob`, which `service.documents.queue` makes.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol, TypeVar

from model.errors import DocumentError, DragomanError
from model.text.marks.inline_codes import without_codes
from service.documents import process
from service.documents.batches import batches
from service.documents.jobs import NO_ROOM, DocumentJob, JobOptions, Owner, is_full
from service.documents.store import JobFiles
from service.documents.translating import LEAVING, DocumentRoute, Rest
from service.errors import RequestError
from service.telemetry.document_metrics import DocumentResult

_LOGGER = logging.getLogger("dragoman.documents")

T = TypeVar("T")


class TextTranslator(Protocol):
    """Protocol of what translates the texts of documents; see `service.documents.translating`."""

    async def choose_route(self, asked: JobOptions, texts: Sequence[str]) -> DocumentRoute:
        """The route of a document."""

    async def translate(
        self, parts: Sequence[str], chosen: DocumentRoute, owner: Owner, rest: Rest
    ) -> tuple[list[str], int]:
        """Translations of parts of texts, and how many of their segments are flagged."""


class OpenJob(Protocol):
    """A job while it is worked on."""

    @property
    def job(self) -> DocumentJob:
        """It as it is now."""

    @property
    def files(self) -> JobFiles:
        """Its files."""

    async def on_disk(self, function: Callable[..., T], *arguments: object) -> T:
        """What waits for the disk."""

    async def change(self, **changes: object) -> None:
        """Have it have other values."""

    async def end(self, result: DocumentResult, **changes: object) -> None:
        """Have it be done or failed, with other values."""

    def rest(self) -> AbstractAsyncContextManager[None]:
        """Have it be without a place until the block is left."""


async def work_on(opened: OpenJob, translator: TextTranslator, *, max_characters: int) -> bool:
    """Take a job to its result, or to the reason why there is none.

    Returns:
        Whether it has ended; it has not where the server leaves.
    """
    kind = opened.job.asked.kind
    try:
        await _translated(opened, translator, max_characters=max_characters)
    except RequestError as error:
        if error.problem.code == LEAVING:
            return False
        is_ours = error.problem.status >= 500  # what was asked is right, and the disk refuses
        await opened.end("failed" if is_ours else "refused", state="failed", error=str(error))
    except DocumentError as error:
        await opened.end("refused", state="failed", error=str(error))
    except Exception as error:  # a fault of ours ends this job alone
        _LOGGER.exception("document_failed", extra={"fields": {"kind": kind}})
        reason = str(error) if isinstance(error, DragomanError) else "an unexpected failure"
        reason = NO_ROOM if is_full(error) else reason
        await opened.end("failed", state="failed", error=reason)
    return True


async def _translated(opened: OpenJob, translator: TextTranslator, *, max_characters: int) -> None:
    asked, files = opened.job.asked, opened.files
    await opened.change(state="translating")
    if not await opened.on_disk(files.texts.exists):
        await process.open_source(asked, files, max_characters=max_characters)
    texts, num_characters = await opened.on_disk(_read, files)
    chosen = await translator.choose_route(asked, texts)
    await opened.change(
        num_characters=num_characters,
        detected=chosen.detected,
        work_bytes=await opened.on_disk(files.num_work_bytes),
    )
    chosen = replace(chosen, glossary=await opened.on_disk(files.read_glossary))
    await _translate_texts(opened, translator, texts, chosen)
    route = chosen.route
    await process.rebuild(asked, files, language=route.target if route.hops else None)
    size = await opened.on_disk(lambda: files.result.stat().st_size)
    await opened.end("translated", state="done", result_bytes=size)


async def _translate_texts(
    opened: OpenJob, translator: TextTranslator, texts: Sequence[str], chosen: DocumentRoute
) -> None:
    """Translate what is not translated yet, and write it down batch by batch."""
    files = opened.files
    num_texts = await opened.on_disk(files.count_translations)
    num_done = await opened.on_disk(_num_characters, texts[:num_texts])
    num_flagged = opened.job.num_flagged
    for batch in batches(texts[num_texts:]):
        translations, flagged = await translator.translate(
            batch.parts, chosen, opened.job.owner, opened.rest
        )
        await opened.on_disk(files.add_translations, batch.joined(translations))
        num_done += _num_characters(batch.parts)
        num_flagged += flagged
        await opened.change(
            num_done=num_done,
            num_flagged=num_flagged,
            work_bytes=await opened.on_disk(files.num_work_bytes),
        )


def _read(files: JobFiles) -> tuple[list[str], int]:
    texts = files.read_texts()
    return texts, _num_characters(texts)


def _num_characters(texts: Sequence[str]) -> int:
    return sum(len(without_codes(text)) for text in texts)
