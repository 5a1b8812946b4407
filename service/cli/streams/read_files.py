"""Input files of a command, protected from being written over.

Owns the question whether two names are one file, whatever they are: links, /dev/fd, another case on
a file system that knows none. The system answers it: a file is its device and its number there.
"""

import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from model.errors import DataError

STANDARD_INPUT = "-"


class ReadFiles:
    """Input files of a command; regular files only, as writing to others loses nothing.

    Args:
        names: Files, or `-` for standard input; one that is missing is reported when it is opened.
        folders: Folders, of which every file counts.
    """

    def __init__(self, names: Iterable[str | Path], *, folders: Iterable[Path] = ()) -> None:
        self._names: dict[tuple[int, int], str] = {}
        for name in map(str, names):
            number = sys.stdin.fileno() if name == STANDARD_INPUT else name
            self._add(number, "standard input" if name == STANDARD_INPUT else name)
        for folder in folders:
            try:
                paths = sorted(folder.iterdir())
            except OSError:
                continue
            for path in paths:
                self._add(path, str(path))

    def refuse(self, path: Path, file: Path | int) -> None:
        """Refuse to write a file that is read.

        Args:
            path: What the error names.
            file: What would be written: a path, links followed, or a descriptor.

        Raises:
            DataError: It is one of these files.
        """
        name = self._name_of(file)
        if name is not None:
            is_other = name != str(path)
            raise DataError(
                f"{path}: is {f'the same file as {name}, ' if is_other else ''}"
                f"{'which' if is_other else 'a file that'} this command reads; write to another one"
            )

    def refuse_streams(self) -> None:
        """Refuse standard output and error that go to a file that is read.

        Raises:
            DataError: One of them does; a shell's `>` has emptied that file already.
        """
        for stream, what in ((sys.stdout, "standard output"), (sys.stderr, "standard error")):
            try:
                name = self._name_of(stream.fileno())
            except (OSError, ValueError):  # no stream of the system's: a test's, an embedder's
                continue
            if name is not None:
                raise DataError(
                    f"{name}: {what} goes to this file, which this command reads"
                    " (a shell's > empties it first)"
                )

    def _add(self, file: str | Path | int, name: str) -> None:
        found = _identified(file)
        if found is not None:
            self._names.setdefault(found, name)

    def _name_of(self, file: Path | int) -> str | None:
        found = _identified(file)
        return None if found is None else self._names.get(found)


def _identified(file: str | Path | int) -> tuple[int, int] | None:
    try:
        facts = os.fstat(file) if isinstance(file, int) else Path(file).stat()
    except (OSError, ValueError):
        return None
    return (facts.st_dev, facts.st_ino) if stat.S_ISREG(facts.st_mode) else None
