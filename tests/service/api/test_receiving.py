import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.api.receiving import Receiving
from service.documents.jobs import DocumentJob
from service.documents.store import JobFiles
from service.errors import RequestError
from support.document_jobs import job


class Kept:
    """A queue whose jobs all have their files in one folder."""

    def __init__(self, folder: Path) -> None:
        self._files = JobFiles(folder)

    def result(self, _job: DocumentJob) -> JobFiles:
        return self._files

    async def on_disk(self, function: Callable[..., Any], *arguments: object) -> Any:
        return function(*arguments)


def test_a_result_that_has_just_been_removed_is_not_found(tmp_path: Path) -> None:
    anything: Any = None
    queue: Any = Kept(tmp_path)
    receiving = Receiving(front=anything, access=anything, queue=queue)
    done = job("a", state="done")
    with pytest.raises(RequestError, match="no such document") as caught:
        asyncio.run(receiving.result(done))
    assert caught.value.problem.status == 404
    (tmp_path / "result").write_bytes(b"four")
    reply = asyncio.run(receiving.result(done))
    assert reply.headers["content-length"] == "4"
