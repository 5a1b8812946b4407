"""Assignment of blocks to workers, pure.

Owns the order: a worker goes on with the block behind its last one, so that it reads a file in one
go; then it begins where no other reads; then it takes whatever is first. A block belongs to one
worker until that has finished it or is lost; what a lost one had goes to the others first. And how
many a worker has at once: as many as it takes, and fewer once few wait, so that all end together.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence

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
        self._num_waiting = 0
        for block in blocks:
            self._num_left += 1
            self._num_waiting += 1
            self._waiting.setdefault(_group(block), OrderedDict())[block.number] = block

    @property
    def is_done(self) -> bool:
        """Whether every block is finished."""
        return not self._num_left

    def hand_out(
        self, ready: Sequence[int], *, num_workers: int, max_held: int
    ) -> Iterator[tuple[int, Block]]:
        """Give blocks to workers that are ready, those with the fewest first.

        Args:
            ready: Their numbers.
            num_workers: With those that are still starting.
            max_held: Blocks that a worker may have.

        Yields:
            A worker and a block that it has from now on.
        """
        for num_held in range(max_held):
            for worker in ready:
                if self.num_held(worker) != num_held:
                    continue
                if num_held >= self._most(num_workers, max_held):
                    return
                block = self.next(worker)
                if block is None:
                    return
                yield worker, block

    def _most(self, num_workers: int, max_held: int) -> int:
        """How many blocks a worker may have now.

        One is worked on in any case. A further one only if there is one for each worker: the last
        ones go to whoever has finished first, and nobody sits on what another could do.
        """
        if num_workers == 1:
            return max_held
        return min(max_held, 1 + self._num_waiting // num_workers)

    def num_held(self, worker: int) -> int:
        """Blocks that a worker has."""
        return len(self._held.get(worker, {}))

    def next(self, worker: int) -> Block | None:
        """Give a worker a block, if one waits."""
        block = self._again.popleft() if self._again else self._chosen(worker)
        if block is not None:
            self._num_waiting -= 1
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
        self._num_waiting += len(blocks)
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
