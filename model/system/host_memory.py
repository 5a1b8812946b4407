"""Most memory that a process can have, in its container or on its machine.

Owns what Linux tells of that. Does not own what is too much. Imports no torch.
"""

import re
from collections.abc import Iterator
from pathlib import Path

_MEMORY_LINE = re.compile(r"^(MemTotal|SwapTotal): *(\d+) kB$", re.MULTILINE)


def host_limit(
    processes: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """Bytes of the machine, or of the container if that has less, and all of the swap space.

    None if that is not known.

    Args:
        processes: Where Linux tells of the machine and of this process.
        groups: Where it tells of control groups, version 1 or 2: the limits of containers.
    """
    machine = dict(_MEMORY_LINE.findall(_text(processes / "meminfo")))
    if "MemTotal" not in machine:
        return None
    memory = min([1024 * int(machine["MemTotal"]), *_group_limits(processes, groups)])
    return memory + 1024 * int(machine.get("SwapTotal", 0))


def gibibytes(num_bytes: int) -> str:
    """A number of bytes for people."""
    return f"{num_bytes / 2**30:,.1f} GiB"


def _group_limits(processes: Path, groups: Path) -> Iterator[int]:
    """Of this process's control groups and of those around them."""
    for line in _text(processes / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            folder, name = groups, "memory.max"
        elif "memory" in controllers.split(","):
            folder, name = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        for part in path.split("/"):  # the first is empty: the root, which is a container's own
            folder /= part
            limit = _text(folder / name).strip()
            if limit.isdecimal():  # not "max"
                yield int(limit)


def _text(path: Path) -> str:
    """Of a file, or nothing where there is none that may be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
