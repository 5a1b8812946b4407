"""What the measurement of the front's time is made of, without a server."""

from benchmarks import front


def _row(milliseconds: float, *, clients: int = 1, errors: int = 0) -> dict[str, object]:
    return {
        "path": "/translate",
        "num_clients": clients,
        "num_errors": errors,
        "front_milliseconds": milliseconds,
    }


def test_medians_are_of_the_rounds_and_judged_by_the_mark() -> None:
    rows = [_row(0.3), _row(0.9), _row(0.2), _row(0.5, clients=8, errors=2)]
    assert front.medians(rows) == {"/translate, clients: 1": 0.3, "/translate, clients: 8": 0.5}
    assert front.missed_marks(rows) == [
        "2 requests failed",
        "/translate, clients: 8: 0.50 ms, at most 0.4 ms",
    ]
