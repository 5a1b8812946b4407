"""Processes that open and rebuild documents, as the front sees them: started, awaited, ended.

Owns what their endings mean. What they do, and within which bounds, is `service.documents.child`.
"""

import asyncio
import os
import signal

from model.errors import DocumentError, one_line
from service.child_command import child_command
from service.documents.child import DISK_STATUS, MAX_CPU_SECONDS, REFUSED_STATUS
from service.documents.jobs import JobOptions
from service.documents.store import JobFiles

_WALL_SECONDS = 10 * MAX_CPU_SECONDS
_MAX_REASON = 500
_INHERITED = (
    *("PATH", "PYTHONHOME", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
    *("LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR"),
)
"""What an interpreter needs of the environment; keys of callers and passwords are there too."""
_TOO_MUCH = {
    signal.SIGXCPU: f"takes longer than {MAX_CPU_SECONDS} seconds to read or to write",
    signal.SIGXFSZ: "becomes too large",
    signal.SIGKILL: "takes more memory or time than there is for one",
}


async def open_source(asked: JobOptions, files: JobFiles, *, max_characters: int) -> None:
    """Write the texts of a document down; cancelling it ends the process.

    Args:
        asked: What kind it is.
        files: Of its job.
        max_characters: Of all texts together.

    Raises:
        DocumentError: It cannot be read.
        OSError: The process cannot be started, or the disk refuses what it writes.
    """
    await _run("open", asked.kind, files.source, files.texts, str(max_characters))


async def rebuild(asked: JobOptions, files: JobFiles, *, language: str | None = None) -> None:
    """Write the translated document, of all translations; errors as of `open_source`.

    Args:
        asked: What kind it is.
        files: Of its job.
        language: Tag of the translations' language; None if they are the texts as they were.
    """
    paths = (files.source, files.translations, files.result)
    await _run("rebuild", asked.kind, *paths, language or "")


async def _run(action: str, kind: str, *arguments: os.PathLike[str] | str) -> None:
    process = await asyncio.create_subprocess_exec(
        *child_command("service.documents.child", action, kind, *map(str, arguments)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        env={name: os.environ[name] for name in _INHERITED if name in os.environ},
    )
    try:
        async with asyncio.timeout(_WALL_SECONDS):
            output, _ = await process.communicate()
    except BaseException as error:
        if process.returncode is None:
            process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            raise DocumentError(kind, _TOO_MUCH[signal.SIGKILL]) from error
        raise
    if process.returncode:
        raise _ending(kind, process.returncode, output)


def _ending(kind: str, status: int, output: bytes) -> DocumentError | OSError:
    if status == DISK_STATUS:
        return OSError(int(output), os.strerror(int(output)))
    if status == REFUSED_STATUS:
        reason = one_line(output.decode(errors="replace"), max_characters=_MAX_REASON)
        return DocumentError(kind, reason.removeprefix(f"the {kind} document "))
    by_signal = {-number: words for number, words in _TOO_MUCH.items()}
    return DocumentError(kind, by_signal.get(status, "cannot be read"))
