"""How many documents a caller may have, and how many bytes all of them."""

from pathlib import Path

import pytest

from service.documents.kept import KeptJobs
from service.documents.room import QueueLimits, Upload, check_bytes, gives_way
from service.documents.room import check_number as check_number_at
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


def check_number(
    limits: QueueLimits,
    jobs: KeptJobs,
    uploads: list[Upload],
    identity: str,
    *,
    now: float = 0.0,
) -> None:
    check_number_at(limits, jobs, uploads, identity, now=now)


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


@pytest.mark.parametrize(
    ("ends", "num_uploads", "seconds"),
    [
        ((40.0, 20.0), 0, 10.0),  # kept for 60 s, and seen to be over within 30 s
        ((40.0, -80.0), 0, 1.0),  # it is over, and goes with the next look
        ((20.0,), 1, 60.0),
        ((20.0, None), 0, 60.0),  # one that fails may go sooner
    ],
)
def test_a_caller_is_told_when_a_place_comes_free(
    ends: tuple[float | None, ...], num_uploads: int, seconds: float
) -> None:
    kept = KeptJobs(
        job(f"{number}", ended=end, state="translating" if end is None else "done")
        for number, end in enumerate(ends)
    )
    with pytest.raises(RequestError) as caught:
        check_number(LIMITS, kept, [upload(A, 0)] * num_uploads, A, now=100.0)
    assert caught.value.problem.retry_after_seconds == seconds


def test_of_a_caller_who_has_no_place_left_what_was_fetched_first_gives_way() -> None:
    ends = {"a": 7.0, "b": 5.0}
    fetched = [job(name, state="done", ended=end, is_fetched=True) for name, end in ends.items()]
    kept = KeptJobs(fetched)
    found = gives_way(LIMITS, kept, [], A)
    assert found is not None
    assert found.id == "b"
    assert gives_way(LIMITS, kept, [], B) is None
    assert gives_way(LIMITS, KeptJobs(fetched[:1]), [], A) is None  # there is room
    assert gives_way(LIMITS, KeptJobs(fetched[:1]), [upload(A, 0)], A) == fetched[0]
    waited_for = [job(name, state="done", ended=5.0) for name in "ab"]
    assert gives_way(LIMITS, KeptJobs(waited_for), [], A) is None


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
