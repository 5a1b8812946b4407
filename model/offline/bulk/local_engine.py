"""The engine of one machine: the blocks of a job through a session of this process.

Owns its loop alone; a worker of a cluster has the same `BlockWork`.
"""

from collections.abc import Iterable, Iterator

from model.offline.bulk.blocks import Block, Receipt
from model.offline.bulk.output import OutputFolder
from model.offline.bulk.task import Task, open_network
from model.offline.bulk.work import BlockWork


def run_here(task: Task, blocks: Iterable[Block], folder: OutputFolder) -> Iterator[Receipt]:
    """Do blocks; each's receipt once it is written.

    Args:
        task: What all of them have in common.
        blocks: Those that are missing, in order.
        folder: Where they are written.

    Raises:
        DragomanError: The network cannot be opened, a file cannot be read or a block not written.
    """
    work = BlockWork(open_network(task.method), task, folder)
    waiting = iter(blocks)
    try:
        while True:
            while work.has_room and (block := next(waiting, None)) is not None:
                work.begin(block)
            if work.is_idle:
                return
            yield from work.step()
    finally:
        work.close()
