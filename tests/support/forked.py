"""Functions run in processes of their own, quickly: they are forked from one that has torch.

What such a process sends through its pipe is kept up to the moment it dies, whatever it dies of.
"""

import multiprocessing
import os
import socket
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import torch

from model.train.loop.distributed import Group, joined_group

Send = Callable[[object], None]
_PRELOADED = [
    "model.train.run",
    "model.train.records.curves",
    "model.train.records.events",
    "support.training",
    "torch._dynamo",  # by every optimiser
]
"""What the processes would take seconds to import, each for itself."""


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


class Forked:
    """One such process, running `function(send, *arguments)` on one CPU thread."""

    def __init__(self, function: Callable[..., None], *arguments: object) -> None:
        context = _context()
        self.received, sending = context.Pipe(duplex=False)
        self.process: ForkServerProcess = context.Process(
            target=_run, args=(sending, function, arguments), daemon=True
        )
        self.process.start()
        sending.close()

    def next(self) -> Any:
        """The next thing it sends.

        Raises:
            EOFError: It has ended.
        """
        return self.received.recv()

    def rest(self) -> list[Any]:
        """All that it sends until it ends."""
        return all_of([self])[0]


def all_of(processes: list[Forked]) -> list[list[Any]]:
    """What each of them sends until they have ended, read as it comes: none waits for another."""
    found: dict[Connection, list[Any]] = {process.received: [] for process in processes}
    open_ends = list(found)
    while open_ends:
        for end in wait(open_ends):
            assert isinstance(end, Connection)
            try:
                found[end].append(end.recv())
            except EOFError:
                open_ends.remove(end)
    for process in processes:
        process.process.join(60)
    return list(found.values())


def _run(sending: Connection, function: Callable[..., None], arguments: tuple[object, ...]) -> None:
    torch.set_num_threads(1)
    function(sending.send, *arguments)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


def run_workers(
    function: Callable[[Send, Group], None], *, size: int
) -> tuple[list[list[Any]], list[int | None]]:
    """What each of `size` gloo workers sent, by rank, and their exit codes."""
    port = free_port()
    workers = [Forked(_work, function, rank, size, port) for rank in range(size)]
    return all_of(workers), [worker.process.exitcode for worker in workers]


def _work(
    send: Send, function: Callable[[Send, Group], None], rank: int, size: int, port: int
) -> None:
    variables = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": size,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    os.environ.update({name: str(value) for name, value in variables.items()})
    with joined_group(os.environ, torch.device("cpu")) as group:
        function(send, group)
        group.leave()
    send(native_threads())


def native_threads() -> set[str]:
    """Names of this process's threads, those of libraries too."""
    return {
        (thread / "comm").read_text(encoding="utf-8").strip()
        for thread in Path("/proc/self/task").iterdir()
    }
