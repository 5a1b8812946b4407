"""A whole grid whose steps are the programs, in float64 against the plain search."""

import random
from functools import partial

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed: pip install 'dragoman[kernels]'")

from model.config import SearchConfig
from model.decode.backends.cuda import grid as grid_module
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.kernels import decoder as decoder_module
from model.decode.backends.cuda.kernels.launching import InterpretedLauncher
from model.decode.backends.cuda.recording import Rerun, Step
from model.decode.session import (
    DecodeRequest,
    DecodingSession,
    FinishedSentence,
    SessionLimits,
)
from model.errors import KernelError
from support.search_cases import (
    FAMILIES,
    TOKENS,
    assert_equals_reference,
    small_transformer,
    with_suppressed,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:overflow encountered in exp:RuntimeWarning"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="kernels are compiled here"),
]


class NotedLauncher(InterpretedLauncher):
    """Interprets, and knows which programs it has run."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def launch(self, program, grid, arguments, constants, *, num_warps=4) -> None:  # type: ignore[no-untyped-def]
        self.names.add(program.fn.__name__)
        super().launch(program, grid, arguments, constants, num_warps=num_warps)


class NotedRecorder(Rerun):
    """Runs steps anew, and counts them."""

    num_recorded = 0

    def record(self, step: Step) -> Step:
        self.num_recorded += 1
        return step


class RefusingLauncher(NotedLauncher):
    """Cannot compile some programs, and says when it was asked."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = refused
        self.asked: list[str] = []

    def launch(self, program, grid, arguments, constants, *, num_warps=4) -> None:  # type: ignore[no-untyped-def]
        self.asked.append(program.fn.__name__)
        if self.asked[-1] in self.refused:
            raise KernelError(self.asked[-1])
        super().launch(program, grid, arguments, constants, num_warps=num_warps)


LIMITS = SessionLimits(max_rows=4, max_slots=2, max_source_length=16, max_target_length=12)


def request(source: tuple[int, ...], prefix: tuple[int, ...], max_length: int) -> DecodeRequest:
    search = SearchConfig(beam_size=2, num_hypotheses=2, max_length=max_length, with_alignment=True)
    return DecodeRequest(source_ids=(*source, TOKENS.eos_id), prefix_ids=prefix, search=search)


@pytest.mark.parametrize(
    ("family", "max_few_rows"),
    [("default", 64), ("t5", 64), ("default", 0), ("mbart", 0), ("student", 64)],
    ids=["few rows", "t5, few rows", "many rows", "pre-norm, many rows", "ssru"],
)
def test_hypotheses_are_those_of_the_plain_search(
    monkeypatch: pytest.MonkeyPatch, family: str, max_few_rows: int
) -> None:
    """One joins while another runs; while one has suppressed tokens the search is torch's."""
    monkeypatch.setattr(decoder_module, "MAX_FEW_ROWS", max_few_rows)
    shape = FAMILIES.get(family, {})
    transformer = small_transformer(num_encoder_layers=1, num_decoder_layers=1, **shape)
    launcher = NotedLauncher()
    session = DecodingSession(
        transformer,
        tokens=TOKENS,
        limits=LIMITS,
        opener=partial(GridBackend, recorder=Rerun(), launcher=launcher),
    )
    first, last = request((5, 6), (0,), 4), request((7, 8, 9), (0, 11), 3)
    rng = random.Random(1)
    while not last.suppressed_ids:
        last = with_suppressed(rng, last)
    running = {session.admit([first])[0]: first}
    for _ in range(2):
        session.step()
    running[session.admit([last])[0]] = last
    while not session.is_idle:
        for finished in session.step():
            one = running.pop(finished.slot_id)
            assert_equals_reference(transformer, one, finished.hypotheses)
            assert all(hypothesis.alignment for hypothesis in finished.hypotheses)
    assert not running
    layers = set() if family == "student" else {"embed", "tree_attention", "source_attention"}
    if family != "student":
        layers.add("product" if max_few_rows else "add_norm")
    assert launcher.names >= {"measure", "pick", "search"} | layers


@pytest.mark.parametrize("refused", ["search", "source_attention"])
def test_where_a_program_cannot_be_had_the_step_is_done_by_torch(refused: str) -> None:
    """After the programs before it have written what is theirs."""
    transformer = small_transformer(num_encoder_layers=1, num_decoder_layers=1)
    launcher = RefusingLauncher(refused)
    recorder = NotedRecorder()
    session = DecodingSession(
        transformer,
        tokens=TOKENS,
        limits=LIMITS,
        opener=partial(GridBackend, recorder=recorder, launcher=launcher),
    )
    one = request((5, 6), (0,), 4)
    for _ in range(2):
        session.admit([one])
        finished: list[FinishedSentence] = []
        while not session.is_idle:
            finished += session.step()
        assert_equals_reference(transformer, one, finished[0].hypotheses)
    assert launcher.asked.count(refused) == 1
    assert recorder.num_recorded == 1


def test_steps_by_programs_alone_are_recorded_for_any_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grid_module, "_MIN_COLUMNS", 1)
    monkeypatch.setattr(grid_module, "_MIN_SOURCE", 1)
    transformer = small_transformer(num_encoder_layers=1, num_decoder_layers=1)
    recorder = NotedRecorder()
    session = DecodingSession(
        transformer,
        tokens=TOKENS,
        limits=SessionLimits(max_rows=2, max_slots=1, max_source_length=16, max_target_length=16),
        opener=partial(GridBackend, recorder=recorder, launcher=NotedLauncher()),
    )
    search = SearchConfig(beam_size=2, max_length=2)
    for num_words in (1, 3):
        source = (*[5] * num_words, TOKENS.eos_id)
        one = DecodeRequest(source_ids=source, prefix_ids=(0,) * num_words, search=search)
        session.admit([one])
        while not session.is_idle:
            for finished in session.step():
                assert_equals_reference(transformer, one, finished.hypotheses)
    assert recorder.num_recorded == 1
