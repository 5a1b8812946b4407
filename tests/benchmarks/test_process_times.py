"""Processor seconds by process: descendants alone, since the beginning, those that ended too."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.process_times import ProcessTimes, kind_of_process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing tells of processes")
SECOND = os.sysconf("SC_CLK_TCK")


class _System:
    """What the system tells: processes with their parents, and the cores' ticks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cores(busy=0, idle=0, stolen=0)

    def cores(self, *, busy: int, idle: int, stolen: int) -> None:
        ticks = [one * SECOND for one in (busy, 0, 0, idle, 0, 0, 0, stolen)]
        text = f"cpu  {' '.join(map(str, ticks))} 0 0\ncpu0 1 2 3\n"
        (self.folder / "stat").write_text(text, encoding="utf-8")

    def process(
        self, number: int, parent: int, seconds: int, command: str, *, began: int = 1
    ) -> None:
        place = self.folder / str(number)
        place.mkdir(exist_ok=True)
        times = f"{seconds * SECOND - 1} 1"
        line = f"{number} (a) b) S {parent} {'0 ' * 9}{times} {'0 ' * 6}{began} 0\n"
        (place / "stat").write_text(line, encoding="utf-8")
        (place / "cmdline").write_bytes(command.replace(" ", "\0").encode())

    def end(self, number: int) -> None:
        for path in (self.folder / str(number)).iterdir():
            path.unlink()
        (self.folder / str(number)).rmdir()


def _first(words: Sequence[str]) -> str:
    return words[0]


def test_each_kind_has_what_it_used_since_the_beginning(tmp_path: Path) -> None:
    system = _System(tmp_path)
    system.process(1, 0, 50, "init")
    system.process(7, 1, 5, "root")
    system.process(8, 7, 3, "daemon")
    system.cores(busy=100, idle=10, stolen=1)
    times = ProcessTimes(7, _first, tmp_path)
    system.process(7, 1, 6, "root")
    system.process(8, 7, 5, "daemon")
    system.process(9, 8, 4, "IDLE")
    times.look()
    system.process(9, 8, 9, "worker")  # has another title now
    system.process(10, 1, 30, "strange")
    times.look()
    system.end(9)
    system.process(9, 1, 40, "strange", began=2)  # the number again, of somebody else
    system.cores(busy=150, idle=12, stolen=4)
    times.look()
    used = times.used()
    assert used.by_kind == {"benchmark": 1.0, "daemon": 2.0, "worker": 9.0}
    assert (used.others, used.stolen, used.idle) == (38.0, 3.0, 2.0)


def test_what_has_ended_and_waits_for_its_parent_keeps_its_kind(tmp_path: Path) -> None:
    system = _System(tmp_path)
    system.process(7, 1, 1, "root")
    times = ProcessTimes(7, _first, tmp_path)
    system.process(8, 7, 2, "command")
    times.look()
    system.process(8, 7, 3, "")
    times.look()
    assert times.used().by_kind == {"command": 3.0}


def test_a_real_child_is_seen_while_it_is_watched() -> None:
    times = ProcessTimes(os.getpid(), kind_of_process)
    work = "sum(range(30_000_000))"
    with times.watched(), subprocess.Popen([sys.executable, "-c", work]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        times.look()
    used = times.used()
    assert sum(used.by_kind.values()) > 0
    assert min(used.others, used.stolen, used.idle) >= 0


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("/a/ray/core/src/ray/raylet/raylet --agent=python dashboard/agent.py", "raylet"),
        ("/a/gcs_server --log_dir=/tmp", "gcs_server"),
        ("/a/python3.11 -u /a/ray/_private/log_monitor.py --session-dir=/tmp", "log_monitor"),
        ("/a/python -m service.cli.main translate in.txt", "service.cli.main"),
        ("/a/python -c pass", "python"),
        ("ray::BulkWorker.do", "worker"),
        ("ray::MapWorker(MapBatches(ColumnTranslator)).submit", "worker"),
        ("ray::DashboardAgent", "agents"),
        ("ray::IDLE", "tasks"),
        ("ray::ReadText->SplitBlocks(4)", "tasks"),
    ],
)
def test_processes_of_ray_are_told_apart(command: str, kind: str) -> None:
    assert kind_of_process(command.split()) == kind
