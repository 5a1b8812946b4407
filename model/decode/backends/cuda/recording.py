"""How a step that has been written once is run many times.

Owns the protocol, CUDA graphs, and running it anew each time. What is recorded reads and writes
tensors that stay where they are, and takes nothing from the host.
"""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

Step = Callable[[], Tensor]


class Recorder(Protocol):
    """Turns a step into one that is cheap to repeat."""

    def record(self, step: Step) -> Step:
        """What does the same as `step` and returns the same tensor each time.

        `step` has run before, and is not run by recording.
        """
        ...


class Rerun:
    """Runs the step itself, each time: devices without graphs."""

    def record(self, step: Step) -> Step:
        """Return `step`."""
        return step


class CudaGraphs:
    """Captures the step's kernels in a CUDA graph; a replay costs the host one call.

    All graphs share one pool of memory: they never run at the same time, and what a step returns is
    read before the next one starts.
    """

    def __init__(self) -> None:
        """Make the pool."""
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, step: Step) -> Step:
        """Capture `step`."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            output = step()

        def replay() -> Tensor:
            graph.replay()
            return output

        return replay
