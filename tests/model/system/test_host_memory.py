"""What a process could still have: of the machine, its control groups, and its own limits."""

from pathlib import Path

import pytest

from model.system.host_memory import free_memory, readable_bytes
from support.short_of_memory import printed

MIB = 2**20


def free(
    folder: Path, *, cgroup: str = "0::/\n", swap: int = 0, files: dict[str, str] | None = None
) -> int | None:
    """What is found on a machine of 8 MiB, of which 6 are available."""
    (folder / "proc" / "self").mkdir(parents=True, exist_ok=True)
    (folder / "proc" / "meminfo").write_text(
        f"MemTotal: 8192 kB\nMemFree: 12 kB\nMemAvailable: 6144 kB\nSwapFree: {swap} kB\n",
        encoding="utf-8",
    )
    (folder / "proc" / "self" / "cgroup").write_text(cgroup, encoding="utf-8")
    for name, text in (files or {}).items():
        path = folder / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return free_memory(folder / "proc", folder / "groups")


def test_a_machine_has_what_is_available_and_its_free_swap_space(tmp_path: Path) -> None:
    assert free(tmp_path / "a") == 6 * MIB
    assert free(tmp_path / "b", swap=1024) == 7 * MIB


def test_what_zfs_gives_back_is_free(tmp_path: Path) -> None:
    arcstats = tmp_path / "proc" / "spl" / "kstat" / "zfs" / "arcstats"
    arcstats.parent.mkdir(parents=True)
    arcstats.write_text(
        f"name   type data\nc_min  4    {MIB}\nsize   4    {3 * MIB}\nc_max 4 99\n",
        encoding="utf-8",
    )
    assert free(tmp_path) == 8 * MIB


SECOND = {
    "pod/memory.max": f"{4 * MIB}\n",
    "pod/memory.current": f"{3 * MIB}\n",
    "pod/memory.stat": f"anon 5\nfile 900\nactive_file {MIB // 2}\ninactive_file {MIB}\n",
}
FIRST = {
    "memory/a/memory.limit_in_bytes": f"{4 * MIB}\n",
    "memory/a/memory.usage_in_bytes": f"{3 * MIB}\n",
    "memory/a/memory.stat": "active_file 7\ninactive_file 7\n"
    f"total_active_file {MIB // 2}\ntotal_inactive_file {MIB}\n",
}


@pytest.mark.parametrize(
    ("cgroup", "files", "expected"),
    [
        ("0::/pod\n", SECOND, 5 * MIB // 2),
        ("4:cpu,memory:/a\n0::/\n", FIRST, 5 * MIB // 2),
        ("0::/pod\n", {**SECOND, "pod/memory.max": "max\n"}, 6 * MIB),
        ("0::/pod/box\n", {**SECOND, "pod/box/memory.max": "max\n"}, 5 * MIB // 2),
        ("0::/pod\n", {**SECOND, "pod/memory.current": f"{9 * MIB}\n"}, 0),
        ("0::/pod\n", {"pod/memory.max": f"{4 * MIB}\n"}, 6 * MIB),  # what it has is not told
    ],
)
def test_a_container_has_what_its_limit_leaves_and_the_pages_of_files_that_it_can_drop(
    tmp_path: Path, cgroup: str, files: dict[str, str], expected: int
) -> None:
    assert free(tmp_path, cgroup=cgroup, files=files) == expected


def test_a_limit_of_the_process_counts_what_it_has() -> None:
    code = f"""
from model.system.host_memory import free_memory

before = free_memory()
leave({32 * MIB})
after = free_memory()
held = bytearray({16 * MIB})
print(before > {64 * MIB}, after <= {32 * MIB}, after > {24 * MIB}, free_memory() < {17 * MIB})
"""
    assert printed(code) == "True True True True\n"


def test_where_linux_does_not_tell_nothing_is_known(tmp_path: Path) -> None:
    assert free_memory(tmp_path, tmp_path) is None


def test_bytes_are_told_in_the_unit_that_shows_them() -> None:
    numbers = (0, 3 * MIB // 2, 600 * MIB, 2**40)
    told = ["0.0 MiB", "1.5 MiB", "0.6 GiB", "1,024.0 GiB"]
    assert [readable_bytes(number) for number in numbers] == told
