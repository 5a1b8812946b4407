"""Progress of bulk jobs: totals, what was there before, the time left, a line now and then."""

from model.offline.bulk.blocks import BadCell, Receipt
from service.cli.translate.bulk_progress import SECONDS_BETWEEN_LINES, BulkProgress, in_words


def _receipt(num_rows: int, *bad: int) -> Receipt:
    cells = tuple(BadCell(row=row, column="a", reason="null") for row in bad)
    return Receipt(block=0, num_rows=num_rows, size=0, sha256="", num_characters=0, bad=cells)


def test_time_left_is_by_the_speed_of_this_command_alone() -> None:
    now = [100.0]
    progress = BulkProgress(num_rows=1_000, num_done=500, clock=lambda: now[0], show=None)
    assert progress.seconds_left is None
    now[0] += 20
    progress.add(_receipt(100))
    assert progress.seconds_left == 80
    assert progress.line() == "600 of 1,000 rows; 80 s left"


def test_a_line_is_shown_now_and_then() -> None:
    now, lines = [0.0], []
    progress = BulkProgress(num_rows=5_000, num_done=0, clock=lambda: now[0], show=lines.append)
    for _ in range(5):
        now[0] += SECONDS_BETWEEN_LINES / 2
        progress.add(_receipt(1_000, 3, 3, 4))
    assert lines == [
        "2,000 of 5,000 rows, 4 bad; 45 s left",
        "4,000 of 5,000 rows, 8 bad; 15 s left",
    ]


def test_durations_are_said_as_people_say_them() -> None:
    assert [in_words(seconds) for seconds in (5, 600, 9_000)] == ["5 s", "10 min", "2.5 h"]
