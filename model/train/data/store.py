"""Tokenised text in memory-mapped files: made once, read by every later run and resume.

Owns the files of a store: a store is there whole or not at all, a damaged one is noticed, and the
unfinished one of a killed run is removed. Does not own what a store is made of or what its key
means (`model.train.data.corpora`).

A store is a folder named by its key:

    store.json           format, key, what became of each corpus, length and SHA-256 of each file
    source-ids.values    int32, all source rows one after the other, EOS and tag included
    source-ids.ends      int64, where each row ends
    target-ids.*         the same for the target
    source-text.*, target-text.*  UTF-8 bytes of the lines, where segmentations are drawn anew

Until it is finished it is KEY.partial-…, locked by the process that fills it. The system releases
the locks of a process that dies, so an unfinished store that can be locked is left over. A cache
that several hosts share must be on a file system that locks across hosts.
"""

import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from model.errors import DataError, TrainingError
from model.system.paths import exists, is_folder
from model.train.data.filtering import CorpusReport
from model.train.files import check_writable, locked_folder
from model.train.stopping import ShouldStop, never, raise_if_stopped

_LOGGER = logging.getLogger("dragoman.train")

FORMAT = 2  # of the files, and of what a line of text is (`model.train.data.parallel`)
HEADER_FILE = "store.json"

_PARTIAL = ".partial-"
_KEY_LENGTH = 32
_BYTES_AT_ONCE = 1 << 20

_ID_COLUMNS = ("source-ids", "target-ids")
_TEXT_COLUMNS = ("source-text", "target-text")


class DamagedStoreError(DataError):
    """Error: a store is not as it was written; it can be made again."""


class StoredPairs:
    """Token ids of sentence pairs, and their text if it was stored, mapped from files.

    Attributes:
        reports: What became of each corpus, in the order of their pairs.
        source_lengths: (P,) source tokens with tag and EOS.
        target_lengths: (P,) target tokens with EOS.
    """

    def __init__(self, folder: Path, reports: tuple[CorpusReport, ...]) -> None:
        self.reports = reports
        self._sources, self._targets = (
            _Column(folder, name, np.dtype("<i4")) for name in _ID_COLUMNS
        )
        self._texts = tuple(
            _Column(folder, name, np.dtype("u1"))
            for name in _TEXT_COLUMNS
            if _values_file(folder, name).exists()
        )
        self.source_lengths = self._sources.lengths()
        self.target_lengths = self._targets.lengths()

    def __len__(self) -> int:
        return len(self.source_lengths)

    def source(self, index: int) -> NDArray[np.int32]:
        """Source ids of one pair, EOS at the end."""
        return self._sources.row(index)

    def target(self, index: int) -> NDArray[np.int32]:
        """Target ids of one pair, EOS at the end."""
        return self._targets.row(index)

    def text(self, index: int) -> tuple[str, str]:
        """The lines of one pair; only where they were stored."""
        source, target = (column.row(index).tobytes().decode("utf-8") for column in self._texts)
        return source, target


class StoreWriter:
    """Writer of a new store, row by row; host memory holds only where rows end."""

    def __init__(self, folder: Path, *, has_text: bool, files: ExitStack) -> None:
        names = _ID_COLUMNS + (_TEXT_COLUMNS if has_text else ())
        self._columns = [_ColumnWriter(folder, name, files) for name in names]
        self.has_text = has_text
        self.reports: list[CorpusReport] = []

    def add(
        self, source_ids: Sequence[int], target_ids: Sequence[int], text: tuple[str, str]
    ) -> None:
        """Append a pair; its text is stored if this store has any."""
        rows = [np.asarray(ids, dtype="<i4") for ids in (source_ids, target_ids)]
        sizes = [len(row) for row in rows]
        data = [row.tobytes() for row in rows]
        if self.has_text:
            data += [line.encode("utf-8") for line in text]
            sizes += [len(line) for line in data[2:]]
        for column, raw, size in zip(self._columns, data, sizes, strict=True):
            column.add(raw, size)

    def finish(self, should_stop: ShouldStop) -> dict[str, dict[str, object]]:
        """Close the files; the length and checksum of each."""
        facts: dict[str, dict[str, object]] = {}
        for column in self._columns:
            facts |= column.finish(should_stop)
        return facts


def check_cache(cache: Path) -> None:
    """Check, before hours of work, that a folder can hold stores.

    Raises:
        DataError: It is no folder, or its name cannot be one's, or nothing can be written there.
    """
    if exists(cache) and not is_folder(cache):
        raise DataError(f"{cache}: is not a directory, so text cannot be stored there")
    there = next(folder for folder in (cache, *cache.parents) if is_folder(folder))
    try:
        check_writable(there)
    except TrainingError as error:
        raise DataError(f"{error}, so text cannot be stored there") from error


def open_or_build(
    cache: Path,
    ingredients: Mapping[str, str],
    fill: Callable[[StoreWriter], None],
    *,
    has_text: bool,
    should_stop: ShouldStop = never,
) -> StoredPairs:
    """The store made of `ingredients`, from the cache or made now.

    Args:
        cache: Folder of stores; made if missing.
        ingredients: Everything the store depends on, by name.
        fill: Fills a new one.
        has_text: Whether lines are stored beside their ids.
        should_stop: Checked while files are read; `fill` has checks of its own.

    Raises:
        DataError: The text cannot be used, the store that is there cannot be read, or there is no
            room for one.
        StoppedError: `should_stop` returned true.
    """
    key = ingredients_key(ingredients)
    folder = cache / key
    try:
        _remove_left(cache)
        found = _open_sound(folder, key, should_stop)
        if found is not None:
            return found
        cache.mkdir(parents=True, exist_ok=True)
        with _partial_folder(cache, key) as partial:
            _build(partial, key, fill, has_text=has_text, should_stop=should_stop)
            _publish(partial, folder)
    except OSError as error:
        raise DataError(f"{cache}: the text cannot be stored: {error}") from error
    return open_store(folder, key, should_stop)


def ingredients_key(ingredients: Mapping[str, str]) -> str:
    """The name of the store made of `ingredients`."""
    listed = json.dumps([FORMAT, sorted(ingredients.items())], ensure_ascii=False)
    return hashlib.sha256(listed.encode("utf-8")).hexdigest()[:_KEY_LENGTH]


def open_store(folder: Path, key: str, should_stop: ShouldStop = never) -> StoredPairs:
    """Open a store, every byte of it verified.

    Raises:
        DamagedStoreError: A file is missing or is not as it was written.
        DataError: A file cannot be read.
        StoppedError: `should_stop` returned true.
    """
    path = folder / HEADER_FILE
    try:
        header: dict[str, Any] = json.loads(path.read_bytes())
        if (header["format"], header["key"]) != (FORMAT, key):
            raise DamagedStoreError(f"{path}: another format or key")
        for name, facts in header["files"].items():
            if _file_facts(folder / name, should_stop) != facts:
                raise DamagedStoreError(f"{folder / name}: not what was written")
        return StoredPairs(folder, tuple(CorpusReport(**corpus) for corpus in header["corpora"]))
    except FileNotFoundError as error:
        raise DamagedStoreError(f"{error.filename}: {error.strerror}") from error
    except OSError as error:
        raise _unreadable(error, folder) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedStoreError(f"{path}: not a store's header: {error!r}") from error


def hash_file(path: Path, should_stop: ShouldStop = never) -> str:
    """SHA-256 of a file's bytes, in hexadecimal.

    Raises:
        OSError: It cannot be read.
        StoppedError: `should_stop` returned true.
    """
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(_BYTES_AT_ONCE):
            raise_if_stopped(should_stop)
            digest.update(piece)
    return digest.hexdigest()


class _Column:
    """Rows of one type, mapped from two files."""

    def __init__(self, folder: Path, name: str, dtype: np.dtype[Any]) -> None:
        # asarray: rows as plain views, which are cheaper than memmap's own
        self._values = np.asarray(np.memmap(_values_file(folder, name), dtype=dtype, mode="r"))
        self._ends = np.asarray(np.memmap(_ends_file(folder, name), dtype="<i8", mode="r"))

    def row(self, index: int) -> NDArray[Any]:
        begin = int(self._ends[index - 1]) if index else 0
        return self._values[begin : int(self._ends[index])]

    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self._ends, prepend=0).astype(np.int64)


class _ColumnWriter:
    def __init__(self, folder: Path, name: str, files: ExitStack) -> None:
        self._paths = (_values_file(folder, name), _ends_file(folder, name))
        self._values: BinaryIO = files.enter_context(self._paths[0].open("wb"))
        self._ends = array("q")
        self._end = 0

    def add(self, raw: bytes, size: int) -> None:
        self._values.write(raw)
        self._end += size
        self._ends.append(self._end)

    def finish(self, should_stop: ShouldStop) -> dict[str, dict[str, object]]:
        self._values.flush()
        os.fsync(self._values.fileno())
        with self._paths[1].open("wb") as output:
            output.write(np.asarray(self._ends, dtype="<i8").tobytes())
            output.flush()
            os.fsync(output.fileno())
        return {path.name: _file_facts(path, should_stop) for path in self._paths}


def _file_facts(path: Path, should_stop: ShouldStop) -> dict[str, object]:
    return {"bytes": path.stat().st_size, "sha256": hash_file(path, should_stop)}


def _values_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.values"


def _ends_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.ends"


def _unreadable(error: OSError, folder: Path) -> DataError:
    path = error.filename or folder
    return DataError(f"{path}: stored text cannot be read: {error.strerror or error}")


def _open_sound(folder: Path, key: str, should_stop: ShouldStop) -> StoredPairs | None:
    """The store in `folder`; None if there is none, or was a damaged one, which is removed.

    Of two runs that find the same damage one removes it; the other opens what is there by then.
    """
    with ExitStack() as opened:
        try:
            handle = os.open(folder, os.O_RDONLY)  # while it is held nothing else is this folder
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unreadable(error, folder) from error
        opened.callback(os.close, handle)
        try:
            return open_store(folder, key, should_stop)
        except DamagedStoreError as error:
            if _is_named(handle, folder):
                _LOGGER.warning("store_made_again", extra={"fields": {"reason": str(error)}})
                _remove_damaged(folder)
                return None
    return _open_sound(folder, key, should_stop)


def _is_named(handle: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), folder.stat())
    except FileNotFoundError:
        return False


def _remove_damaged(folder: Path) -> None:
    """Remove a damaged store, renamed first so that no process opens half of it."""
    aside = tempfile.mkdtemp(prefix=f"{folder.name}{_PARTIAL}", dir=folder.parent)
    try:
        with suppress(FileNotFoundError):  # another run has done the same
            folder.rename(aside)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _partial_folder(cache: Path, key: str) -> Iterator[Path]:
    """A locked folder to fill; removed afterwards, unless it was renamed."""
    with ExitStack() as held:
        is_ours = False
        while not is_ours:  # another run may take it first, for one that was left
            partial = Path(tempfile.mkdtemp(prefix=f"{key}{_PARTIAL}", dir=cache))
            is_ours = held.enter_context(locked_folder(partial)) is not False
        try:
            yield partial
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _remove_left(cache: Path) -> None:
    """Remove the unfinished stores of killed runs."""
    for partial in cache.glob(f"{'[0-9a-f]' * _KEY_LENGTH}{_PARTIAL}*"):
        with locked_folder(partial) as is_ours:
            if is_ours:
                shutil.rmtree(partial, ignore_errors=True)
                if not partial.exists():
                    fields = {"path": str(partial), "reason": "a run that was killed had left it"}
                    _LOGGER.info("unfinished_store_removed", extra={"fields": fields})


def _build(
    folder: Path,
    key: str,
    fill: Callable[[StoreWriter], None],
    *,
    has_text: bool,
    should_stop: ShouldStop,
) -> None:
    with ExitStack() as files:
        writer = StoreWriter(folder, has_text=has_text, files=files)
        fill(writer)
        facts = writer.finish(should_stop)
    header = {
        "format": FORMAT,
        "key": key,
        "corpora": [asdict(report) for report in writer.reports],
        "files": facts,
    }
    with (folder / HEADER_FILE).open("w", encoding="utf-8") as output:
        json.dump(header, output, ensure_ascii=False, indent=1)
        output.flush()
        os.fsync(output.fileno())


def _publish(partial: Path, folder: Path) -> None:
    """Give a finished store its name, unless another run was faster."""
    mode = stat.S_IMODE((partial / HEADER_FILE).stat().st_mode)
    partial.chmod(mode | (mode & 0o444) >> 2)  # readable as its files are
    try:
        partial.rename(folder)
    except OSError:
        if not (folder / HEADER_FILE).exists():
            raise
