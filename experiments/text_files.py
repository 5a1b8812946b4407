"""Packed files of lines, which the scripts beside it write."""

import gzip
from collections.abc import Iterable
from pathlib import Path

from model.train.files import write_whole


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a packed file; the same lines make the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in lines)
    write_whole(path, gzip.compress(text.encode(), compresslevel=1, mtime=0))
