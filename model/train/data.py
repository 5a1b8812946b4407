"""Aligned text from files, tokenised once and kept in memory.

Owns file names (`<folder>/<split>/<corpus>.<language>[.gz]`), the checks that two sides belong
together, and the arrays of token ids. Does not own batches.
"""

import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from model.errors import DataError

Encode = Callable[[list[str]], list[list[int]]]
"""Texts → token ids without EOS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelText:
    """Two aligned lists of lines.

    Attributes:
        name: Name of the corpus.
        source: Lines to translate.
        target: Their translations, same number.
    """

    name: str
    source: tuple[str, ...]
    target: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.source)

    def first(self, num_lines: int | None) -> "ParallelText":
        """The first lines of both sides; None means all."""
        return ParallelText(
            name=self.name, source=self.source[:num_lines], target=self.target[:num_lines]
        )


def find_text(folder: Path, corpus: str, language: str) -> Path:
    """Path of one side of a corpus, plain or gzipped.

    Raises:
        DataError: Neither file is there.
    """
    plain = folder / f"{corpus}.{language}"
    for path in (plain, plain.with_name(f"{plain.name}.gz")):
        if path.is_file():
            return path
    raise DataError(f"{plain}: no such file, nor with .gz")


def read_lines(path: Path) -> list[str]:
    """Lines of a UTF-8 file without their ends, unpacked when the name ends in `.gz`.

    Only a line feed ends a line (a text may hold U+2028 or a form feed).

    Raises:
        DataError: The file cannot be read, is damaged or is not UTF-8.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}") from error
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def read_parallel(
    folder: Path, corpus: str, *, source_language: str, target_language: str
) -> ParallelText:
    """Read both sides of a corpus.

    Raises:
        DataError: A file is missing or empty, the numbers of lines differ, or a line is blank;
            the message names the file and the line.
    """
    paths = [find_text(folder, corpus, code) for code in (source_language, target_language)]
    sides = [read_lines(path) for path in paths]
    if not sides[0]:
        raise DataError(f"{paths[0]}: the file is empty")
    if len(sides[0]) != len(sides[1]):
        raise DataError(
            f"{paths[0]} has {len(sides[0])} lines but {paths[1]} has {len(sides[1])};"
            " aligned files have the same number"
        )
    for path, lines in zip(paths, sides, strict=True):
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                raise DataError(f"{path}:{number}: the line is blank")
    return ParallelText(name=corpus, source=tuple(sides[0]), target=tuple(sides[1]))


class TokenisedPairs:
    """Token ids of sentence pairs, each side one flat array.

    Attributes:
        source_lengths: (P,) source tokens with EOS.
        target_lengths: (P,) target tokens with EOS.
        copies: (P,) how often each pair occurs in an epoch.
    """

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        copies: Sequence[int],
    ) -> None:
        self._source_ids, self._source_ends = _flatten(sources)
        self._target_ids, self._target_ends = _flatten(targets)
        self.source_lengths = np.diff(self._source_ends)
        self.target_lengths = np.diff(self._target_ends)
        self.copies: NDArray[np.int64] = np.asarray(copies, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.copies)

    def source(self, index: int) -> NDArray[np.int32]:
        """Source ids of one pair, EOS at the end."""
        return self._source_ids[self._source_ends[index] : self._source_ends[index + 1]]

    def target(self, index: int) -> NDArray[np.int32]:
        """Target ids of one pair, EOS at the end."""
        return self._target_ids[self._target_ends[index] : self._target_ends[index + 1]]


def tokenise(
    texts: Sequence[tuple[ParallelText, int]],
    *,
    encode_source: Encode,
    encode_target: Encode,
    eos_id: int,
    max_length: int,
) -> TokenisedPairs:
    """Tokenise corpora, leaving out pairs with a side longer than `max_length`.

    Args:
        texts: Each corpus and how often its pairs occur in an epoch.
        encode_source: Texts → ids of the source side.
        encode_target: Texts → ids of the target side.
        eos_id: Put at the end of both sides.
        max_length: Limit in tokens with EOS.
    """
    sources, targets, copies = [], [], []
    for text, weight in texts:
        encoded = zip(
            encode_source(list(text.source)), encode_target(list(text.target)), strict=True
        )
        for source, target in encoded:
            if max(len(source), len(target)) < max_length and source and target:
                sources.append([*source, eos_id])
                targets.append([*target, eos_id])
                copies.append(weight)
    return TokenisedPairs(sources, targets, copies)


def _flatten(rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    ends = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=ends[1:])
    flat = np.fromiter((token for row in rows for token in row), dtype=np.int32, count=ends[-1])
    return flat, ends
