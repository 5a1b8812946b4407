"""What the scripts share: commands side by side that end well, and errors in one line."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import one_line_errors, run_all
from model.errors import DataError

EXPERIMENTS = Path(__file__).parents[2] / "experiments"

SLOW_TO_SAVE = """
import os, signal, sys, time
from pathlib import Path

def save(*_):
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(0.8)  # what saving takes; `subprocess.run` would grant a quarter of a second
    Path(sys.argv[1]).write_text("saved")
    sys.exit(130)

for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, save)
os.write(1, b"ready\\n")  # at once, or two could mix
while True:
    signal.pause()
"""
STARTS_TWO = """
import signal, sys
from commands import run_all
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
run_all([["one"], ["two"]], program=[sys.executable, "-c", sys.argv[1]])
"""


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM"])
def test_what_is_stopped_has_the_time_to_save(how: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_TWO, SLOW_TO_SAVE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(EXPERIMENTS), *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as script:
        assert script.stdout is not None
        ready = [script.stdout.readline() for _ in range(2)]
        if how == "Ctrl-C":
            os.killpg(script.pid, signal.SIGINT)  # as a terminal does
        else:
            script.terminate()
        _, said = script.communicate()
    assert ready == ["ready\n"] * 2
    assert {path.name for path in tmp_path.iterdir()} == {"one", "two"}
    assert (script.returncode, said) == (130, "")


def test_one_that_fails_stops_the_others_and_is_named() -> None:
    fails_or_waits = "import signal, sys; sys.exit(3) if sys.argv[1] == 'a' else signal.pause()"
    with pytest.raises(SystemExit, match=r"^dragoman a b: exit status 3$"):
        run_all([["wait"], ["a", "b"]], program=[sys.executable, "-c", fails_or_waits])


def test_an_error_that_was_foreseen_is_one_line() -> None:
    with pytest.raises(SystemExit) as raised, one_line_errors():
        raise DataError("en-zh/train/x.en: no such file")
    assert raised.value.code == "en-zh/train/x.en: no such file"
