"""Conversions with a stand-in for the command, which does what its package says."""

import asyncio
import fcntl
import os
import sys
from pathlib import Path

import pytest

from service.models.checkpoints import conversion
from service.models.checkpoints.conversion import convert_packages
from service.models.checkpoints.packages import CONVERTED_FOLDER, find_packages

COMMAND = """#!/bin/sh
# -P -m service.cli.main convert SOURCE DESTINATION --name=NAME
echo "$5 $7" >> "{log}"
. "$5"
"""
GOOD = 'mkdir "$6" && echo "{}" > "$6/config.json"\n'
BAD = 'printf "dragoman: %s cannot be converted:\\n  one\\n  two\\n" "$5" >&2; exit 1\n'
KILLED = "kill -9 $$\n"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What was asked of the command, a line a call."""
    log, command = tmp_path / "log", tmp_path / "command"
    command.write_text(COMMAND.format(log=log))
    command.chmod(0o755)
    log.touch()
    monkeypatch.setattr(sys, "executable", str(command))
    return log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    return folder


def faults(folder: Path) -> dict[str, str]:
    """Of every package that cannot be converted, the reason."""
    found = asyncio.run(convert_packages(folder))
    return {fault.directory.name: fault.reason for fault in found}


def lines(log: Path) -> list[str]:
    """Of the log."""
    return log.read_text().splitlines()


def test_what_is_there_is_converted_once_and_under_its_own_name(folder: Path, log: Path) -> None:
    for name in ("b", "a"):
        (folder / f"{name}.argosmodel").write_text(GOOD)
    assert faults(folder) == faults(folder) == {}
    places = [f"{folder}/{name}.argosmodel --name={name}" for name in ("a", "b")]
    assert lines(log) == places
    assert all(package.is_converted() for package in find_packages(folder))


def test_one_that_fails_stops_no_other_and_is_tried_again(folder: Path, log: Path) -> None:
    for name, what in (("a", BAD), ("b", KILLED), ("c", GOOD)):
        (folder / f"{name}.argosmodel").write_text(what)
    expected = {
        "a": "a.argosmodel cannot be converted: one; two",
        "b": "b.argosmodel: its conversion ended with status -9, as one does that the system ends"
        " for want of memory",
    }
    assert faults(folder) == expected
    assert faults(folder) == expected
    assert len(lines(log)) == 5
    (folder / "a.argosmodel").write_text(GOOD)
    (folder / "b.argosmodel").unlink()
    assert faults(folder) == {}


@pytest.mark.usefixtures("log")
def test_the_checkpoint_of_an_earlier_file_stays_where_a_new_one_is_no_good(folder: Path) -> None:
    (folder / "a.argosmodel").write_text(GOOD)
    assert faults(folder) == {}
    (folder / "a.argosmodel").write_text(BAD)
    assert faults(folder) == {"a": "a.argosmodel cannot be converted: one; two"}
    [package] = find_packages(folder)
    assert (package.directory / "config.json").is_file()


@pytest.mark.usefixtures("log")
def test_a_folder_that_cannot_be_written_is_a_fault_of_every_package(folder: Path) -> None:
    (folder / CONVERTED_FOLDER).touch()
    for name in ("a", "b"):
        (folder / f"{name}.argosmodel").write_text(GOOD)
    found = faults(folder)
    assert found.keys() == {"a", "b"}
    assert found["a"] == "a.argosmodel: .converted cannot be used: File exists"


@pytest.mark.usefixtures("log")
def test_servers_of_one_folder_take_turns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "_LOCK_SECONDS", 0.01)
    (folder / "a.argosmodel").write_text(GOOD)
    (folder / CONVERTED_FOLDER).mkdir()
    [package] = find_packages(folder)

    async def scenario() -> None:
        descriptor = os.open(folder / CONVERTED_FOLDER, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        task = asyncio.create_task(convert_packages(folder))
        for _ in range(10):
            await asyncio.sleep(0.01)
        assert not package.is_converted()
        os.close(descriptor)
        assert await task == ()
        assert package.is_converted()

    asyncio.run(scenario())


def test_a_conversion_that_is_given_up_leaves_no_process(folder: Path, log: Path) -> None:
    (folder / "a.argosmodel").write_text(f'echo $$ >> "{log}"; exec sleep 100\n')

    async def scenario() -> None:
        task = asyncio.create_task(convert_packages(folder))
        while len(lines(log)) < 2:  # noqa: ASYNC110  # another process writes it
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    process_id = int(lines(log)[1])
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
