"""Conversion of the packages that lie among the checkpoints, each in a process of its own.

Owns the processes and what is told of one that fails: it stops neither the server nor the other
packages. What is converted is `service.models.checkpoints.packages`; the process is `dragoman
convert`, so the front knows no format and has no torch.
"""

import asyncio
import fcntl
import logging
import os
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from model.errors import one_line
from service.child_command import child_command
from service.engine.lifetime import ended_first, killed_hint
from service.models.checkpoints.discovery import FaultyCheckpoint
from service.models.checkpoints.packages import CONVERTED_FOLDER, Package, find_packages, tidy

_LOGGER = logging.getLogger("dragoman")

_LOCK_SECONDS = 0.5
_MAX_REASON = 2_000


async def convert_packages(path: Path) -> tuple[FaultyCheckpoint, ...]:
    """Convert the packages in a folder whose checkpoints are not made of them as they are now.

    One after the other, on one thread each: requests are answered meanwhile. Servers of one folder
    take turns. Cancelling it ends the process; the next conversion goes on where that was.

    Returns:
        Those that could not be converted. A checkpoint of an earlier version stays.
    """
    waiting = await asyncio.to_thread(_unconverted, path)
    if not waiting:
        return ()
    folder = waiting[0].file.parent
    try:
        async with _alone(folder / CONVERTED_FOLDER):
            await asyncio.to_thread(tidy, folder)
            faults = [await _converted(package) for package in waiting]
    except OSError as error:
        reason = f"{CONVERTED_FOLDER} cannot be used: {error.strerror}"
        faults = [_fault(package, f"{package.file.name}: {reason}") for package in waiting]
    return tuple(fault for fault in faults if fault is not None)


def _unconverted(path: Path) -> list[Package]:
    try:
        packages = find_packages(Path(os.path.realpath(path)))
        return [one for one in packages if not one.is_converted()]
    except OSError:
        return []  # whoever looks for checkpoints says why


@asynccontextmanager
async def _alone(folder: Path) -> AsyncIterator[None]:
    """Wait until no other process converts in the folder; the lock goes with this one.

    Raises:
        OSError: It cannot be made or locked.
    """
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    descriptor = await asyncio.to_thread(os.open, folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while not _has_locked(descriptor):  # noqa: ASYNC110  # the other one is another process
            await asyncio.sleep(_LOCK_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _has_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _converted(package: Package) -> FaultyCheckpoint | None:
    """The fault of a package; None once its checkpoint is there."""
    if await asyncio.to_thread(package.is_converted):  # by whoever had the lock before
        return None
    started = time.monotonic()
    try:
        version = await asyncio.to_thread(package.version)
        await asyncio.to_thread(shutil.rmtree, package.unpublished, ignore_errors=True)
        reason = await _run(package)
        if reason is None:
            await asyncio.to_thread(package.publish, version)
    except OSError as error:
        reason = f"{package.file.name}: {error.strerror}"
    if reason is not None:
        return _fault(package, reason)
    fields = {"package": _shown(package.file), "seconds": round(time.monotonic() - started, 3)}
    _LOGGER.info("package_converted", extra={"fields": fields})
    return None


async def _run(package: Package) -> str | None:
    """Convert in another process, in a session of its own: why it failed, or None.

    Raises:
        OSError: The process cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *child_command("service.cli.main", "convert"),
        *(package.file, package.unpublished, f"--name={package.name}"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )
    try:
        with ended_first(process.pid):
            _, output = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    return None if process.returncode == 0 else _reason(package, process.returncode, output)


def _reason(package: Package, status: int | None, output: bytes) -> str:
    """The error that the command printed, with names for paths; else how it ended."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines()]
    if status != 1 or not lines or not lines[0].startswith("dragoman: "):
        hint = killed_hint(status)
        return f"{package.file.name}: its conversion ended with status {status}{hint}"
    first, *others = lines
    text = " ".join([first.removeprefix("dragoman: "), "; ".join(others)])
    return one_line(text.replace(f"{package.file.parent}{os.sep}", ""), max_characters=_MAX_REASON)


def _fault(package: Package, reason: str) -> FaultyCheckpoint:
    fields = {"package": _shown(package.file), "reason": reason}
    _LOGGER.error("package_refused", extra={"fields": fields})
    return FaultyCheckpoint(directory=package.directory, reason=reason)


def _shown(file: Path) -> str:
    return os.fsencode(file.name).decode(errors="replace")
