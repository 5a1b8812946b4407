"""Comparison of two checkouts: each direction in each setting, in bounded time.

Owns the types of the comparison and how outputs are found to differ; not where outputs come from,
which is `library` and `served`.
"""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

Way = Literal["library", "http"]
ComputeType = Literal["int8", "float32"]
Lines = Mapping[str, Sequence[str]]
"""By language."""
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """A direction of a bundled checkpoint.

    Attributes:
        checkpoint: Name of its folder.
        source: Tag of the source language.
        target: Tag of the target language.
    """

    checkpoint: str
    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"

    @property
    def language(self) -> str:
        """Suffix of the files that it reads."""
        return self.source.partition("-")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One line of the table.

    Attributes:
        way: Through the library or over HTTP.
        checkpoint: Name of its folder.
        direction: For people.
        compute_type: Arithmetic.
        search: Its name.
        num_sentences: Lines compared.
        differing: Numbers of the lines whose outputs differ.
    """

    way: Way
    checkpoint: str
    direction: str
    compute_type: ComputeType
    search: str
    num_sentences: int
    differing: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What both checkouts are asked.

    Attributes:
        checkouts: Their folders, absolute; old, new.
        directions: Those with text.
        lines: The text.
        compute_types: Arithmetics.
        num_threads: Of each checkout.
    """

    checkouts: tuple[Path, Path]
    directions: tuple[Direction, ...]
    lines: Lines
    compute_types: tuple[ComputeType, ...]
    num_threads: int


class Deadline:
    """End of the time that the whole comparison may take."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    def seconds_left(self) -> float:
        """Time until then.

        Raises:
            SystemExit: There is none.
        """
        left = self._end - self._clock()
        if left <= 0:
            raise SystemExit("stopped, or the time is over (--max-minutes); nothing is written")
        return left

    def stop(self, *_signal: object) -> None:
        """End it now, as the handler of a signal does."""
        self._end = -math.inf


def compared(
    way: Way,
    direction: Direction,
    compute_type: ComputeType,
    search: str,
    outputs: Sequence[Sequence[object]],
) -> Compared:
    """The line of the table that two lists of outputs make."""
    old, new = outputs
    pairs = enumerate(zip(old, new, strict=True))
    return Compared(
        way=way,
        checkpoint=direction.checkpoint,
        direction=str(direction),
        compute_type=compute_type,
        search=search,
        num_sentences=len(old),
        differing=tuple(number for number, (one, other) in pairs if one != other),
    )


def bundled_directions(checkout: Path) -> list[Direction]:
    """What the bundled checkpoints of a checkout translate.

    Raises:
        SystemExit: It has none.
    """
    found = [
        Direction(checkpoint=path.parent.name, source=pair["source"], target=pair["target"])
        for path in sorted((checkout / "checkpoints").glob("*/config.json"))
        for pair in json.loads(path.read_text(encoding="utf-8"))["pairs"]
    ]
    if not found:
        raise SystemExit(f"{checkout} has no bundled checkpoints")
    return found


def at_once(calls: Sequence[Callable[[], Found]]) -> list[Found]:
    """What the calls return, each made on a thread of its own.

    Raises:
        SystemExit: One of the calls does.
    """
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]
