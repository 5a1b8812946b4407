from pathlib import Path

import pytest

from service.documents.room import QueueLimits, Upload, check_room
from service.documents.store import JobFiles
from service.errors import RequestError
from support.document_jobs import job

LIMITS = QueueLimits(
    max_bytes=100,
    max_characters=1000,
    max_jobs=2,
    max_total_bytes=130,
    max_working=1,
    keep_seconds=60.0,
    max_total_jobs=4,
)
ARRIVING = Upload(job_id="u", files=JobFiles(Path("u")), identity="address:1", num_bytes=90)


def refusal(*, jobs: int = 0, uploads: int = 0, identity: str = "address:9", num_bytes: int) -> str:
    with pytest.raises(RequestError) as caught:
        check_room(
            LIMITS,
            [job(f"{number}") for number in range(jobs)],
            [ARRIVING] * uploads,
            identity=identity,
            num_bytes=num_bytes,
        )
    assert caught.value.problem.status == 429
    assert caught.value.problem.retry_after_seconds
    return str(caught.value)


def test_there_is_room_up_to_the_limits() -> None:
    check_room(LIMITS, [job("a")], [ARRIVING], identity="address:9", num_bytes=30)
    check_room(LIMITS, [job("a")], [], identity="address:1", num_bytes=100)


def test_a_caller_has_so_many_those_that_arrive_included() -> None:
    assert "2 documents are kept for you" in refusal(
        jobs=1, uploads=1, identity="address:1", num_bytes=1
    )


def test_all_callers_have_so_many_and_so_many_bytes() -> None:
    assert "4 documents are kept; the limit is 4" in refusal(jobs=4, num_bytes=1)
    assert "131 bytes of documents would be kept" in refusal(jobs=1, uploads=1, num_bytes=31)
