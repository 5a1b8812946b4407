"""Processors that this process may use, by its affinity and its cgroups.

Owns the reading of both. A container with a limit of two processors sees all of its machine's; a
thread for each of these would have all of them stopped together once the quota is used up. Imports
no torch.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PROC = Path("/proc/self")
CPUS = Path("/sys/devices/system/cpu")
MAX_THREADS = 1024
"""Of a CPU that anything may be asked to run on; far more cannot even be started."""

_ESCAPED = re.compile(r"\\([0-7]{3})")


def usable_cores(proc: Path = PROC) -> int:
    """Whole processors that threads may keep busy; at least 1.

    A part of a processor is not counted: a thread that has only a part of one holds up the others.

    Args:
        proc: The folder of this process in /proc, with `cgroup` and `mountinfo`.
    """
    has_affinity = hasattr(os, "sched_getaffinity")
    num_cores = len(os.sched_getaffinity(0)) if has_affinity else (os.cpu_count() or 1)
    return max(1, math.floor(min(num_cores, cpu_quota(proc))))


def default_num_threads(
    proc: Path = PROC, cpus: Path = CPUS, environment: Mapping[str, str] = os.environ
) -> int:
    """Threads for arithmetic: the usable cores, but one for two threads of a core.

    `OMP_NUM_THREADS` makes it fewer, as it does for torch, whose default this is but for quotas.

    Args:
        proc: The folder of this process in /proc.
        cpus: Where Linux tells of each processor.
        environment: Where `OMP_NUM_THREADS` may be.
    """
    limits = [usable_cores(proc), _physical_cores(cpus)]
    first = environment.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if first.isdecimal() and int(first) > 0:
        limits.append(int(first))
    return min(limits)


def cpu_quota(proc: Path = PROC) -> float:
    """Processors' worth of time that the cgroups allow, the smallest along the path to their root.

    Args:
        proc: The folder of this process in /proc, with `cgroup` and `mountinfo`.

    Returns:
        Infinity where nothing limits it, or where it cannot be read.
    """
    try:
        hierarchies = list(_cpu_hierarchies(proc))
    except (OSError, ValueError):
        return math.inf  # not Linux, or a /proc that is not shown
    folders = {folder for hierarchy in hierarchies for folder in hierarchy.folders()}
    return min((_quota_of(folder) for folder in folders), default=math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hierarchy:
    """Mount point of one hierarchy of cgroups, and this process's group in it.

    Attributes:
        mount_point: Where it is mounted.
        root: Which group of the hierarchy is mounted there.
        group: The group of this process.
    """

    mount_point: Path
    root: PurePosixPath
    group: PurePosixPath

    def folders(self) -> Iterator[Path]:
        """The folders of the process's group and of those above it, as far as they are seen."""
        is_seen = self.group.is_relative_to(self.root) and ".." not in self.group.parts
        # A container may be told its place on the host, and sees its own group as the root.
        inside = self.group.relative_to(self.root) if is_seen else PurePosixPath()
        yield self.mount_point / inside
        for above in inside.parents:
            yield self.mount_point / above


def _cpu_hierarchies(proc: Path) -> Iterator[_Hierarchy]:
    """Those that can limit processor time: version 2, and the controller "cpu" of version 1."""
    groups = {}
    for line in (proc / "cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, group = line.split(":", 2)
        for name in controllers.split(","):  # "" in version 2
            groups[name] = PurePosixPath(group)
    for line in (proc / "mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        wanted = {"cgroup2": "", "cgroup": "cpu"}.get(kind)
        if wanted is None or wanted not in groups:
            continue
        if wanted and wanted not in options.split(","):
            continue
        root, mount_point = (_unescaped(field) for field in before.split(" ")[3:5])
        yield _Hierarchy(
            mount_point=Path(mount_point), root=PurePosixPath(root), group=groups[wanted]
        )


def _physical_cores(cpus: Path) -> int:
    """Cores of the processors that this process may use, however many threads each has."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    siblings = {siblings_of(cpus, number) for number in os.sched_getaffinity(0)}
    return len(siblings)


def siblings_of(cpus: Path, number: int) -> str:
    """The processors that share a core with this one; itself where that cannot be read."""
    try:
        path = cpus / f"cpu{number}" / "topology" / "thread_siblings_list"
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return str(number)


def _quota_of(folder: Path) -> float:
    """Processors' worth of time of one group; infinity where it has no limit, or none to read."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii")
            period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii")
        if quota == "max" or int(quota) <= 0:
            return math.inf
        return int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf


def _unescaped(field: str) -> str:
    """A path of mountinfo, where spaces and the like are octal."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), field)
