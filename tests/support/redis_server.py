"""A real Redis in a process of its own, on a free loopback port."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.running_server import ROOT, free_port

# Of the PATH, or where `.ci/redis` puts it.
BINARY = shutil.which("redis-server") or shutil.which(
    "redis-server", path=str(ROOT / "build/redis")
)


class RedisServer:
    """Can be stopped and started again; nothing is kept on disk.

    Args:
        folder: For its working directory and its log.
        more: Further arguments, which go before.
    """

    def __init__(self, folder: Path, more: Sequence[str] = ()) -> None:
        self.port = free_port()
        self._folder = folder
        self._more = more
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        assert BINARY is not None
        arguments = [*self._more, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        arguments += ["--logfile", str(self._folder / "redis.log"), "--dir", str(self._folder)]
        self._process = subprocess.Popen([BINARY, *arguments])
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                assert self._process.poll() is None, "it has left"
                time.sleep(0.01)
            else:
                return

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def running_redis(folder: Path, more: Sequence[str] = ()) -> Iterator[RedisServer]:
    """A Redis that accepts connections."""
    server = RedisServer(folder, more)
    server.start()
    try:
        yield server
    finally:
        server.stop()
