"""What jobs take is what a count over all of them says, whatever became of them."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from service.documents.jobs import DocumentJob
from service.documents.kept import KeptJobs
from support.document_jobs import job

CALLERS = ("address:1", "address:9", "key:a")


@st.composite
def some_jobs(draw: st.DrawFn) -> DocumentJob:
    """A job of few names and callers, at any time of its life."""
    plain = job(draw(st.sampled_from("abcd")))
    return replace(
        plain,
        owner=replace(plain.owner, identity=draw(st.sampled_from(CALLERS))),
        state=draw(st.sampled_from(("queued", "translating", "done", "failed"))),
        num_bytes=draw(st.integers(0, 9)),
        work_bytes=draw(st.integers(0, 9)),
        result_bytes=draw(st.integers(0, 9)),
    )


@given(st.lists(some_jobs() | st.sampled_from("abcd")))
def test_sums_are_those_of_a_count(changes: list[DocumentJob | str]) -> None:
    kept, oracle = KeptJobs(), dict[str, DocumentJob]()
    for change in changes:
        if isinstance(change, str):
            assert kept.pop(change) == oracle.pop(change, None)
        else:
            kept.put(change)
            oracle[change.id] = change
        assert dict(kept) == oracle
        numbers, sizes = Counter[str](), Counter[str]()
        for one in oracle.values():
            numbers[one.owner.identity] += 1
            sizes[one.owner.identity] += one.stored_bytes
        assert {caller: kept.number_of(caller) for caller in CALLERS} == {
            caller: numbers[caller] for caller in CALLERS
        }
        assert {caller: sorted(one.id for one in kept.of(caller)) for caller in CALLERS} == {
            caller: sorted(one.id for one in oracle.values() if one.owner.identity == caller)
            for caller in CALLERS
        }
        assert {caller: kept.bytes_of(caller) for caller in CALLERS} == {
            caller: sizes[caller] for caller in CALLERS
        }
        assert kept.num_bytes == sizes.total()


def test_a_caller_without_jobs_is_forgotten() -> None:
    kept = KeptJobs([job("a")])
    kept.pop("a")
    assert repr(kept) == "<KeptJobs: 0 of 0 callers, 0 bytes>"
