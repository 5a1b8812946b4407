import asyncio
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from service.errors import RequestError, conflict, reload_failed
from service.models.checkpoints.watch import FolderWatch, keep_watching


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    return tmp_path


def _add(folder: Path) -> None:
    (folder / "c").mkdir()
    (folder / "c" / "config.json").touch()


def _touch(folder: Path) -> None:
    os.utime(folder / "a" / "config.json", ns=(1, 1))


def _swap(folder: Path) -> None:
    (folder / "new").write_text("{}")
    (folder / "new").replace(folder / "b" / "config.json")


CHANGES: dict[str, Callable[[Path], object]] = {
    "added": _add,
    "taken away": lambda folder: shutil.rmtree(folder / "b"),
    "touched": _touch,
    "replaced by a file of the same size": _swap,
    "one more file": lambda folder: (folder / "a" / "card.md").touch(),
    "all gone": shutil.rmtree,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_due_once_it_is_at_rest(folder: Path, change: Callable[[Path], object]) -> None:
    watch = FolderWatch(folder)
    assert [watch.is_due() for _ in range(3)] == [False] * 3
    change(folder)
    assert [watch.is_due() for _ in range(3)] == [False, True, True]
    watch.take()
    assert [watch.is_due() for _ in range(3)] == [False] * 3


def test_what_is_hidden_or_no_checkpoint_is_not_looked_at(folder: Path) -> None:
    watch = FolderWatch(folder)
    (folder / ".c.partial").mkdir()
    (folder / "README.md").touch()
    assert [watch.is_due() for _ in range(3)] == [False] * 3


def test_a_change_that_goes_on_is_not_due(folder: Path) -> None:
    watch = FolderWatch(folder)
    for size in range(5):
        (folder / "a" / "config.json").write_text(" " * size)
        assert not watch.is_due()


def test_what_could_not_be_loaded_now_is_due_again(folder: Path) -> None:
    watch = FolderWatch(folder)
    watch.put_off()
    assert watch.is_due()


class _Reloads:
    """Counts reloads, and answers each as it is told."""

    def __init__(self, watch: FolderWatch, *errors: Exception | None) -> None:
        self._watch = watch
        self._errors = iter(errors)
        self.num = 0
        self.are_over = asyncio.Event()

    async def reload(self) -> None:
        self.num += 1
        self._watch.take()
        error = next(self._errors, None)
        if error is not None:
            raise error
        self.are_over.set()


@pytest.mark.parametrize(
    ("error", "num"),
    [
        (conflict("one runs", code="reload_running"), 2),
        (RuntimeError("unforeseen"), 1),
        (reload_failed("all are damaged"), 1),
    ],
)
def test_a_reload_that_was_put_off_is_tried_again_and_one_that_failed_waits_for_a_change(
    folder: Path, error: Exception, num: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        watch = FolderWatch(folder)
        reloads = _Reloads(watch, error)
        watch.put_off()
        task = asyncio.create_task(keep_watching(watch, reloads.reload, seconds=0.0))
        while reloads.num < num:  # noqa: ASYNC110  # each look is on a thread
            await asyncio.sleep(0)
        if num == 1:
            for _ in range(200):
                await asyncio.sleep(0.001)
            assert reloads.num == 1
            _touch(folder)
        await reloads.are_over.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    is_unforeseen = not isinstance(error, RequestError)
    records = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert bool(records) == is_unforeseen
