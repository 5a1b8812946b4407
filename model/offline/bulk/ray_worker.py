"""A worker of a bulk job in a Ray cluster: an actor that holds the network.

Owns the actor: one thread that owns the session, and calls of Ray's threads that hand it a block
each and wait. So several blocks are on their way at once, and the driver has an answer for each.
What was foreseen comes back as a value: an error's class would have to be rebuilt elsewhere.
"""

import os
import queue
import socket
import threading
from concurrent.futures import Future
from dataclasses import dataclass

from model.errors import DragomanError
from model.offline.bulk.blocks import Block, Receipt
from model.offline.bulk.output import OutputFolder
from model.offline.bulk.task import Task, open_network
from model.offline.bulk.work import BlockWork


@dataclass(frozen=True, slots=True)
class Started:
    """A worker that is ready.

    Attributes:
        host: Its machine.
        pid: Its process.
    """

    host: str
    pid: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Foreseen error that ends the job.

    Attributes:
        message: In words.
    """

    message: str


_Waiting = Future[Receipt | Failed]


class BulkWorker:
    """An actor; `start` is called once, `do` by as many threads at once as blocks may be open.

    `pulse` is answered by one thread more, beside those.
    """

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[tuple[Block, _Waiting]] = queue.SimpleQueue()
        self._num_steps = 0

    def start(self, task: Task) -> Started | Failed:
        """Open the network, on the thread that has it from then on."""
        started: Future[Started | Failed] = Future()
        threading.Thread(target=self._run, args=(task, started), daemon=True).start()
        return started.result()

    def do(self, block: Block) -> Receipt | Failed:
        """Do a block; its receipt once it is written."""
        waiting: _Waiting = Future()
        self._inbox.put((block, waiting))
        return waiting.result()

    def pulse(self) -> int:
        """Steps done and blocks read so far; whoever has work and no more of them hangs."""
        return self._num_steps

    def _run(self, task: Task, started: "Future[Started | Failed]") -> None:
        host = socket.gethostname()
        try:
            folder = OutputFolder(task.output, writer=f"{host}-{os.getpid()}")
            work = BlockWork(open_network(task.method), task, folder)
        except DragomanError as error:
            started.set_result(Failed(f"{error} (on {host})"))
            return
        except BaseException as error:  # whoever waits would wait for ever
            started.set_exception(error)
            raise
        started.set_result(Started(host, os.getpid()))
        waiting: dict[int, _Waiting] = {}
        try:
            while True:
                self._take(work, waiting)
                self._num_steps += 1
                for receipt in work.step():
                    waiting.pop(receipt.block).set_result(receipt)
        except DragomanError as error:
            for one in waiting.values():
                one.set_result(Failed(f"{error} (on {host})"))
        except BaseException as error:  # same
            for one in waiting.values():
                one.set_exception(error)
            raise

    def _take(self, work: BlockWork, waiting: dict[int, _Waiting]) -> None:
        """Begin blocks that were handed over; wait for one where there is nothing to do."""
        while work.has_room:
            try:
                block, one = self._inbox.get(block=work.is_idle)
            except queue.Empty:
                return
            waiting[block.number] = one
            work.begin(block)
            self._num_steps += 1
