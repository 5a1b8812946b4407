"""Rows of the benchmark of bulk jobs: what a way took, and what follows from it.

Owns the ways' description, the arithmetic of rounds, and the tables. How a way is run is
`benchmarks.bulk`'s.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.process_times import ROOT_KIND, Used


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to translate a file.

    Attributes:
        name: It.
        num_workers: Processes that hold a network.
        num_threads: Of each.
        flags: Besides input and output.
    """

    name: str
    num_workers: int
    num_threads: int
    flags: tuple[str, ...] = ()

    @property
    def is_on_ray(self) -> bool:
        """Whether it has a cluster."""
        return self.name.startswith("ray")

    @property
    def num_commands(self) -> int:
        """How many commands share the lines; a cluster's workers are one command's."""
        return 1 if self.is_on_ray else self.num_workers

    def part_of(self, kind: str) -> str:
        """The part that a kind of process has in this way."""
        if kind == "command":
            return "driver" if self.is_on_ray else "workers"
        return {"worker": "workers", ROOT_KIND: ROOT_KIND}.get(kind, "cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one file took.

    Attributes:
        seconds: Start included.
        used: Who had the cores; None where the system does not tell.
    """

    seconds: float
    used: Used | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a way took.

    Attributes:
        way: It.
        runs: Of the short and of the long file in each round.
        num_lines: By which the long file is longer.
    """

    way: Way
    runs: tuple[tuple[Taken, Taken], ...]
    num_lines: int

    @property
    def seconds(self) -> list[float]:
        """Of each round, by which the long file took longer."""
        return [long.seconds - short.seconds for short, long in self.runs]

    @property
    def lines_per_second(self) -> float:
        """In the median round."""
        return self.num_lines / median(self.seconds)

    @property
    def per_worker(self) -> float:
        """Lines a second and a worker."""
        return self.lines_per_second / self.way.num_workers

    def core_ms_a_line(self) -> dict[str, float]:
        """Processor milliseconds a line in the mean of all rounds, by who had them."""
        found: dict[str, float] = {}
        for run in self.runs:
            for taken, sign in zip(run, (-1, 1), strict=True):
                if taken.used is None:
                    return {}
                used = {
                    "others": taken.used.others,
                    "stolen": taken.used.stolen,
                    "idle": taken.used.idle,
                }
                for kind, seconds in taken.used.by_kind.items():
                    part = self.way.part_of(kind)
                    used[part] = used.get(part, 0.0) + seconds
                for part, seconds in used.items():
                    found[part] = found.get(part, 0.0) + sign * seconds
        num_lines = self.num_lines * len(self.runs)
        return {part: seconds * 1e3 / num_lines for part, seconds in sorted(found.items())}

    @property
    def own_ms_a_line(self) -> float:
        """Of these, what the way itself takes: its workers, its driver, the cluster if it has one.

        A cluster is beside the other ways too, and does nothing for them.
        """
        found = self.core_ms_a_line()
        parts = ("workers", "driver", "cluster") if self.way.is_on_ray else ("workers",)
        return sum(found.get(part, 0.0) for part in parts)


def table(rows: Sequence[Row], tokens_a_line: float) -> str:
    """The rows as Markdown, each worker against one of `--engine local` with as many threads."""
    columns = (
        "lines/s",
        "a worker",
        "tokens/s a worker",
        "of one `local`",
        "of as many",
        "by round",
    )
    lines = [
        "| way | workers | threads | " + " | ".join(columns) + " |",
        "|:--|--:|--:|" + "--:|" * len(columns),
    ]
    local = {_place(row.way)[1:]: row for row in rows if row.way.name == "local"}
    for row in rows:
        way = row.way
        one = local.get((1, way.num_threads))
        as_many = local.get((way.num_workers, way.num_threads))
        cells = [*_place(way), f"{row.lines_per_second:.1f}", f"{row.per_worker:.1f}"]
        cells += [f"{row.per_worker * tokens_a_line:.0f}", _share(row, one), _share(row, as_many)]
        lines.append("| " + " | ".join(map(str, [*cells, _by_round(row, one)])) + " |")
    return "\n".join(lines)


def _place(way: Way) -> tuple[str, int, int]:
    return way.name, way.num_workers, way.num_threads


def _share(row: Row, base: Row | None) -> str:
    """What a worker does of what one of another row does."""
    return "" if base is None else f"{row.per_worker / base.per_worker:.2f}"


def _by_round(row: Row, base: Row | None) -> str:
    """The least and the most of the rounds, each against the same round of the other row."""
    if base is None:
        return ""
    shares = [
        theirs / own / row.way.num_workers * base.way.num_workers
        for own, theirs in zip(row.seconds, base.seconds, strict=True)
    ]
    return f"{min(shares):.2f} to {max(shares):.2f}"


def times_table(rows: Sequence[Row]) -> str:
    """Who had the cores, as Markdown: processor milliseconds a line.

    The last column holds what a way takes itself against one of `--engine local`: a share that does
    not suffer from what others took.
    """
    parts = ("workers", "driver", "cluster", ROOT_KIND, "others", "stolen", "idle")
    lines = [
        "| way | workers | threads | " + " | ".join(parts) + " | by own time, of one `local` |",
        "|:--|--:|--:|" + "--:|" * (len(parts) + 1),
    ]
    local = {_place(row.way)[1:]: row.own_ms_a_line for row in rows if row.way.name == "local"}
    for row in rows:
        found = row.core_ms_a_line()
        cells = [*_place(row.way), *(f"{found.get(part, 0.0):.3f}" for part in parts)]
        one, own = local.get((1, row.way.num_threads)), row.own_ms_a_line
        cells.append(f"{one / own:.2f}" if one and own else "")
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)
