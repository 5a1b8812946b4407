"""Real processes, which open and rebuild real files."""

import asyncio
import errno
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from model.errors import DocumentError
from service.documents import child, process
from service.documents.jobs import JobOptions
from service.documents.store import JobFiles


@pytest.fixture
def files(tmp_path: Path) -> JobFiles:
    return JobFiles(tmp_path)


def asked(kind: str) -> JobOptions:
    return JobOptions(kind=kind, name=f"a.{kind}", source="en", target="de")


async def opened(files: JobFiles, kind: str, max_characters: int = 1_000) -> list[str]:
    await process.open_source(asked(kind), files, max_characters=max_characters)
    return files.read_texts()


def test_a_document_becomes_texts_and_texts_a_document(files: JobFiles) -> None:
    files.source.write_bytes("<html lang=de><p>Grüße <b>an</b> alle</p>".encode())

    async def main() -> None:
        (text,) = await opened(files, "html")
        files.add_translations([text.upper()])
        await process.rebuild(asked("html"), files, language=language)

    for language in (None, "en"):
        files.translations.unlink(missing_ok=True)
        asyncio.run(main())
        found = files.result.read_text(encoding="utf-8")
        assert found == f"<html lang={language or 'de'}><p>GRÜSSE <b>AN</b> ALLE</p>"


def test_what_is_wrong_with_a_file_is_told_as_the_library_has_it(files: JobFiles) -> None:
    files.source.write_bytes(b"PK no archive")
    with pytest.raises(DocumentError, match=r"^the docx document is no zip archive: File is not"):
        asyncio.run(opened(files, "docx"))
    files.source.write_bytes(b"Too much text.")
    with pytest.raises(DocumentError, match="has 14 characters; at most 13 are translated"):
        asyncio.run(opened(files, "txt", max_characters=13))
    assert not files.texts.exists()


def test_memory_is_bounded(files: JobFiles) -> None:
    files.source.write_bytes(b"[" + b"[]," * 1_500_000 + b"1]")
    program = (
        "import sys; from service.documents import child; child.MAX_MEMORY_BYTES = 96 * 2**20;"
        "sys.exit(child.main(sys.argv[1:]))"
    )
    arguments = ["open", "json", files.source, files.texts, "1000"]
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, check=False
    )
    assert done.returncode == child.REFUSED_STATUS, done.stderr
    assert done.stdout == b"the json document takes more memory than there is for one"


def test_a_disk_that_refuses_what_a_process_writes_is_told_with_its_error(files: JobFiles) -> None:
    files.source.write_bytes(b"text")
    program = (
        "import sys; from pathlib import Path; from service.documents import child\n"
        "def full(self, target): raise OSError(28, 'No space left on device')\n"
        "Path.replace = full; sys.exit(child.main(sys.argv[1:]))"
    )
    arguments = ["open", "txt", files.source, files.texts, "1000"]
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, check=False
    )
    error = process._ending("txt", done.returncode, done.stdout)
    assert isinstance(error, OSError)
    assert error.errno == errno.ENOSPC


def test_a_process_that_is_not_waited_for_any_more_is_ended(
    files: JobFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.source.write_bytes(b"[" * 1_000)
    start = asyncio.create_subprocess_exec
    started: list[asyncio.subprocess.Process] = []

    async def noted(*arguments: str, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*arguments, **options))
        task.cancel()
        return started[0]

    async def main() -> None:
        nonlocal task
        monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
        task = asyncio.create_task(opened(files, "csv"))
        with pytest.raises(asyncio.CancelledError):
            await task

    task: asyncio.Task[list[str]]
    asyncio.run(main())
    assert started[0].returncode == -signal.SIGKILL


def test_what_the_system_ends_is_told_as_a_bound(files: JobFiles) -> None:
    for status, words in ((-9, "more memory or time"), (-24, "longer than"), (-11, "cannot be")):
        assert words in str(process._ending("txt", status, b""))
    assert child.REFUSED_STATUS not in (0, 1, 2)
    assert files.folder.exists()


def test_a_process_knows_nothing_of_keys(files: JobFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_API_KEYS", "geheim")
    files.source.write_bytes(b"text")
    start = asyncio.create_subprocess_exec
    environments: list[dict[str, str]] = []

    async def noted(*arguments: str, **options: Any) -> asyncio.subprocess.Process:
        environments.append(options["env"])
        return await start(*arguments, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    assert asyncio.run(opened(files, "txt")) == ["text"]
    (environment,) = environments
    assert "PATH" in environment
    assert not [name for name in environment if name.startswith("DRAGOMAN")]
