"""Store of document jobs: a folder with a database of jobs, and files of each.

Owns the folder's layout and what survives a restart. Everything here waits for the disk, so it is
called on a thread, one call at a time. What jobs mean is `service.documents.queue`.
"""

import fcntl
import json
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from model.errors import ConfigError
from model.text.constraints.glossary import Entry, Glossary
from service import sqlite
from service.documents.jobs import DocumentJob

_DATABASE = "jobs.sqlite3"
_LOCK = "lock"
_SCHEMA = 1
_PREFIX = "dragoman-documents-"
_MARK = b"a temporary folder of dragoman\n"
"""Content of its lock, once that is held: a folder without it may be a server's that begins."""
_JOB_NAME = re.compile(r"[0-9a-f]{32}")


class JobFiles:
    """Files of one job.

    Attributes:
        folder: Where they are.
        source: The document.
        texts: What is to be translated of it, a JSON list of strings.
        translations: What is translated so far: a JSON string a line.
        result: The translated document.
        terms: Entries of its glossary, where it has one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = folder / "source"
        self.texts = folder / "texts.json"
        self.translations = folder / "translations.jsonl"
        self.result = folder / "result"
        self.terms = folder / "terms.json"

    def read_texts(self) -> list[str]:
        """The texts; a file that is not there or damaged raises an OSError or ValueError."""
        return msgspec.json.decode(self.texts.read_bytes(), type=list[str])

    def count_translations(self) -> int:
        """How many translations were written whole; what is behind them is cut off."""
        if not self.translations.exists():
            return 0
        number = size = 0
        with self.translations.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                number += 1
                size += len(line)
        os.truncate(self.translations, size)
        return number

    def add_translations(self, translations: Sequence[str]) -> None:
        """Write further translations down."""
        with self.translations.open("a", encoding="utf-8") as lines:
            lines.writelines(f"{json.dumps(text)}\n" for text in translations)

    def keep_glossary(self, glossary: Glossary) -> int:
        """Write a glossary down; how many bytes it takes."""
        return self.terms.write_bytes(msgspec.json.encode(glossary.entries))

    def read_glossary(self) -> Glossary | None:
        """The glossary, if there is one; a damaged file raises a ValueError."""
        if not self.terms.exists():
            return None
        return Glossary(msgspec.json.decode(self.terms.read_bytes(), type=list[Entry]))

    def num_work_bytes(self) -> int:
        """Bytes of the files that are made of the source."""
        paths = (self.texts, self.translations, self.result)
        return sum(path.stat().st_size for path in paths if path.exists())

    def keep_only(self, *paths: Path) -> None:
        """Remove all other files of the job."""
        for path in (self.source, self.texts, self.translations, self.result, self.terms):
            if path not in paths:
                path.unlink(missing_ok=True)


class JobStore:
    """Folder of jobs that belongs to one server at a time.

    Args:
        folder: It; made if it is not there. None makes one that goes when the store is closed.

    Raises:
        ConfigError: It cannot be used, or another server uses it.
    """

    def __init__(self, folder: Path | None) -> None:
        self._is_temporary = folder is None
        if folder is None:
            remove_leftovers()
        try:
            self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX)) if folder is None else folder
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(
                f"documents cannot be kept in {folder or 'the temporary folder'}: {error.strerror}"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._is_temporary:
                os.pwrite(self._lock, _MARK, 0)
            self._database = sqlite.opened(self.folder / _DATABASE, _make_table)
        except (OSError, sqlite3.Error) as error:
            os.close(self._lock)
            reason = "another server uses it" if isinstance(error, BlockingIOError) else str(error)
            raise ConfigError(f"documents cannot be kept in {self.folder}: {reason}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the folder; one that was made for this server is removed."""
        self._database.close()
        os.close(self._lock)
        if self._is_temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def files(self, job_id: str) -> JobFiles:
        """The files of a job."""
        return JobFiles(self.folder / job_id)

    def make_folder(self, job_id: str) -> JobFiles:
        """The files of a job that is to come; errors are OSErrors."""
        files = self.files(job_id)
        files.folder.mkdir(mode=0o700)
        return files

    def load(self) -> list[DocumentJob]:
        """All jobs that have files, the oldest first.

        Folders that are named as jobs are, and are of none, are removed; others are not ours.
        """
        jobs = [job for job in self._rows() if self.files(job.id).folder.is_dir()]
        known = {job.id for job in jobs}
        for path in self.folder.iterdir():
            if path.is_dir() and _JOB_NAME.fullmatch(path.name) and path.name not in known:
                shutil.rmtree(path, ignore_errors=True)
        return sorted(jobs, key=lambda job: job.created)

    def _rows(self) -> Iterator[DocumentJob]:
        for (text,) in self._database.execute("SELECT job FROM jobs").fetchall():
            with suppress(msgspec.DecodeError):
                yield msgspec.json.decode(text, type=DocumentJob)

    def save(self, job: DocumentJob) -> None:
        """Write a job down as it is now."""
        text = msgspec.json.encode(job).decode()
        self._database.execute("INSERT OR REPLACE INTO jobs VALUES (?, ?)", (job.id, text))

    def remove(self, job_id: str) -> None:
        """Forget a job and its files."""
        self._database.execute("DELETE FROM jobs WHERE id = ?", (job_id,))
        shutil.rmtree(self.files(job_id).folder, ignore_errors=True)


def _make_table(database: sqlite3.Connection) -> None:
    """The table of jobs; of another version nothing is kept, as jobs do not live long."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version != _SCHEMA:
        database.execute("DROP TABLE IF EXISTS jobs")
        database.execute(f"PRAGMA user_version = {_SCHEMA}")
    database.execute("CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, job TEXT NOT NULL)")


def remove_leftovers() -> None:
    """Remove temporary folders of servers that were killed: this user's, and not in use."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.geteuid() and not folder.is_symlink():
                _remove_unused(folder)


def _remove_unused(folder: Path) -> None:
    """Remove a temporary folder whose lock is free; errors are OSErrors."""
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.read(lock, len(_MARK)) == _MARK:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
