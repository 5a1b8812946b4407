"""Aligned text from files, line by line, and token ids that are kept in memory.

Owns file names (`<folder>/<split>/<corpus>.<language>[.gz]`), the checks that two sides belong
together, and the arrays of token ids of small texts. Large ones lie in files
(`model.train.data.store`). Does not own batches.
"""

import gzip
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from model.errors import DataError
from model.system.paths import exists, is_file

Encode = Callable[[list[str]], list[list[int]]]
"""Texts → token ids without EOS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelText:
    """Two aligned lists of lines.

    Attributes:
        source: Lines to translate.
        target: Their translations, same number.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.source)

    def first(self, num_lines: int | None) -> "ParallelText":
        """The first lines of both sides; None means all."""
        return ParallelText(source=self.source[:num_lines], target=self.target[:num_lines])


def find_text(folder: Path, corpus: str, language: str) -> Path:
    """Path of one side of a corpus, plain or gzipped.

    Raises:
        DataError: Neither file is there, or the folder cannot be read.
    """
    plain = folder / f"{corpus}.{language}"
    for path in (plain, plain.with_name(f"{plain.name}.gz")):
        if is_file(path):
            return path
    problem = "is no file" if exists(plain) else "no such file, nor with .gz"
    raise DataError(f"{plain}: {problem}")


def iterate_lines(path: Path) -> Iterator[str]:
    """Lines of a UTF-8 file without their ends, unpacked when the name ends in `.gz`.

    Only a line feed ends a line (a text may hold U+2028 or a form feed). Carriage returns before
    it belong to the end, and a byte order mark before the first line is no text.

    Raises:
        DataError: The file cannot be read, is damaged or is not UTF-8; the message names the
            line.
    """
    num_done = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            for line in stream:
                text = line if num_done else line.removeprefix(BOM_UTF8)
                yield text.removesuffix(b"\n").rstrip(b"\r").decode("utf-8")
                num_done += 1
    except (OSError, EOFError, zlib.error) as error:
        where = f"{path}:{num_done + 1}" if num_done else f"{path}"
        raise DataError(f"{where}: {error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}:{num_done + 1}: {error}") from error


def read_lines(path: Path) -> list[str]:
    """All lines of a file, as `iterate_lines` gives them."""
    return list(iterate_lines(path))


def iterate_parallel(
    source: Path, target: Path, *, may_be_blank: bool = False, remedy: str = ""
) -> Iterator[tuple[str, str]]:
    """Aligned lines of two files, neither of which is held in memory.

    Args:
        source: Path of one side.
        target: Path of the other.
        may_be_blank: Give blank lines back instead of refusing them.
        remedy: What a refusal of a blank line says besides.

    Raises:
        DataError: A file is empty, a line is blank, or, at the end of the shorter file, the
            numbers of lines differ; the message names the file and the line.
    """
    sides = (iterate_lines(source), iterate_lines(target))
    number, before = 0, ("", "")
    for number, lines in enumerate(zip_longest(*sides), start=1):
        first, second = lines
        if first is None or second is None:
            rest = 1 + sum(1 for side in sides for _ in side)
            counts = (number - 1, number - 1 + rest)
            longer, shorter = (target, source) if first is None else (source, target)
            raise DataError(
                f"{shorter}:{number}: no such line; {longer} has {counts[1]} lines but {shorter}"
                f" has {counts[0]}; aligned files have the same number"
                + (one_line(shorter, before[first is not None]) if number == 2 else "")
            )
        if not may_be_blank:
            for path, line in ((source, first), (target, second)):
                if not line.strip():
                    raise DataError(f"{path}:{number}: the line is blank{remedy}")
        before = first, second
        yield before
    if not number:
        raise DataError(f"{source}: the file is empty")


def one_line(path: Path, line: str) -> str:
    """What a message says besides of a file of one line, if its lines end in carriage returns."""
    if "\r" not in line:
        return ""
    return (
        f"; {path} is one line of {len(line)} characters, with carriage returns inside: only a"
        " line feed ends a line"
    )


def read_parallel(
    folder: Path, corpus: str, *, source_language: str, target_language: str
) -> ParallelText:
    """Read both sides of a corpus into memory.

    Raises:
        DataError: A file is missing or empty, the numbers of lines differ, or a line is blank;
            the message names the file and the line.
    """
    paths = [find_text(folder, corpus, code) for code in (source_language, target_language)]
    source, target = zip(*iterate_parallel(paths[0], paths[1]), strict=True)
    return ParallelText(source=source, target=target)


class TokenisedPairs:
    """Token ids of sentence pairs that are all read once an epoch, each side one flat array.

    Attributes:
        source_lengths: (P,) source tokens with EOS.
        target_lengths: (P,) target tokens with EOS.
    """

    def __init__(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> None:
        self._source_ids, self._source_ends = _flatten(sources)
        self._target_ids, self._target_ends = _flatten(targets)
        self.source_lengths = np.diff(self._source_ends)
        self.target_lengths = np.diff(self._target_ends)

    def __len__(self) -> int:
        return len(self.source_lengths)

    def source(self, index: int) -> NDArray[np.int32]:
        """Source ids of one pair, EOS at the end."""
        return self._source_ids[self._source_ends[index] : self._source_ends[index + 1]]

    def target(self, index: int) -> NDArray[np.int32]:
        """Target ids of one pair, EOS at the end."""
        return self._target_ids[self._target_ends[index] : self._target_ends[index + 1]]

    def epoch_copies(self, epoch: int) -> NDArray[np.int64]:  # noqa: ARG002  # every epoch's
        """(P,) how often each pair occurs in one epoch."""
        return np.ones(len(self), dtype=np.int64)

    def rows(
        self,
        indices: Sequence[int],
        *,
        epoch: int,  # noqa: ARG002  # these rows are always the same
        number: int,  # noqa: ARG002  # same
    ) -> tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]:
        """Both sides of the pairs of a batch; see `model.train.data.batching.Pairs`."""
        return [self.source(index) for index in indices], [self.target(index) for index in indices]


def tokenise(
    text: ParallelText,
    *,
    encode_source: Encode,
    encode_target: Encode,
    eos_id: int,
    max_length: int,
) -> TokenisedPairs:
    """Tokenise a small text, leaving out pairs with a side that is empty or too long.

    Args:
        text: Its lines.
        encode_source: Texts → ids of the source side.
        encode_target: Texts → ids of the target side.
        eos_id: Put at the end of both sides.
        max_length: Limit in tokens with EOS.
    """
    sources, targets = [], []
    encoded = zip(encode_source(list(text.source)), encode_target(list(text.target)), strict=True)
    for source, target in encoded:
        if max(len(source), len(target)) < max_length and source and target:
            sources.append([*source, eos_id])
            targets.append([*target, eos_id])
    return TokenisedPairs(sources, targets)


def _flatten(rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    ends = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=ends[1:])
    flat = np.fromiter((token for row in rows for token in row), dtype=np.int32, count=ends[-1])
    return flat, ends
