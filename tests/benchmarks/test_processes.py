import signal
import subprocess
import sys
import time

import pytest

from benchmarks.processes import Lines, address_of, end


def _started(code: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def test_lines_are_read_one_by_one_also_where_they_come_together() -> None:
    with _started("print('one\\ntwo\\nthé end', end='')") as process:
        assert process.stdout is not None
        lines = Lines(process.stdout)
        assert [lines.next(60) for _ in range(4)] == ["one\n", "two\n", "thé end", ""]


def test_a_process_that_says_nothing_is_not_waited_for_without_end() -> None:
    with _started("import time; print('half', end='', flush=True); time.sleep(600)") as process:
        assert process.stdout is not None
        with pytest.raises(TimeoutError, match=r"no line within 0\.1 s"):
            Lines(process.stdout).next(0.1)
        assert address_of(process, seconds=0.1) is None
        process.kill()


def test_a_server_s_address_is_in_its_first_line() -> None:
    with _started("print('listens on http://127.0.0.1:80 now')") as process:
        assert address_of(process) == "http://127.0.0.1:80"
    with _started("pass") as process:
        assert address_of(process) is None


def test_a_process_that_does_not_listen_to_sigterm_ends_too() -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    with _started(f"{deaf}; print('ready', flush=True); time.sleep(600)") as process:
        assert process.stdout is not None
        Lines(process.stdout).next(60)
        started = time.monotonic()
        end(process, seconds=0.1)
        assert process.returncode == -signal.SIGKILL
        assert time.monotonic() - started < 60
