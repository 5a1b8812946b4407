"""Memory that a process can have: its limit, and what is free now.

Owns what Linux tells of that, for the machine, for its container and for itself. Does not
own what is too much. Imports no torch.
"""

import os
import re
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MEMORY_LINE = re.compile(r"^(MemTotal|MemAvailable|SwapTotal|SwapFree): *(\d+) kB$", re.MULTILINE)
_RECLAIMABLE_LINE = re.compile(r"^(?:total_)?(?:in)?active_file (\d+)$", re.MULTILINE)
_ARC_LINE = re.compile(r"^(size|c_min) +\d+ +(\d+)$", re.MULTILINE)
_OWN_LIMITS = ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5))
"""Limits of a process, and where in /proc/self/statm the pages stand that count for each."""
_FEW_BYTES = 2**30 // 2
_PROCESSES = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupFiles:
    """Names of files of a control group, by the version."""

    limit: str
    usage: str


_SECOND = _GroupFiles(limit="memory.max", usage="memory.current")
_FIRST = _GroupFiles(limit="memory.limit_in_bytes", usage="memory.usage_in_bytes")


def host_limit(processes: Path = _PROCESSES, groups: Path = _GROUPS) -> int | None:
    """Bytes of the machine, or of the container if that has less, and all of the swap space.

    None if that is not known.

    Args:
        processes: Where Linux tells of the machine and of this process.
        groups: Where it tells of control groups, version 1 or 2: the limits of containers.
    """
    machine = _machine(processes)
    if "MemTotal" not in machine:
        return None
    limits = [limit for _, _, limit in _limited_groups(processes, groups)]
    return min([machine["MemTotal"], *limits]) + machine.get("SwapTotal", 0)


def free_memory(processes: Path = _PROCESSES, groups: Path = _GROUPS) -> int | None:
    """Bytes that this process could have besides those that it has, now; None if not known.

    What the system can take back, pages of files above all, counts as free, as does swap space: so
    what is more than this cannot be had, and what is less may still run out.

    Args:
        processes: As of `host_limit`.
        groups: Likewise.
    """
    machine = _machine(processes)
    if "MemAvailable" not in machine:
        return None
    left = [machine["MemAvailable"] + _cache_of_zfs(processes)]
    for folder, names, limit in _limited_groups(processes, groups):
        usage = _text(folder / names.usage).strip()
        if usage.isdecimal():
            left.append(limit - int(usage) + _reclaimable(folder))
    whole = min(left) + machine.get("SwapFree", 0)
    return max(0, min([whole, *_left_of_own_limits(processes)]))


def readable_bytes(num_bytes: int) -> str:
    """A number of bytes for people; in MiB where there are few."""
    if num_bytes < _FEW_BYTES:
        return f"{num_bytes / 2**20:,.1f} MiB"
    return f"{num_bytes / 2**30:,.1f} GiB"


def _machine(processes: Path) -> dict[str, int]:
    found = _MEMORY_LINE.findall(_text(processes / "meminfo"))
    return {name: 1024 * int(number) for name, number in found}


def _cache_of_zfs(processes: Path) -> int:
    """Reclaimable part of the cache of ZFS, which Linux does not count as available."""
    text = _text(processes / "spl" / "kstat" / "zfs" / "arcstats")
    found = {name: int(number) for name, number in _ARC_LINE.findall(text)}
    return max(0, found.get("size", 0) - found.get("c_min", 0))


def _limited_groups(processes: Path, groups: Path) -> Iterator[tuple[Path, _GroupFiles, int]]:
    """Of this process's control groups and those around them, each that has a limit, with it."""
    for line in _text(processes / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            folder, names = groups, _SECOND
        elif "memory" in controllers.split(","):
            folder, names = groups / "memory", _FIRST
        else:
            continue
        for part in path.split("/"):  # the first is empty: the root, which is a container's own
            folder /= part
            limit = _text(folder / names.limit).strip()
            if limit.isdecimal():  # not "max"
                yield folder, names, int(limit)


def _reclaimable(folder: Path) -> int:
    """Pages of files; version 1 tells those of groups below it apart, with "total_" before them."""
    text = _text(folder / "memory.stat")
    found = _RECLAIMABLE_LINE.finditer(text)
    is_first = "total_active_file" in text
    return sum(int(line[1]) for line in found if line[0].startswith("total_") == is_first)


def _left_of_own_limits(processes: Path) -> Iterator[int]:
    pages = [int(number) for number in _text(processes / "self" / "statm").split()]
    for kind, place in _OWN_LIMITS:
        limit, _ = resource.getrlimit(kind)
        if limit != resource.RLIM_INFINITY and place < len(pages):
            yield limit - pages[place] * os.sysconf("SC_PAGE_SIZE")


def _text(path: Path) -> str:
    """Of a file, or nothing where there is none that may be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
