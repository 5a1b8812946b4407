import os
import signal
from collections.abc import Iterator
from pathlib import Path

# Small tensors, and as many test processes as cores: threads beside them only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Servers that are tested put nothing into the user's own cache.
os.environ["DRAGOMAN_PACKED_BYTES"] = "0"

# Kernels in Triton are interpreted where there is no device; Triton asks when it is imported.
os.environ.setdefault("TRITON_INTERPRET", "0" if Path("/dev/nvidiactl").exists() else "1")

import pytest

from support.running_server import RunningServer, running_server
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

# A run in the background inherits signals that are ignored, and its children would. What is handled
# here is as a terminal has it in programs that are started; a hangup still ends no run.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.fixture(scope="session")
def served_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with one direction, so that "auto" has one meaning."""
    return write_tiny_checkpoint(tmp_path_factory.mktemp("served") / "tiny", pairs=(EN_ZH,))


@pytest.fixture(scope="session")
def server(
    served_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """One server for every test that leaves it as it was."""
    log = tmp_path_factory.mktemp("server") / "log.jsonl"
    environment = {
        "DRAGOMAN_BODY_TIMEOUT_SECONDS": "1",
        "DRAGOMAN_SUGGESTIONS": str(log.with_name("suggestions.jsonl")),
    }
    with running_server(served_checkpoint, log, **environment) as server:
        yield server
