"""Databases are opened whole, or left as they were."""

import sqlite3
from pathlib import Path

import pytest

from service import sqlite


def test_tables_are_there_and_changes_are_written_ahead(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    for _ in range(2):
        database = sqlite.opened(
            path, lambda one: one.execute("CREATE TABLE IF NOT EXISTS words (word TEXT)") and None
        )
        database.execute("INSERT INTO words VALUES ('cat')")
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        database.close()
    (number,) = sqlite3.connect(path).execute("SELECT COUNT(*) FROM words").fetchone()
    assert number == 2


def test_what_cannot_be_prepared_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "of-others.sqlite3"
    with sqlite3.connect(path) as before:
        before.execute("CREATE TABLE theirs (x)")

    def refuse(database: sqlite3.Connection) -> None:
        database.execute("CREATE TABLE ours (x)")
        raise sqlite3.DatabaseError("it is something else's")

    with pytest.raises(sqlite3.DatabaseError, match="something else"):
        sqlite.opened(path, refuse)
    after = sqlite3.connect(path)
    assert after.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    assert after.execute("PRAGMA journal_mode").fetchone() == ("delete",)
