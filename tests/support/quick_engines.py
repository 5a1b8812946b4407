"""Engines for fronts of this process, forked from one that has torch: its import takes seconds.

Owns how they are started; what they run is the engine's own entry. A forked engine is handed over
to this process, which so has a child to wait for and to die with, as `subprocess` would have given
it. That real start is tried in tests/service/engine/client/test_process.py and by every server in a
process of its own. Linux only.
"""

import ctypes
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.engine.client.process import engine_environment
from service.engine.lifetime import signals_held_back

_PR_SET_CHILD_SUBREAPER = 36
_MAX_BYTES = 64
_NUM_THREADS = 1


class AdoptedProcess(subprocess.Popen[bytes]):
    """A child of this process that another one has started."""

    def __init__(self, process_id: int) -> None:
        self.args = ["engine"]
        self.pid = process_id
        self.returncode = None
        self.stdin = self.stdout = self.stderr = None
        self._child_created = True
        self._waitpid_lock = threading.Lock()


class QuickEngines:
    """The process that forks; started with the first engine."""

    def __init__(self) -> None:
        self._requests: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self, file_number: int, num_threads: int, visible_device: str | None
    ) -> AdoptedProcess:
        """An engine over that socket, as `service.engine.client.process` would start one."""
        assert (num_threads, visible_device) == (_NUM_THREADS, None)
        requests = self._requests or self._open()
        with _adopting():
            socket.send_fds(requests, [str(os.getpid()).encode()], [file_number, 1, 2])
            return AdoptedProcess(int(requests.recv(_MAX_BYTES)))

    def _open(self) -> socket.socket:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = engine_environment(os.environ, num_threads=_NUM_THREADS)
        with theirs, signals_held_back():
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.quick_engines", str(theirs.fileno())],
                cwd=Path(__file__).parents[1],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env=environment | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        return self._requests

    def close(self) -> None:
        """End the process that forks; engines are their fronts' to end."""
        if self._requests is not None and self._process is not None:
            self._requests.close()
            self._process.wait()


@contextmanager
def _adopting() -> Iterator[None]:
    """Descendants of this process that lose their parent become children of it."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0)


def _serve(requests: socket.socket) -> None:
    """Fork an engine for each request, until there are no more."""
    while True:
        front, files, _, _ = socket.recv_fds(requests, _MAX_BYTES, 3)
        if not front:
            return
        told, tell = os.pipe()
        parent = os.fork()
        if parent == 0:
            engine = os.fork()
            if engine == 0:
                _run_engine(int(front), *files)
            os.write(tell, str(engine).encode())
            os._exit(0)
        os.waitpid(parent, 0)  # from now on the engine is the front's child
        requests.send(os.read(told, _MAX_BYTES))
        for number in (told, tell, *files):
            os.close(number)


def _run_engine(front: int, channel: int, output: int, errors: int) -> None:
    """What `python -m service.engine.worker` does; never returns."""
    from service.engine.worker.__main__ import main

    status = 1
    try:
        os.setsid()
        os.dup2(output, 1)
        os.dup2(errors, 2)
        while os.getppid() != front:
            time.sleep(0.001)
        sys.argv[1:] = ["--fd", str(channel), "--front", str(front)]
        status = main()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    import service.engine.worker.process  # noqa: F401  # loads torch

    assert signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        _serve(channel)
