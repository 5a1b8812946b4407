"""Glossaries of one server: their store, on a thread of its own.

Owns when the store is opened and closed, and what its failures become. What is in it is
`service.glossaries.store`.
"""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from model.errors import ConfigError
from model.text.constraints.glossary import Glossary
from service.errors import unavailable
from service.glossaries.store import GlossaryStore
from service.settings import Settings

_LOGGER = logging.getLogger("dragoman.glossaries")
_FILE = "glossaries.sqlite3"

T = TypeVar("T")


class Glossaries:
    """Glossaries that are asked for from the event loop.

    Args:
        open_store: Makes or opens what they are kept in; called on the thread.
    """

    def __init__(self, open_store: Callable[[], GlossaryStore]) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="glossaries")
        self._open_store = open_store
        self._store: GlossaryStore | None = None

    def __repr__(self) -> str:
        return f"<Glossaries, {'open' if self._store else 'not open'}>"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep glossaries until the block is left.

        Where they cannot be kept the log says why, and they are refused.
        """
        loop = asyncio.get_running_loop()
        try:
            self._store = await loop.run_in_executor(self._thread, self._open_store)
        except ConfigError as error:
            _LOGGER.warning("glossaries_off", extra={"fields": {"reason": str(error)}})
        try:
            yield
        finally:
            self._thread.shutdown(cancel_futures=True)
            if self._store is not None:
                self._store.close()

    async def terms(
        self, owner: str, glossary_ids: Sequence[str], languages: tuple[str, str]
    ) -> Glossary:
        """What some glossaries of a caller have for two languages.

        Raises:
            RequestError: A 404: there is none of this name and these languages; a 400; a 503.
        """
        return await self.ask(
            partial(
                GlossaryStore.glossary, owner=owner, glossary_ids=glossary_ids, languages=languages
            )
        )

    async def ask(self, question: Callable[[GlossaryStore], T]) -> T:
        """The store's answer to a question, which is put on the thread.

        Raises:
            RequestError: The answer is one; a 503: they cannot be kept, or the disk refuses.
        """
        if self._store is None:
            raise unavailable("glossaries cannot be kept on this server", code="no_storage")
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, question, self._store)
        except sqlite3.Error as error:
            _LOGGER.exception("glossary_not_kept")
            raise unavailable("the glossary cannot be kept", code="no_storage") from error


def glossaries_of(settings: Settings) -> Glossaries:
    """The glossaries of a server: in the file of the settings, beside documents, or in memory."""
    return Glossaries(partial(GlossaryStore, _path(settings)))


def _path(settings: Settings) -> Path | None:
    if settings.glossaries is not None:
        return settings.glossaries
    folder = settings.documents_folder
    return None if folder is None else folder / _FILE
