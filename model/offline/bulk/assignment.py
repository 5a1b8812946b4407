"""Assignment of blocks to workers, pure.

Owns the order: a worker goes on with the block behind its last one, so that it reads a file in one
go; then it begins where no other reads; then it takes whatever is first. A block belongs to one
worker until that has finished it or is lost; what a lost one had goes to the others first.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable

from model.offline.bulk.blocks import Block

_Group = tuple[int, int]


class Assignment:
    """Blocks of a job that are missing.

    Args:
        blocks: They, in order.
    """

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._waiting: OrderedDict[_Group, OrderedDict[int, Block]] = OrderedDict()
        self._again: deque[Block] = deque()
        self._held: dict[int, dict[int, Block]] = {}
        self._last: dict[int, Block] = {}
        self._num_left = 0
        for block in blocks:
            self._num_left += 1
            self._waiting.setdefault(_group(block), OrderedDict())[block.number] = block

    @property
    def is_done(self) -> bool:
        """Whether every block is finished."""
        return not self._num_left

    def share(self, num_workers: int) -> int:
        """How many blocks each of so many workers has if they share what is not finished."""
        return -(-self._num_left // num_workers)

    def num_held(self, worker: int) -> int:
        """Blocks that a worker has."""
        return len(self._held.get(worker, {}))

    def next(self, worker: int) -> Block | None:
        """Give a worker a block, if one waits."""
        block = self._again.popleft() if self._again else self._chosen(worker)
        if block is not None:
            self._held.setdefault(worker, {})[block.number] = block
            self._last[worker] = block
        return block

    def finished(self, worker: int, number: int) -> None:
        """A worker has finished one of its blocks."""
        del self._held[worker][number]
        self._num_left -= 1

    def lost(self, worker: int) -> list[Block]:
        """A worker is lost; its blocks, which wait again."""
        self._last.pop(worker, None)
        blocks = list(self._held.pop(worker, {}).values())
        self._again.extend(blocks)
        return blocks

    def _chosen(self, worker: int) -> Block | None:
        if not self._waiting:
            return None
        last = self._last.get(worker)
        if last is not None:
            group = _group(last)
            if last.number + 1 in self._waiting.get(group, {}):
                return self._taken(group, last.number + 1)
        read = {_group(block) for other, block in self._last.items() if other != worker}
        group = next((one for one in self._waiting if one not in read), None) or next(
            iter(self._waiting)
        )
        return self._taken(group, next(iter(self._waiting[group])))

    def _taken(self, group: _Group, number: int) -> Block:
        blocks = self._waiting[group]
        block = blocks.pop(number)
        if not blocks:
            del self._waiting[group]
        return block


def _group(block: Block) -> _Group:
    return block.file, block.group
