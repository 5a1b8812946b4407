"""Documents near the limits, and what is said of the event loop, without a server."""

import pytest

from benchmarks import uploads
from model.documents.formats import open_document

MAX_CHARACTERS = 1_000_000


def _row(kind: str, *, lag: float = 0.002, errors: int = 0, read: int = 3) -> dict[str, object]:
    return {
        "documents": kind,
        "num_sent": read + 1,
        "num_read": read,
        "megabytes_per_second": 9.5,
        "num_errors": errors,
        "latency_seconds": {"p50": 0.01, "p99": 0.05},
        "event_loop_lag_below_seconds": {"p50": 0.001, "p99": lag, "p99.9": 0.05, "p100": 0.1},
    }


@pytest.mark.parametrize("kind", uploads.KINDS)
def test_a_document_is_as_large_as_asked_for_and_opens(kind: str) -> None:
    content = uploads.KINDS[kind](4_000_000)
    assert 3_700_000 < len(content) <= 4_000_000
    texts = open_document(content, kind).texts
    assert len(texts) > 1000
    if kind != "txt":
        assert 100_000 < sum(map(len, texts)) < MAX_CHARACTERS


def test_failures_documents_that_nobody_read_and_lag_are_told() -> None:
    rows = [
        _row("none", errors=2, read=0),
        _row("txt", lag=0.05),
        _row("docx", read=0),
        _row("html"),
    ]
    assert uploads.missed_marks(rows) == [
        "none: 2 short requests failed",
        "txt: event-loop lag p99 up to 0.05 s",
        "docx: no document was read",
    ]


def test_the_table_has_a_line_for_each_kind() -> None:
    *_, last = uploads.table([_row("txt")]).splitlines()
    assert last == ("| txt | 4, 3 | 9.5 | < 1 ms | < 2 ms | < 50 ms | < 100 ms | 10 ms | 50 ms |")
