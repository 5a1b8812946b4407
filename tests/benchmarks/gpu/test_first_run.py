"""The first run's order: every row is written, and what fails stops nothing."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from benchmarks.gpu import first_run


def test_every_row_is_written_and_a_part_that_fails_stops_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(_: first_run.Setting) -> Iterator[dict[str, Any]]:
        yield {"row": 1}
        raise RuntimeError("no more memory")

    def good(_: first_run.Setting) -> Iterator[dict[str, Any]]:
        yield {"row": 2}

    monkeypatch.setattr(first_run, "PARTS", {"failing": failing, "good": good})
    report: dict[str, Any] = {}
    written: list[int] = []
    setting = first_run.Setting(device=torch.device("cpu"), is_quick=True)
    first_run.run(setting, report, lambda: written.append(len(report)), seconds=60)
    assert report == {
        "failing": [{"row": 1}, {"error": "RuntimeError: no more memory"}],
        "good": [{"row": 2}],
    }
    assert written == [1, 1, 2, 2]


def test_without_time_no_part_begins() -> None:
    report: dict[str, Any] = {}
    setting = first_run.Setting(device=torch.device("cpu"), is_quick=True)
    first_run.run(setting, report, lambda: None, seconds=-1)
    assert list(report) == list(first_run.PARTS)
    assert all(rows == [{"error": "no time left"}] for rows in report.values())
