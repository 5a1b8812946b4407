"""Who had the cores: processor seconds of a benchmark's processes, by kind, and what nobody had.

Owns the look at /proc: who descends from whom, what each has used, what it is. A process that ends
between two looks keeps what the last one saw. Linux only.
"""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

KindOf = Callable[[Sequence[str]], str]
"""What a process is, by its command's words."""

ROOT_KIND = "benchmark"
"""What the process is from which the others descend."""

_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_SECONDS = 0.5
_WORKERS = ("BulkWorker", "MapWorker")
_AGENTS = ("DashboardAgent", "RuntimeEnvAgent")

_Key = tuple[int, str]
"""A process: its id, and when it began, as ids are used again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What the cores did between two looks, in processor seconds.

    Attributes:
        by_kind: Of the processes that are watched.
        others: Of all other processes.
        stolen: Of other guests of the same host.
        idle: Of nobody, waits for a disk included.
    """

    by_kind: Mapping[str, float]
    others: float
    stolen: float
    idle: float


@dataclass(slots=True)
class _Process:
    kind: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Cores:
    busy: int
    stolen: int
    idle: int


class ProcessTimes:
    """Times of a process and of all that descend from it, since this was made.

    Args:
        root: Its id.
        kind_of: What a process is; asked at each look, as Ray renames its workers.
        proc: Where the system tells of processes.
    """

    def __init__(self, root: int, kind_of: KindOf, proc: Path = Path("/proc")) -> None:
        self._root = root
        self._kind_of = kind_of
        self._proc = proc
        self._seen: dict[_Key, _Process] = {}
        self._cores = self._last_cores = self._core_ticks()
        self.look()
        for process in self._seen.values():
            process.first = process.last

    def look(self) -> None:
        """See what each has used by now."""
        self._last_cores = self._core_ticks()
        parents: dict[int, int] = {}
        found: dict[int, tuple[_Key, int]] = {}
        for entry in self._proc.iterdir():
            if entry.name.isdigit() and (fields := self._fields(entry)):
                number = int(entry.name)
                parents[number] = int(fields[1])
                found[number] = ((number, fields[19]), int(fields[11]) + int(fields[12]))
        for number, (key, ticks) in found.items():
            if key in self._seen or self._descends(number, parents):
                self._note(key, ticks)

    def used(self) -> Used:
        """What was used from the beginning to the last look."""
        ticks: Counter[str] = Counter()
        for process in self._seen.values():
            ticks[process.kind] += process.last - process.first
        first, last = self._cores, self._last_cores
        ours = sum(ticks.values())
        return Used(
            by_kind={kind: number / _TICKS for kind, number in sorted(ticks.items()) if number},
            others=max(0, last.busy - first.busy - ours) / _TICKS,
            stolen=(last.stolen - first.stolen) / _TICKS,
            idle=(last.idle - first.idle) / _TICKS,
        )

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look twice a second, as processes end that nobody here waits for."""
        is_over = threading.Event()

        def watch() -> None:
            while not is_over.wait(_LOOK_SECONDS):
                self.look()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _note(self, key: _Key, ticks: int) -> None:
        words = self._words(key[0])
        process = self._seen.setdefault(key, _Process("unknown", 0, 0))
        process.last = max(process.last, ticks)  # two look at once, at the end
        if key[0] == self._root:
            process.kind = ROOT_KIND
        elif words:  # one that has ended has none
            process.kind = self._kind_of(words)

    def _descends(self, number: int, parents: Mapping[int, int]) -> bool:
        while number in parents:
            if number == self._root:
                return True
            number = parents[number]
        return False

    def _fields(self, entry: Path) -> list[str]:
        """Of a process, behind its name; none of one that has gone."""
        try:
            line = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return []
        return line.rpartition(")")[2].split()

    def _words(self, number: int) -> list[str]:
        try:
            data = (self._proc / str(number) / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return []
        return [word for word in data.decode(errors="replace").split("\0") if word.strip()]

    def _core_ticks(self) -> _Cores:
        first = (self._proc / "stat").read_text(encoding="utf-8").split("\n", 1)[0]
        user, nice, system, idle, waiting, _, _, stolen = map(int, first.split()[1:9])
        return _Cores(busy=user + nice + system, stolen=stolen, idle=idle + waiting)


def kind_of_process(words: Sequence[str]) -> str:
    """What a process of a program, or of Ray, is.

    Args:
        words: Of its command; Ray's own Python processes have a title instead.
    """
    title = words[0].strip()
    if title.startswith("ray::"):
        name = title.removeprefix("ray::").strip()
        if name.startswith(_WORKERS):
            return "worker"
        return "agents" if name.startswith(_AGENTS) else "tasks"
    if not Path(title).name.startswith("python"):
        return Path(title).name
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1]
    script = next((word for word in words[1:] if word.endswith(".py")), "")
    return Path(script).stem or "python"
