import logging
import socket
from collections.abc import Iterator

import pytest

from service.engine.messages import Configure
from service.engine.worker.channel import EngineChannel
from support.engine_by_hand import Front, Pair, warm_pair


@pytest.fixture
def ends() -> Iterator[tuple[Front, EngineChannel]]:
    root = logging.getLogger()
    level = root.level  # an engine sets it for its whole process
    ours, theirs = socket.socketpair()
    with ours, EngineChannel(theirs) as channel:
        yield Front(ours), channel
    root.setLevel(level)


@pytest.fixture
def pair(ends: tuple[Front, EngineChannel], configure: Configure) -> Pair:
    """With counters at every turn."""
    return warm_pair(ends, configure)
