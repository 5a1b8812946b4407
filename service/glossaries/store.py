"""Store of glossaries: a database of their dictionaries, each glossary with its owner.

Owns the tables, what survives a restart, and how much anybody may keep. Everything here waits for
the disk, so it is called on a thread, one call at a time. Nothing is kept in memory beside, so
several servers of a machine may have one file.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from model.errors import ConfigError
from model.text.constraints.glossary import Glossary
from service import sqlite
from service.errors import Problem, RequestError, invalid
from service.glossaries.entries import (
    MAX_ENTRIES,
    EntriesFormat,
    Languages,
    as_glossary,
    as_tsv,
    from_tsv,
    read_entries,
    too_many,
)

_SCHEMA = 1
_TABLES = (
    """CREATE TABLE glossaries (
        id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, created REAL NOT NULL)""",
    "CREATE INDEX glossaries_by_owner ON glossaries (owner)",
    """CREATE TABLE dictionaries (
        glossary TEXT NOT NULL REFERENCES glossaries ON DELETE CASCADE,
        source TEXT NOT NULL, target TEXT NOT NULL, num_entries INTEGER NOT NULL,
        num_bytes INTEGER NOT NULL, entries TEXT NOT NULL,
        PRIMARY KEY (glossary, source, target))""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GlossaryLimits:
    """Limits of what is kept.

    Attributes:
        max_glossaries: Of one owner.
        max_dictionaries: Of one glossary.
        max_owner_bytes: Of all entries of one owner.
        max_bytes: Of all entries.
    """

    max_glossaries: int = 100
    max_dictionaries: int = 50
    max_owner_bytes: int = 8 * 2**20
    max_bytes: int = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDictionary:
    """A dictionary as it was sent.

    Attributes:
        languages: Its source and target.
        text: Its entries.
        kind: How they are written.
    """

    languages: Languages
    text: str
    kind: EntriesFormat

    def entries(self) -> dict[str, str]:
        """Targets by their sources; a RequestError, a 400, says what is wrong with them."""
        return read_entries(self.text, self.kind, self.languages)


@dataclass(frozen=True, slots=True, kw_only=True)
class DictionaryInfo:
    """A dictionary that is kept, without its entries."""

    languages: Languages
    num_entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GlossaryInfo:
    """A glossary that is kept, without its entries.

    Attributes:
        id: A name that nobody guesses.
        name: What its owner calls it.
        created: When it was made, seconds since 1970.
        dictionaries: In the order of their languages.
    """

    id: str
    name: str
    created: float
    dictionaries: tuple[DictionaryInfo, ...]


class GlossaryStore:
    """Database of glossaries.

    Args:
        path: Its file; made if it is not there. None keeps all in memory, where it goes with the
            server.
        limits: How much is kept.
        now: Seconds since 1970.
        new_id: Makes names that nobody guesses.

    Raises:
        ConfigError: The file cannot be used, or is something else.
    """

    def __init__(
        self,
        path: Path | None,
        limits: GlossaryLimits | None = None,
        *,
        now: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self._limits = limits or GlossaryLimits()
        self._now = now
        self._new_id = new_id
        try:
            self._database = _opened(path)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"glossaries cannot be kept in {path}: {error}") from error

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
        """Close the file."""
        self._database.close()

    def add(self, owner: str, name: str, dictionaries: Sequence[NewDictionary]) -> GlossaryInfo:
        """Keep a new glossary.

        Raises:
            RequestError: A 400: entries that are wrong, or more than is kept.
        """
        entries = [(one.languages, one.entries()) for one in dictionaries]
        glossary_id = self._new_id()
        with self._change(owner, glossary_id):
            row = (glossary_id, owner, name, self._now())
            self._database.execute("INSERT INTO glossaries VALUES (?, ?, ?, ?)", row)
            for languages, own in entries:
                self._write(glossary_id, languages, own)
        return self.find(owner, glossary_id)

    def every(self, owner: str) -> list[GlossaryInfo]:
        """All glossaries of an owner, the oldest first."""
        rows = self._database.execute(
            "SELECT id, name, created FROM glossaries WHERE owner = ? ORDER BY created, id",
            (owner,),
        )
        return [self._info(*row) for row in rows.fetchall()]

    def find(self, owner: str, glossary_id: str) -> GlossaryInfo:
        """A glossary.

        Raises:
            RequestError: A 404: there is none, or it is another owner's.
        """
        row = self._database.execute(
            "SELECT id, name, created FROM glossaries WHERE id = ? AND owner = ?",
            (glossary_id, owner),
        ).fetchone()
        if row is None:
            raise no_such_glossary()
        return self._info(*row)

    def entries(self, owner: str, glossary_id: str, languages: Languages) -> dict[str, str]:
        """Targets by their sources, of one dictionary.

        Raises:
            RequestError: A 404: no such glossary, or it has no such dictionary.
        """
        row = self._database.execute(
            "SELECT entries FROM dictionaries JOIN glossaries ON id = glossary"
            " WHERE id = ? AND owner = ? AND source = ? AND target = ?",
            (glossary_id, owner, *languages),
        ).fetchone()
        if row is None:
            self.find(owner, glossary_id)
            raise _no_such_dictionary(languages)
        return from_tsv(row[0])

    def glossary(self, owner: str, glossary_ids: Sequence[str], languages: Languages) -> Glossary:
        """What some glossaries have for two languages; of equal sources the first one's counts.

        Raises:
            RequestError: A 404 as of `entries`; a 400: they have too many entries together.
        """
        entries: dict[str, str] = {}
        for glossary_id in reversed(glossary_ids):
            entries |= self.entries(owner, glossary_id, languages)
        if len(entries) > MAX_ENTRIES:
            raise too_many(len(entries))
        return as_glossary(entries)

    def change(
        self,
        owner: str,
        glossary_id: str,
        *,
        name: str | None = None,
        added: Sequence[NewDictionary] = (),
    ) -> GlossaryInfo:
        """Give a glossary another name, or its dictionaries further entries.

        Entries of equal sources are replaced; a dictionary that is not there yet is begun.

        Raises:
            RequestError: A 404 as of `find`, a 400 as of `add`.
        """
        entries = [(one.languages, one.entries()) for one in added]
        with self._change(owner, glossary_id):
            known = {one.languages for one in self.find(owner, glossary_id).dictionaries}
            if name is not None:
                row = (name, glossary_id)
                self._database.execute("UPDATE glossaries SET name = ? WHERE id = ?", row)
            for languages, own in entries:
                before = self.entries(owner, glossary_id, languages) if languages in known else {}
                self._write(glossary_id, languages, before | own)
        return self.find(owner, glossary_id)

    def replace(self, owner: str, glossary_id: str, dictionary: NewDictionary) -> DictionaryInfo:
        """Put a dictionary in the place of the one for its languages, if there is one.

        Raises:
            RequestError: As of `change`.
        """
        entries = dictionary.entries()
        with self._change(owner, glossary_id):
            self.find(owner, glossary_id)
            self._write(glossary_id, dictionary.languages, entries)
        return DictionaryInfo(languages=dictionary.languages, num_entries=len(entries))

    def remove(self, owner: str, glossary_id: str) -> None:
        """Forget a glossary; a RequestError, a 404, where there is none."""
        self.find(owner, glossary_id)
        self._database.execute("DELETE FROM glossaries WHERE id = ?", (glossary_id,))

    def remove_dictionary(self, owner: str, glossary_id: str, languages: Languages) -> None:
        """Forget a dictionary; a RequestError, a 404, where there is none."""
        self.find(owner, glossary_id)
        found = self._database.execute(
            "DELETE FROM dictionaries WHERE glossary = ? AND source = ? AND target = ?",
            (glossary_id, *languages),
        )
        if not found.rowcount:
            raise _no_such_dictionary(languages)

    def _info(self, glossary_id: str, name: str, created: float) -> GlossaryInfo:
        rows = self._database.execute(
            "SELECT source, target, num_entries FROM dictionaries WHERE glossary = ?"
            " ORDER BY source, target",
            (glossary_id,),
        ).fetchall()
        dictionaries = tuple(
            DictionaryInfo(languages=(source, target), num_entries=number)
            for source, target, number in rows
        )
        return GlossaryInfo(id=glossary_id, name=name, created=created, dictionaries=dictionaries)

    def _write(self, glossary_id: str, languages: Languages, entries: dict[str, str]) -> None:
        if len(entries) > MAX_ENTRIES:
            raise too_many(len(entries))
        text = as_tsv(entries)
        self._database.execute(
            "INSERT OR REPLACE INTO dictionaries VALUES (?, ?, ?, ?, ?, ?)",
            (glossary_id, *languages, len(entries), len(text.encode()), text),
        )

    @contextmanager
    def _change(self, owner: str, glossary_id: str) -> Iterator[None]:
        """All of a change to a glossary; nothing of it where too much would be kept."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._check_room(owner, glossary_id)
            self._database.execute("COMMIT")
        finally:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")

    def _check_room(self, owner: str, glossary_id: str) -> None:
        limits, total = self._limits, "SELECT TOTAL(num_bytes) FROM dictionaries"
        own = "SELECT COUNT(*) FROM glossaries WHERE owner = ?"
        within = "SELECT COUNT(*) FROM dictionaries WHERE glossary = ?"
        of_owner = f"{total} JOIN glossaries ON id = glossary WHERE owner = ?"
        for name, query, values, limit in (
            ("glossaries", own, (owner,), limits.max_glossaries),
            ("dictionaries of the glossary", within, (glossary_id,), limits.max_dictionaries),
            ("bytes of your entries", of_owner, (owner,), limits.max_owner_bytes),
            ("bytes of everybody's entries", total, (), limits.max_bytes),
        ):
            (number,) = self._database.execute(query, values).fetchone()
            if number > limit:
                message = f"there would be {int(number)} {name}; the limit is {limit}"
                raise invalid(message, value=int(number), limit=limit)


def no_such_glossary(reason: str = "there is no such glossary") -> RequestError:
    """A 404: there is no such glossary, or it is another owner's."""
    return RequestError(Problem(status=404, code="unknown_glossary", message=reason))


def _no_such_dictionary(languages: Languages) -> RequestError:
    source, target = languages
    return no_such_glossary(f"the glossary has no dictionary from {source} to {target}")


def _opened(path: Path | None) -> sqlite3.Connection:
    """The database, with its tables."""
    if path is not None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    database = sqlite.opened(path, _make_tables)
    database.execute("PRAGMA foreign_keys = ON")
    return database


def _make_tables(database: sqlite3.Connection) -> None:
    """The tables, where there are none; errors are sqlite3's."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (num_tables,) = database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    if version == _SCHEMA:
        return
    if version or num_tables:
        raise sqlite3.DatabaseError("it is a database of something else, or of another version")
    for table in _TABLES:
        database.execute(table)
    database.execute(f"PRAGMA user_version = {_SCHEMA}")
