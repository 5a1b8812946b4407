"""SQLite databases of the server: opened whole or not at all, written ahead.

Owns how one is opened. Its tables, and what another version of them means, are its store's.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path


def opened(path: Path | None, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
    """A database that threads may use one after another; errors are sqlite3's.

    Args:
        path: Its file; None keeps it in memory.
        prepare: Makes its tables where there are none, in one transaction, before anything else of
            the file is changed: it may be something else's.
    """
    database = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
    try:
        database.execute("BEGIN IMMEDIATE")
        prepare(database)
        database.execute("COMMIT")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        database.close()
        raise
    return database
