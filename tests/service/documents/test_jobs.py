from service.documents.jobs import Owner, next_job
from support.document_jobs import job

OTHER = Owner(key_name="", identity="address:2")


def test_the_oldest_is_next() -> None:
    assert next_job([], []) is None
    found = next_job([job("b", created=2.0), job("a", created=1.0)], [])
    assert found is not None
    assert found.id == "a"


def test_a_caller_with_fewer_in_work_goes_before_an_older_job() -> None:
    waiting = [job("a", created=1.0), job("b", created=2.0, owner=OTHER)]
    found = next_job(waiting, [job("c")])
    assert found is not None
    assert found.id == "b"


def test_progress_is_a_share_of_the_characters() -> None:
    assert job("a").progress == 0.0
    assert job("a", num_characters=10, num_done=5).progress == 0.5
    assert job("a", state="done").progress == 1.0
