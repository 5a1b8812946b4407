"""Recorders of steps: a step that is written once and run many times, as a CUDA graph on a device.

Owns the protocol, CUDA graphs, running it anew each time, and how many are kept. What is recorded
reads and writes tensors that stay where they are, and takes nothing from the host.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

Step = Callable[[], Tensor]

MAX_RECORDINGS = 128
"""Of one grid: a graph of some hundred kernels takes a few MB of device and host."""


class Recorder(Protocol):
    """Protocol of recorders, which turn a step into one that is cheap to repeat."""

    def record(self, step: Step) -> Step:
        """What does the same as `step` and returns the same tensor each time.

        `step` has run before, and is not run by recording.
        """
        ...


class Rerun:
    """Recorder for devices without CUDA graphs: the step itself runs each time."""

    def record(self, step: Step) -> Step:
        """Return `step`."""
        return step


class CudaGraphs:
    """Captures the step's kernels in a CUDA graph; a replay costs the host one call.

    All graphs share one pool of memory: they never run at the same time, and what a step returns is
    read before the next one starts. A pool that has lost its last graph takes no other, so one that
    does nothing of use is kept as long as the pool.

    A capture neither waits for the device nor empties the allocator's caches, which
    `torch.cuda.graph` does: it has a stream of its own, and what other threads ask of CUDA
    meanwhile is none of its business. It runs nothing, so one that finds no memory is made again
    when the caches are empty.
    """

    def __init__(self) -> None:
        """Make the pool and the stream."""
        self._pool = torch.cuda.graph_pool_handle()
        self._keeper: torch.cuda.CUDAGraph | None = None
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's own

    def record(self, step: Step) -> Step:
        """Capture `step`."""
        if self._keeper is None:
            device = self._stream.device
            self._keeper, _ = self._capture(lambda: torch.zeros(1, device=device))
        try:
            graph, output = self._capture(step)
        except torch.OutOfMemoryError:  # within a capture nothing is given back of what is cached
            torch.cuda.empty_cache()
            graph, output = self._capture(step)

        def replay() -> Tensor:
            graph.replay()
            return output

        return replay

    def _capture(self, step: Step) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        graph = torch.cuda.CUDAGraph()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                output = step()
            finally:
                graph.capture_end()
        torch.cuda.current_stream().wait_stream(self._stream)
        return graph, output


class Recordings:
    """Recorded steps by their buckets, at most so many; the least recently used one goes.

    A step is recorded when it is asked for again: its first run is as written, and warms it up.
    """

    def __init__(self, recorder: Recorder, *, max_steps: int = MAX_RECORDINGS) -> None:
        self._recorder = recorder
        self._max_steps = max_steps
        self._steps: dict[Hashable, _Kept] = {}

    def __len__(self) -> int:
        return len(self._steps)

    def step(self, key: Hashable, write: Callable[[], Step]) -> Step:
        """The step for `key`, recorded if it was asked for before; `write` makes a new one."""
        kept = self._steps.pop(key, None)
        if kept is None:
            kept = _Kept(step=write())
        elif not kept.is_recorded:
            kept = _Kept(step=self._recorder.record(kept.step), is_recorded=True)
        self._steps[key] = kept  # behind all others
        if len(self._steps) > self._max_steps:
            del self._steps[next(iter(self._steps))]
        return kept.step

    def clear(self) -> None:
        """Forget all of them: what they read has moved."""
        self._steps.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    step: Step
    is_recorded: bool = False
