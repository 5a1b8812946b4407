import argparse
from collections.abc import Iterator

import pytest
import torch

from service.cli import offline


@pytest.fixture
def threads() -> Iterator[None]:
    """Torch has three threads, and afterwards what it had."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    ("asked", "usable", "given"), [(None, 2, 2), (None, 8, 3), (None, 1, 1), (5, 2, 5)]
)
def test_without_a_flag_there_are_no_more_threads_than_processors_may_be_used(
    monkeypatch: pytest.MonkeyPatch, asked: int | None, usable: int, given: int
) -> None:
    monkeypatch.setattr(offline, "usable_cores", lambda: usable)
    offline.set_threads(argparse.Namespace(threads=asked))
    assert torch.get_num_threads() == given
