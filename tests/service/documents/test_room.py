"""How many documents a caller may have, and how many bytes all of them."""

from pathlib import Path

import pytest

from service.documents.kept import KeptJobs
from service.documents.room import QueueLimits, Upload, check_bytes, check_number
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
A, B = "address:1", "address:9"


def upload(identity: str, num_bytes: int) -> Upload:
    """A file of which so many bytes have come."""
    return Upload(job_id="u", files=JobFiles(Path("u")), identity=identity, num_bytes=num_bytes)


def check(arriving: Upload, num_bytes: int, *others: Upload, jobs: int = 0) -> None:
    kept = KeptJobs(job(f"{number}") for number in range(jobs))
    check_bytes(LIMITS, kept, [arriving, *others], arriving, num_bytes)


def refusal(caught: pytest.ExceptionInfo[RequestError]) -> tuple[str, object, object]:
    problem = caught.value.problem
    assert (problem.status, problem.code) == (429, "overloaded")
    assert problem.retry_after_seconds
    return problem.message, problem.value, problem.limit


def test_there_is_room_up_to_the_limits() -> None:
    check_number(LIMITS, KeptJobs([job("a")]), [], B)
    check(upload(B, 0), 30, upload(A, 90), jobs=1)
    check(upload(B, 20), 30, upload(A, 90), jobs=1)
    check(upload(A, 0), 88, jobs=1)
    check(upload(A, 0), 130)  # nobody else has any


def test_a_caller_has_so_many_those_that_arrive_included() -> None:
    with pytest.raises(RequestError) as caught:
        check_number(LIMITS, KeptJobs([job("a")]), [upload(A, 0)], A)
    words = "Slowdown: 2 documents are kept for you; the limit is 2"
    assert refusal(caught) == (words, 2, 2)
    check_number(LIMITS, KeptJobs([job("a")]), [upload(A, 0)], B)


def test_all_callers_have_so_many() -> None:
    with pytest.raises(RequestError) as caught:
        check_number(LIMITS, KeptJobs(job(f"{number}") for number in range(4)), [], B)
    assert refusal(caught) == ("Slowdown: 4 documents are kept; the limit is 4", 4, 4)


def test_all_callers_have_so_many_bytes() -> None:
    for has in (0, 30):
        with pytest.raises(RequestError) as caught:
            check(upload(B, has), 31, upload(A, 90), jobs=1)
        words = "Slowdown: 131 bytes of documents would be kept; the limit is 130"
        assert refusal(caught) == (words, 131, 130)


def test_each_caller_leaves_a_quarter_of_what_the_others_have_not_taken() -> None:
    with pytest.raises(RequestError) as caught:
        check(upload(A, 0), 89, jobs=1)
    words = "Slowdown: 99 bytes of documents would be kept for you; the limit is 98"
    assert refusal(caught) == (words, 99, 98)
    check(upload(B, 0), 80, upload(B, 10), jobs=1)
    with pytest.raises(RequestError, match="91 bytes of documents would be kept for you"):
        check(upload(B, 80), 81, upload(B, 10), jobs=1)


def test_an_upload_of_which_nothing_has_come_is_in_nobodys_way() -> None:
    check(upload(A, 30), 130, upload(A, 0), upload(B, 0))
    with pytest.raises(RequestError, match=r"131 bytes of documents would be kept; .* 130"):
        check(upload(A, 0), 1, upload(A, 130))
    with pytest.raises(RequestError, match=r"101 bytes of documents would be kept for you; .* 98"):
        check(upload(A, 0), 1, upload(A, 100))
