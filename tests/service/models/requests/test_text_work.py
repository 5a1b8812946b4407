import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from service.models.requests.text_work import TextWork


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="text") as executor:
        yield executor


def _threads(
    thread: ThreadPoolExecutor, sizes: Sequence[int], *, is_quick: bool = True
) -> tuple[list[int], set[str]]:
    """The items as they came out, and the threads that they were worked on."""
    names = set()

    def work(item: int) -> int:
        names.add(threading.current_thread().name)
        return item

    async def scenario() -> list[int]:
        texts = TextWork(thread, asyncio.Semaphore(1))
        items = range(len(sizes))
        done = texts.map(work, items, sizes, "interactive", is_quick=is_quick)
        return [item async for item in done]

    return asyncio.run(scenario()), names


def test_short_texts_of_quick_work_are_done_where_they_are_asked_for(
    thread: ThreadPoolExecutor,
) -> None:
    assert _threads(thread, [100, 40]) == ([0, 1], {"MainThread"})


@pytest.mark.parametrize("sizes", [[300], [100, 200], [0] * 50, [5_000, 5_000]])
def test_what_is_longer_or_many_is_done_on_the_thread_in_order(
    thread: ThreadPoolExecutor, sizes: list[int]
) -> None:
    assert _threads(thread, sizes) == ([*range(len(sizes))], {"text_0"})


def test_empty_texts_fill_a_piece_too(thread: ThreadPoolExecutor) -> None:
    num_pieces = 0

    class Counted(ThreadPoolExecutor):
        def submit(self, *arguments: Any, **named: Any) -> Any:
            nonlocal num_pieces
            num_pieces += 1
            return thread.submit(*arguments, **named)

    with Counted() as counted:
        assert len(_threads(counted, [0] * 1_000)[0]) == 1_000
    assert num_pieces == 4


def test_work_that_may_take_longer_than_its_texts_is_done_on_the_thread(
    thread: ThreadPoolExecutor,
) -> None:
    assert _threads(thread, [10], is_quick=False) == ([0], {"text_0"})
