"""What the measurement of teams beside others is made of, without the measuring."""

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks import neighbours
from model.loading import load_for_decoding
from model.native import kernels
from support.tiny_checkpoint import write_tiny_checkpoint


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
    with neighbours.neighbour(name, min(os.sched_getaffinity(0))) as has_priority:
        [process] = started
        assert has_priority == (os.sched_getscheduler(process.pid) == os.SCHED_FIFO)
        assert process.args[0] == sys.executable  # type: ignore[index]  # a list
        assert process.poll() is None
    assert process.returncode is not None


def test_alone_nobody_is_asked_before_others() -> None:
    with neighbours.neighbour("alone", 0) as has_priority:
        assert not has_priority


def test_whoever_has_no_right_to_be_asked_first_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = "import os\ndef refuse(*_): raise PermissionError\nos.sched_setscheduler = refuse\n"
    (code,) = neighbours.NEIGHBOURS["on a stolen core"] or ()
    monkeypatch.setattr(neighbours, "NEIGHBOURS", {"on a stolen core": (refused + code,)})
    with neighbours.neighbour("on a stolen core", min(os.sched_getaffinity(0))) as has_priority:
        assert not has_priority


@pytest.mark.skipif(kernels.find_problem() is not None, reason="no int8 here")
def test_the_result_says_who_was_asked_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def neighbour(name: str, core: int) -> Iterator[bool]:
        yield name == "on a stolen core"

    monkeypatch.setattr(neighbours, "neighbour", neighbour)
    monkeypatch.setattr(neighbours, "speed", lambda *_: 1.0)
    monkeypatch.setattr(neighbours, "FORMS", {"1 thread": neighbours.FORMS["1 thread"]})
    runnable = load_for_decoding(write_tiny_checkpoint(tmp_path / "a"), num_threads=1)
    cores = sorted(os.sched_getaffinity(0))
    rows = neighbours.measure(runnable, Namespace(turns=1), cores)
    assert [(row["neighbour"], row["has_priority"]) for row in rows] == [
        ("alone", False),
        ("beside a busy process", False),
        ("on a stolen core", True),
    ]
