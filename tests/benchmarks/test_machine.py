"""What results files say of the machine."""

import inspect
import os
import platform
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import machine


def test_core_time_is_told_by_who_had_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(ticks: str, ours: int) -> None:
        (tmp_path / "stat").write_text(f"cpu  {ticks}\ncpu0 1 2 3\n", encoding="utf-8")
        for process, user in ((os.getpid(), 1), (7, ours)):
            folder = tmp_path / str(process)
            folder.mkdir(exist_ok=True)
            line = f"{process} (a) b) S {' '.join(['0'] * 10)} {user} 2 0 0\n"
            (folder / "stat").write_text(line, encoding="utf-8")

    monkeypatch.setattr(machine, "_PROC", tmp_path)
    write("10 0 10 80 0 0 0 5 0 0", ours=0)
    times = machine.CoreTime(lambda: [7, 8])  # 8 has gone
    write("20 10 20 130 5 2 3 25 7 0", ours=18)
    assert times.taken() == machine.Taken(stolen=20 / 110, others=12 / 110)
    assert times.taken() == machine.Taken(stolen=0.0, others=0.0)


def test_a_command_is_told_without_this_machines_folders() -> None:
    root = Path(machine.__file__).parents[1]
    words = ["en.txt", "/home/anna/a=b/en.txt", "--results=/mnt", f"{root}/runs/one", "--beam=1"]
    assert machine.describe_command("benchmarks.shapes", words) == (
        "python -m benchmarks.shapes en.txt a=b/en.txt --results=mnt runs/one --beam=1"
    )


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/home/alice/flickr.de", "flickr.de"),
        ("/Users/alice/text/en-de/train", "en-de/train"),
        ("/people/carol/flickr.de", "flickr.de"),  # this user's
        ("/people/bob/text/flickr.de", "text/flickr.de"),  # somebody else's beside it
        ("/people/bob", "."),
        ("/mnt/data/text/flickr.de", "text/flickr.de"),
        ("/mnt", "mnt"),
    ],
)
def test_no_path_names_a_person(path: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/people/carol")
    assert machine.describe_command("b", [path, f"--text={path}"]) == (
        f"python -m b {told} --text={told}"
    )


@pytest.mark.parametrize(
    "module",
    ["gpu.__main__", "peers.results", "served", "shapes", "soak.__main__", "scores", "training"],
)
def test_every_results_file_tells_its_command_so(module: str) -> None:
    found = import_module(f"benchmarks.{module}")
    source = inspect.getsource(found)
    assert source.count("sys.argv") == source.count("sys.argv[1:])") == 1
    assert source.count("describe_command(") == 1


@pytest.mark.parametrize(
    ("lines", "processor"),
    [
        (
            "cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: A B\n\nmodel\t\t: 18\n",
            "A B (family 25, model 17)",
        ),
        ("model name\t: A B\n", "A B"),
        ("CPU part\t: 0xd40\n", platform.processor() or platform.machine()),
    ],
)
def test_a_processor_is_told_from_others_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, processor: str
) -> None:
    (tmp_path / "cpuinfo").write_text(lines, encoding="utf-8")
    monkeypatch.setattr(machine, "_PROC", tmp_path)
    assert machine._processor() == processor


def test_the_machine_describes_itself() -> None:
    found = machine.describe_machine()
    assert found["processor"]
    assert found["num_cores"]
    taken = machine.CoreTime(list).taken()
    assert 0.0 <= taken.stolen <= 1.0
    assert machine.fixed_work_seconds() > 0.0
