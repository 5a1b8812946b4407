"""Shares of this process's processors: whole cores, side by side, each within one NUMA node.

Owns the division, and the reading of which processors belong together. How many may be used at all
is `model.system.cores`. Imports no torch.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from model.system.cores import CPUS, siblings_of


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Core:
    """A physical core.

    Attributes:
        node: The NUMA node that it belongs to.
        processors: Those of its threads that may be used, at least one.
    """

    node: int
    processors: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One part of the processors.

    Attributes:
        num_threads: Threads that it keeps busy.
        processors: Where they are to run; None where that is better left to the system.
    """

    num_threads: int
    processors: tuple[int, ...] | None = None


def read_cores(cpus: Path = CPUS) -> list[Core]:
    """The cores of the processors that this process may use, in the order of nodes.

    Args:
        cpus: Where Linux tells of each processor.
    """
    if not hasattr(os, "sched_getaffinity"):
        return [Core(node=0, processors=(number,)) for number in range(os.cpu_count() or 1)]
    by_core: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for number in sorted(os.sched_getaffinity(0)):
        by_core[_node(cpus, number), siblings_of(cpus, number)].append(number)
    return sorted(Core(node=node, processors=tuple(found)) for (node, _), found in by_core.items())


def divide(
    cores: Sequence[Core], num_shares: int, *, num_usable: int, num_left: int = 1
) -> list[Share]:
    """Shares of the cores, as even as nodes allow.

    Each share has a core first; of the others `num_left` belong to no share, for the processes
    beside, and what is still there makes the shares larger. With fewer cores than shares, the
    threads of a core are in several of them.

    Args:
        cores: In the order of nodes.
        num_shares: From 1 to `num_usable`.
        num_usable: Processors' worth of time that there is; with less than there are processors, a
            share is no more than a number of threads: others may have been told the same.
        num_left: Cores that belong to no share, as far as there are more cores than shares.
    """
    processors = [number for core in cores for number in core.processors]
    if num_usable < len(processors):
        num_threads = max(num_shares, min(num_usable, len(cores)) - num_left)
        return [Share(num_threads=number) for number in _even(num_threads, num_shares)]
    units = list(cores)
    if len(units) < num_shares:
        units = [
            Core(node=core.node, processors=(number,))
            for core in cores
            for number in core.processors
        ]
    return [
        Share(
            num_threads=len(part),
            processors=tuple(sorted(number for unit in part for number in unit.processors)),
        )
        for part in _parts(_without(units, min(num_left, len(units) - num_shares)), num_shares)
    ]


def _without(units: Sequence[Core], num_left: int) -> list[Core]:
    """All but so many, each taken from the end of the node that has most by then."""
    by_node: dict[int, list[Core]] = defaultdict(list)
    for unit in units:
        by_node[unit.node].append(unit)
    for _ in range(num_left):
        max(reversed(by_node.values()), key=len).pop()
    return [unit for inside in by_node.values() for unit in inside]


def _parts(units: Sequence[Core], num_parts: int) -> list[list[Core]]:
    """Units side by side, none across nodes unless there are fewer parts than nodes."""
    by_node: dict[int, list[Core]] = defaultdict(list)
    for unit in units:
        by_node[unit.node].append(unit)
    if num_parts < len(by_node):
        return _cut(units, num_parts)
    counts = dict.fromkeys(by_node, 1)
    for _ in range(num_parts - len(by_node)):
        able = [node for node in by_node if counts[node] < len(by_node[node])]
        counts[max(able, key=lambda node: len(by_node[node]) / counts[node])] += 1
    return [part for node, inside in by_node.items() for part in _cut(inside, counts[node])]


def _cut(units: Sequence[Core], num_parts: int) -> list[list[Core]]:
    parts, begin = [], 0
    for size in _even(len(units), num_parts):
        parts.append(list(units[begin : begin + size]))
        begin += size
    return parts


def _even(number: int, num_parts: int) -> list[int]:
    """A number as a sum, its parts as even as can be, the larger ones first."""
    each, rest = divmod(number, num_parts)
    return [each + (place < rest) for place in range(num_parts)]


def _node(cpus: Path, number: int) -> int:
    """The NUMA node of a processor; 0 where there are none."""
    try:
        names = [entry.name for entry in (cpus / f"cpu{number}").glob("node[0-9]*")]
        return int(names[0].removeprefix("node")) if names else 0
    except (OSError, ValueError):
        return 0
