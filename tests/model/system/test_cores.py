import math
import os
from pathlib import Path

import pytest

from model.system.cores import cpu_quota, default_num_threads, usable_cores
from service.cores import engine_threads


class Machine:
    """A /proc/self and the folders of cgroups that it names."""

    def __init__(self, folder: Path) -> None:
        self.proc = folder / "proc"
        self.proc.mkdir()
        self.mounts = folder / "cgroup mounts"
        self.mounts.mkdir()
        self._mountinfo = ["22 1 8:1 / / rw,relatime - ext4 /dev/root rw"]
        self._groups: list[str] = []
        self._write()

    def _write(self) -> None:
        (self.proc / "mountinfo").write_text("\n".join(self._mountinfo) + "\n")
        (self.proc / "cgroup").write_text("".join(f"{line}\n" for line in self._groups))

    def mount(self, name: str, kind: str, options: str, *, root: str = "/") -> Path:
        point = self.mounts / name
        point.mkdir(exist_ok=True)
        shown = str(point).replace(" ", r"\040")
        line = f"30 22 0:26 {root} {shown} ro,nosuid shared:9 - {kind} cgroup {options}"
        self._mountinfo.append(line)
        self._write()
        return point

    def join(self, *groups: str) -> None:
        self._groups = list(groups)
        self._write()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """With 16 processors and no cgroup."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    return Machine(tmp_path)


def _limit_v2(folder: Path, limit: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.max").write_text(f"{limit}\n")


def _limit_v1(folder: Path, quota: int, period: int = 100_000) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (folder / "cpu.cfs_period_us").write_text(f"{period}\n")


@pytest.mark.parametrize(
    ("limit", "num_cores"),
    [
        ("max 100000", 16),
        ("400000 100000", 4),
        ("250000 100000", 2),
        ("50000 100000", 1),
        ("30000 10000", 3),
        ("9900000 100000", 16),
        ("what is this", 16),
        ("", 16),
        ("100000 0", 16),
    ],
)
def test_version_2_gives_the_whole_processors_of_its_quota(
    machine: Machine, limit: str, num_cores: int
) -> None:
    point = machine.mount("unified", "cgroup2", "rw")
    machine.join("0::/")
    _limit_v2(point, limit)
    assert usable_cores(machine.proc) == num_cores


@pytest.mark.parametrize(
    ("quota", "period", "num_cores"),
    [(-1, 100_000, 16), (350_000, 100_000, 3), (20_000, 10_000, 2)],
)
def test_version_1_does_too(machine: Machine, quota: int, period: int, num_cores: int) -> None:
    machine.mount("memory", "cgroup", "rw,memory")
    point = machine.mount("cpu,cpuacct", "cgroup", "rw,cpu,cpuacct")
    machine.join("5:memory:/", "4:cpu,cpuacct:/docker/abc", "1:name=systemd:/docker/abc")
    _limit_v1(point / "docker/abc", quota, period)
    assert usable_cores(machine.proc) == num_cores


def test_the_smallest_quota_along_the_path_holds(machine: Machine) -> None:
    point = machine.mount("unified", "cgroup2", "rw")
    machine.join("0::/pods/burstable/container")
    _limit_v2(point / "pods", "600000 100000")
    _limit_v2(point / "pods/burstable", "300000 100000")
    _limit_v2(point / "pods/burstable/container", "800000 100000")
    _limit_v2(point / "others", "100000 100000")
    assert cpu_quota(machine.proc) == 3.0
    _limit_v2(point / "pods/burstable", "max 100000")
    assert cpu_quota(machine.proc) == 6.0


def test_both_versions_at_once_are_both_looked_at(machine: Machine) -> None:
    unified = machine.mount("unified", "cgroup2", "rw")
    old = machine.mount("cpu", "cgroup", "rw,cpu")
    machine.join("1:cpu:/a", "0::/b")
    _limit_v1(old / "a", 500_000)
    assert cpu_quota(machine.proc) == 5.0
    _limit_v2(unified / "b", "200000 100000")
    assert cpu_quota(machine.proc) == 2.0


@pytest.mark.parametrize(
    ("root", "group"),
    [
        ("/docker/abc", "/docker/abc"),  # the host's path, of which this group is mounted
        ("/", "/../outside"),  # a group outside of the namespace
        ("/docker/abc", "/docker/other"),
    ],
)
def test_a_container_finds_its_own_group_at_the_mount_point(
    machine: Machine, root: str, group: str
) -> None:
    point = machine.mount("cpu", "cgroup", "rw,cpu", root=root)
    machine.join(f"4:cpu:{group}")
    _limit_v1(point, 200_000)
    assert usable_cores(machine.proc) == 2


def test_without_a_proc_nothing_is_limited(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path / "nowhere") == math.inf
    (tmp_path / "cgroup").write_text("no colons\n")
    (tmp_path / "mountinfo").write_text("")
    assert cpu_quota(tmp_path) == math.inf


def test_the_engine_leaves_one_processor_of_the_quota_to_the_front(machine: Machine) -> None:
    point = machine.mount("unified", "cgroup2", "rw")
    machine.join("0::/")
    for limit, num_threads in (("400000 100000", 3), ("150000 100000", 1), ("max 100000", 15)):
        _limit_v2(point, limit)
        assert engine_threads(usable_cores(machine.proc)) == num_threads


@pytest.mark.parametrize(
    ("environment", "num_threads"),
    [({}, 8), ({"OMP_NUM_THREADS": "3,1"}, 3), ({"OMP_NUM_THREADS": "all"}, 8)],
)
def test_two_threads_of_a_core_count_as_one_and_openmp_may_say_less(
    machine: Machine, tmp_path: Path, environment: dict[str, str], num_threads: int
) -> None:
    for number in range(16):
        folder = tmp_path / f"cpu{number}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{number % 8},{number % 8 + 8}\n")
    assert default_num_threads(machine.proc, tmp_path, environment) == num_threads


def test_where_siblings_are_not_told_every_processor_is_a_core(
    machine: Machine, tmp_path: Path
) -> None:
    assert default_num_threads(machine.proc, tmp_path / "nowhere", {}) == 16
