"""What the measurement of teams beside others is made of, without the measuring."""

import os
import subprocess
import sys

import pytest

from benchmarks import neighbours


def _row(form: str, neighbour: str, speed: float) -> dict[str, object]:
    return {"turn": 0, "form": form, "neighbour": neighbour, "tokens_per_second": speed}


def test_medians_are_of_every_form_beside_every_neighbour() -> None:
    rows = [_row("a", "x", 3.0), _row("a", "y", 9.0), _row("a", "x", 1.0), _row("a", "x", 2.0)]
    assert neighbours.medians(rows) == {"a": {"x": 2.0, "y": 9.0}}


@pytest.mark.parametrize("name", [name for name, code in neighbours.NEIGHBOURS.items() if code])
def test_a_neighbour_runs_while_it_is_there_and_no_longer(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(*arguments: object, **named: object) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **named))  # type: ignore[call-overload]  # as it was called
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    with neighbours.neighbour(name, min(os.sched_getaffinity(0))):
        [process] = started
        assert process.args[0] == sys.executable  # type: ignore[index]  # a list
        assert process.poll() is None
    assert process.returncode is not None
