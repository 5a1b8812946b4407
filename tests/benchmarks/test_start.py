"""What the measurements of a start are made of, without a server."""

import os
import subprocess
import sys

import pytest

from benchmarks import start


def test_a_command_is_timed_with_its_memory_and_a_failure_is_none() -> None:
    run = start.timed([sys.executable, "-c", "x = bytes(40 << 20)"], os.environ)
    assert run["peak_mib"] > 40
    assert run["cpu_seconds"] > 0
    with pytest.raises(subprocess.CalledProcessError, match="status 3"):
        start.timed([sys.executable, "-c", "raise SystemExit(3)"], os.environ)


def test_medians_are_judged_by_the_marks() -> None:
    runs = {
        "translate": [{"seconds": 0.9}, {"seconds": 5.0}, {"seconds": 0.8}],
        "serve": [{"seconds": 2.5}, {"seconds": 1.0}, {"seconds": 2.75}],
        "ctranslate2": [{"seconds": 9.0}],
    }
    found = start.medians(runs)
    assert found["translate"] == {"seconds": 0.9}
    assert start.missed_marks(found) == ["serve: 2.50 s, at most 2 s"]
