"""How many steps are kept, and in which order a capture talks to CUDA."""

from contextlib import contextmanager

import pytest
import torch

from model.decode.backends.cuda.recording import CudaGraphs, Recordings, Rerun, Step


class Counting:
    """Records nothing; counts what it was asked to record."""

    def __init__(self) -> None:
        self.recorded: list[Step] = []

    def record(self, step: Step) -> Step:
        self.recorded.append(step)
        return step


def writing(value: float) -> Step:
    return lambda: torch.tensor(value)


def test_a_step_is_recorded_when_it_is_asked_for_again_and_only_then():
    recorder = Counting()
    kept = Recordings(recorder)
    step = writing(1.0)
    found = [kept.step("a", lambda: step) for _ in range(4)]
    assert found == [step] * 4
    assert recorder.recorded == [step]


def test_of_too_many_the_one_that_was_not_asked_for_longest_goes():
    recorder = Counting()
    kept = Recordings(recorder, max_steps=2)
    for key in ("a", "b", "a", "c"):  # "b" goes
        kept.step(key, lambda: writing(0.0))
    assert len(kept) == 2
    kept.step("a", pytest.fail)
    kept.step("c", pytest.fail)
    written = []
    kept.step("b", lambda: written.append("b") or writing(0.0))
    assert written == ["b"]


def test_what_is_forgotten_is_written_anew():
    kept = Recordings(Rerun())
    kept.step("a", lambda: writing(1.0))
    kept.clear()
    assert kept.step("a", lambda: writing(2.0))() == 2.0


class FakeGraph:
    def __init__(self, said: list[str]) -> None:
        self._said = said

    def capture_begin(self, pool: object, capture_error_mode: str) -> None:
        self._said.append(f"begin {pool} {capture_error_mode}")

    def capture_end(self) -> None:
        self._said.append("end")

    def replay(self) -> None:
        self._said.append("replay")


class FakeStream:
    device = "cpu"

    def __init__(self, name: str, said: list[str]) -> None:
        self._name, self._said = name, said

    def wait_stream(self, other: "FakeStream") -> None:
        self._said.append(f"{self._name} waits for {other._name}")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of a CUDA that is not there."""
    said: list[str] = []

    @contextmanager
    def stream(_: object):
        said.append("own stream")
        try:
            yield
        finally:
            said.append("main stream")

    main = FakeStream("main", said)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: "pool")
    monkeypatch.setattr(torch.cuda, "Stream", lambda: FakeStream("own", said))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: main)
    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: FakeGraph(said))
    for name in ("synchronize", "empty_cache"):
        monkeypatch.setattr(torch.cuda, name, lambda name=name: said.append(name))
    return said


def test_a_capture_has_a_stream_of_its_own_and_waits_for_nothing(said):
    def step() -> torch.Tensor:
        said.append("step")
        return torch.ones(1)

    recorder = CudaGraphs()
    recorder.record(step)
    said.clear()
    replay = recorder.record(step)
    assert said == [
        "own waits for main",
        "own stream",
        "begin pool thread_local",
        "step",
        "end",
        "main stream",
        "main waits for own",
    ]
    assert replay() is replay()
    assert said[-2:] == ["replay"] * 2


def test_the_pool_has_a_graph_of_its_own_before_the_first_step(said):
    recorder = CudaGraphs()
    for _ in range(2):
        recorder.record(lambda: said.append("step") or torch.ones(1))
    captures = [word for word in said if word.startswith(("begin", "step", "end"))]
    begin = "begin pool thread_local"
    assert captures == [begin, "end", begin, "step", "end", begin, "step", "end"]


def test_a_capture_ends_where_its_step_fails(said):
    def step() -> torch.Tensor:
        raise MemoryError

    with pytest.raises(MemoryError):
        CudaGraphs().record(step)
    assert said[-2:] == ["end", "main stream"]


def test_a_capture_that_finds_no_memory_is_made_again_when_the_caches_are_empty(said, monkeypatch):
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: said.append("emptied"))
    tries = []

    def step() -> torch.Tensor:
        tries.append(len(tries))
        if len(tries) == 1:
            raise torch.OutOfMemoryError("in a capture")
        return torch.tensor(2.0)

    assert CudaGraphs().record(step)() == 2.0
    assert tries == [0, 1]
    words = [one.split()[0] for one in said if one.split()[0] in ("begin", "end", "emptied")]
    assert words == ["begin", "end", "begin", "end", "emptied", "begin", "end"]  # the keeper first
