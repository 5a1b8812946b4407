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
    check_room(LIMITS, [job("a")], [], identity="address:1", num_bytes=88)
    check_room(LIMITS, [], [], identity="address:1", num_bytes=130)  # nobody else has any


def test_a_caller_has_so_many_those_that_arrive_included() -> None:
    assert "2 documents are kept for you" in refusal(
        jobs=1, uploads=1, identity="address:1", num_bytes=1
    )


def test_each_caller_leaves_a_quarter_of_what_the_others_have_not_taken() -> None:
    assert "99 bytes of documents would be kept for you; the limit is 98" in refusal(
        jobs=1, identity="address:1", num_bytes=89
    )
    theirs = Upload(job_id="v", files=JobFiles(Path("v")), identity="address:9", num_bytes=10)
    check_room(LIMITS, [job("a")], [theirs], identity="address:9", num_bytes=80)
    with pytest.raises(RequestError, match="91 bytes of documents would be kept for you"):
        check_room(LIMITS, [job("a")], [theirs], identity="address:9", num_bytes=81)


def test_all_callers_have_so_many_and_so_many_bytes() -> None:
    assert "4 documents are kept; the limit is 4" in refusal(jobs=4, num_bytes=1)
    assert "131 bytes of documents would be kept" in refusal(jobs=1, uploads=1, num_bytes=31)
