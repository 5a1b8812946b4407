"""Tables within a memory that is too small: whoever has no room waits, and nobody is lost."""

import random
from functools import partial

import pytest
from msgspec import structs

from model.config import SearchConfig
from model.decode.backends.cuda import backend as backend_module
from model.decode.backends.cuda import tables as tables_module
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.grid import Grid
from model.decode.backends.cuda.growth import Sizes
from model.decode.backends.cuda.recording import Rerun
from model.decode.session import DecodeRequest, DecodingSession
from model.errors import CapacityError
from model.nn.transformer import Transformer
from service.engine.messages import Failed, Finished, SubmitSegment
from service.engine.worker.runner import Runner
from service.engine.worker.totals import Totals
from support.device_memory import LIMITS, PLENTY, Memory, need_of, requests
from support.search_cases import (
    assert_equals_reference,
    run_in_a_crowd,
    small_transformer,
    with_sampling,
)


@pytest.fixture
def small_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that begin with one slot and sixteen positions."""
    monkeypatch.setattr(tables_module, "_FEWEST", {"slots": 1, "columns": 16, "sources": 16})


@pytest.fixture(scope="module")
def transformer() -> Transformer:
    return small_transformer(eos_bias=-1.0, num_encoder_layers=1, num_decoder_layers=1)


@pytest.fixture(scope="module")
def brief_transformer() -> Transformer:
    """Its translations end long before their caps."""
    return small_transformer(eos_bias=12.0, num_encoder_layers=1, num_decoder_layers=1)


def capped(asked: list[DecodeRequest], max_length: int) -> list[DecodeRequest]:
    search = SearchConfig(beam_size=4, max_length=max_length, stopping="first")
    return [structs.replace(request, search=search) for request in asked]


def run_out(
    transformer: Transformer, session: DecodingSession, running: dict[int, DecodeRequest]
) -> None:
    """Step until all have ended, each as the reference has it."""
    while not session.is_idle:
        for finished in session.step():
            request = running.pop(finished.slot_id)
            assert_equals_reference(transformer, request, finished.hypotheses)
        session.check_integrity()
    assert not running


def admitted(session: DecodingSession, asked: list[DecodeRequest]) -> dict[int, DecodeRequest]:
    return dict(zip(session.admit(asked), asked, strict=True))


def segments(asked: list[DecodeRequest]) -> list[SubmitSegment]:
    return [SubmitSegment(segment_id=n, request=request) for n, request in enumerate(asked)]


def answers_of(runner: Runner) -> dict[int, Finished | Failed]:
    answers: dict[int, Finished | Failed] = {}
    while not runner.is_idle:
        for answer in runner.step():
            assert answer.segment_id not in answers
            answers[answer.segment_id] = answer
        runner.check_integrity()
    return answers


@pytest.mark.usefixtures("small_start")
def test_a_sentence_past_its_cap_asks_for_no_column_that_was_not_promised() -> None:
    """Reading is a step late: one that is over is launched once more beside another."""
    endless = small_transformer(eos_bias=-20.0, num_encoder_layers=1, num_decoder_layers=1)
    memory = Memory(endless, PLENTY)
    session = memory.session()
    asked = [
        structs.replace(one, source_ids=one.source_ids[-12:], prefix_ids=(0,))
        for one in capped(requests(2), 15)
    ]  # 1 + 15 columns
    running = admitted(session, asked[:1])
    session.step()
    running |= admitted(session, asked[1:])
    run_out(endless, session, running)
    (tables,) = memory.tables
    assert tables.num_columns == 16


@pytest.mark.usefixtures("small_start")
@pytest.mark.parametrize("num_slots", [1, 2, 3, 5])
def test_in_a_memory_for_few_sentences_all_others_wait_and_get_the_same(
    transformer: Transformer, num_slots: int
) -> None:
    sizes = Sizes(num_slots=num_slots, num_columns=32, source_length=32)
    memory = Memory(transformer, need_of(transformer, sizes))
    session = memory.session()
    asked = requests(12)
    running = dict(zip(session.admit(asked), asked, strict=True))
    assert session.free_slots == session.free_rows == 0
    assert session._backend.num_waiting() >= len(asked) - num_slots - 1
    waited = []
    while not session.is_idle:
        for finished in session.step():
            request = running.pop(finished.slot_id)
            assert_equals_reference(transformer, request, finished.hypotheses)
        waited.append(session._backend.num_waiting())
        session.check_integrity()
        assert memory.used <= memory.num_bytes
    assert not running
    assert waited == sorted(waited, reverse=True)
    assert session.free_slots == LIMITS.max_slots
    assert session.free_rows == LIMITS.max_rows


@pytest.mark.usefixtures("small_start")
def test_a_crowd_of_all_widths_in_little_memory_is_never_changed(transformer: Transformer) -> None:
    sizes = Sizes(num_slots=3, num_columns=32, source_length=32)
    memory = Memory(transformer, need_of(transformer, sizes))
    opener = partial(GridBackend, recorder=Rerun(), free_bytes=memory.free_bytes)

    def opened(*arguments: object, **named: object) -> GridBackend:
        backend = opener(*arguments, **named)  # type: ignore[arg-type]  # passed on as they are
        memory._session = type("Held", (), {"_backend": backend})()  # type: ignore[assignment]
        return backend

    for request, hypotheses in run_in_a_crowd(
        transformer, random.Random(43), 30, opener=opened, vary=with_sampling
    ):
        assert_equals_reference(transformer, request, hypotheses)


@pytest.mark.usefixtures("small_start")
def test_memory_is_asked_for_only_where_tables_grow(transformer: Transformer) -> None:
    memory = Memory(transformer, PLENTY)
    session = memory.session()
    asked = []
    for _ in range(3):
        session.admit(requests(6))
        while not session.is_idle:
            session.step()
        asked.append(memory.num_asked)
    assert asked[0] > 0
    assert asked == [asked[0]] * 3


@pytest.mark.usefixtures("small_start")
def test_sentences_that_end_before_their_caps_do_not_ask_for_memory_each_time(
    brief_transformer: Transformer,
) -> None:
    memory = Memory(brief_transformer, PLENTY)
    session = memory.session()
    asked = []
    for seed in range(8):
        batch = capped(requests(4, seed=seed), 40 - seed)
        run_out(brief_transformer, session, admitted(session, batch))
        asked.append(memory.num_asked)
    (tables,) = memory.tables
    assert tables.num_columns == 16  # and 48 were promised
    assert asked == [asked[0]] * 8


@pytest.mark.usefixtures("small_start")
def test_a_batch_is_one_question_however_many_of_it_fit(transformer: Transformer) -> None:
    memory = Memory(transformer, PLENTY)
    session = memory.session()
    session.admit(requests(1))
    before = memory.num_asked
    memory.num_bytes = memory.used
    session.admit(requests(9))
    assert session._backend.num_waiting() == 9
    assert memory.num_asked == before + 1


@pytest.mark.usefixtures("small_start")
def test_an_idle_grid_goes_before_one_of_another_width_is_made(
    transformer: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Memory(transformer, PLENTY)
    session = memory.session()
    run_out(transformer, session, admitted(session, requests(6)))
    memory.num_bytes = memory.used
    others = []

    def made(*arguments: object, **named: object) -> Grid:
        others.append(len(list(memory.tables)))
        return Grid(*arguments, **named)  # type: ignore[arg-type]  # passed on as they are

    monkeypatch.setattr(backend_module, "Grid", made)
    run_out(transformer, session, admitted(session, requests(2, beam_size=2)))
    assert others == [0]


@pytest.mark.usefixtures("small_start")
def test_a_sentence_of_another_width_waits_where_its_first_tables_have_no_room(
    transformer: Transformer,
) -> None:
    memory = Memory(transformer, PLENTY)
    session = memory.session()
    running = admitted(session, requests(6))
    memory.num_bytes = memory.used
    memory.num_bytes += next(memory.tables).bytes_to_have(
        Sizes(num_slots=8, num_columns=32, source_length=32)
    )  # promised to those that run
    running |= admitted(session, requests(2, beam_size=2))
    assert [tables.width for tables in memory.tables] == [4]
    assert session._backend.num_waiting() == 2
    run_out(transformer, session, running)


def test_what_fits_first_tables_is_served_while_somebody_else_has_the_memory(
    brief_transformer: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables_module, "_FEWEST", {"slots": 1, "columns": 16, "sources": 32})
    memory = Memory(brief_transformer, 0)
    session = memory.session()
    running = admitted(session, capped(requests(4), 40))
    assert session._backend.num_waiting() == 3
    run_out(brief_transformer, session, running)
    (tables,) = memory.tables
    assert (tables.num_slots, tables.num_columns) == (1, 16)


@pytest.mark.usefixtures("small_start")
def test_memory_that_somebody_else_gives_back_is_found_while_sentences_run(
    transformer: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend_module, "_ENDED_BEFORE_ASKING", 1)
    sizes = Sizes(num_slots=2, num_columns=32, source_length=32)
    memory = Memory(transformer, need_of(transformer, sizes))
    session = memory.session()
    first, *others = requests(14)
    running = admitted(session, [*capped([first], 3), *others])
    memory.num_bytes = PLENTY
    num_running = [len(memory.backend._widths)]
    while num_running[-1] <= 3:
        assert running
        for one in session.step():
            assert_equals_reference(transformer, running.pop(one.slot_id), one.hypotheses)
        num_running.append(len(memory.backend._widths))
    assert min(num_running) > 0  # the grid has not been idle
    run_out(transformer, session, running)


@pytest.mark.usefixtures("small_start")
def test_those_behind_a_sentence_that_is_dropped_join_while_others_run(
    transformer: Transformer,
) -> None:
    sizes = Sizes(num_slots=2, num_columns=32, source_length=32)
    session = Memory(transformer, need_of(transformer, sizes)).session()
    first, long, last = requests(3)
    [long] = capped([long], 60)
    running = admitted(session, [first, long, last])
    session.step()
    assert session._backend.num_waiting() == 2
    (dropped,) = (slot_id for slot_id, request in running.items() if request is long)
    session.release(dropped)
    del running[dropped]
    assert session.step() == []
    assert session._backend.num_waiting() == 0
    run_out(transformer, session, running)


@pytest.mark.usefixtures("small_start")
def test_an_idle_grid_of_another_width_makes_room(transformer: Transformer) -> None:
    sizes = Sizes(num_slots=8, num_columns=32, source_length=32)
    memory = Memory(transformer, need_of(transformer, sizes))
    session = memory.session()
    widths = []
    for beam_size in (4, 4, 2, 4):
        asked = requests(6, beam_size=beam_size)
        running = dict(zip(session.admit(asked), asked, strict=True))
        widths.append(sorted(tables.width for tables in memory.tables))
        while not session.is_idle:
            for finished in session.step():
                request = running.pop(finished.slot_id)
                assert_equals_reference(transformer, request, finished.hypotheses)
    assert widths[:2] == [[4], [4]]
    assert len(widths[-1]) == 1  # the other one went


@pytest.mark.usefixtures("small_start")
def test_a_sentence_that_could_never_fit_fails_alone_and_says_what_it_needs(
    transformer: Transformer,
) -> None:
    sizes = Sizes(num_slots=1, num_columns=32, source_length=32)
    memory = Memory(transformer, need_of(transformer, sizes))
    long = structs.replace(
        requests(1)[0], search=SearchConfig(beam_size=4, max_length=60), source_ids=(*[5] * 40, 1)
    )
    with pytest.raises(CapacityError, match="no memory for one sentence"):
        memory.session().admit([long])
    asked = [*requests(5), long, *requests(3, seed=6)]
    runner = Runner(memory.session, totals=Totals(), clock=lambda: 0.0)
    runner.accept(segments(asked))
    found = dict(enumerate([None] * len(asked)))
    failures = runner.admit(list(found))
    answers = answers_of(runner) | {failure.segment_id: failure for failure in failures}
    assert answers.keys() == found.keys()
    for number, answer in answers.items():
        if number == 5:
            assert isinstance(answer, Failed)
            assert "needs tables of 1 slots, 61 positions and 48 source" in answer.message
        else:
            assert isinstance(answer, Finished)
            assert_equals_reference(transformer, asked[number], answer.hypotheses)


@pytest.mark.usefixtures("small_start")
def test_memory_that_others_take_meanwhile_costs_a_new_start_and_no_sentence(
    transformer: Transformer,
) -> None:
    """Pasts grow into a second table of columns, which was free when the sentences joined."""
    memory = Memory(transformer, PLENTY)
    runner = Runner(memory.session, totals=Totals(), clock=lambda: 0.0)
    asked = [
        structs.replace(r, search=SearchConfig(beam_size=4, max_length=40)) for r in requests(8)
    ]
    runner.accept(segments(asked))
    assert runner.admit(list(range(len(asked)))) == []
    (tables,) = memory.tables
    assert (tables.num_slots, tables.num_columns) == (8, 16)
    memory.num_bytes = need_of(
        transformer, Sizes(num_slots=4, num_columns=48, source_length=32)
    )  # taken by somebody else
    answers = answers_of(runner)
    assert len(answers) == len(asked)
    for number, answer in answers.items():
        assert isinstance(answer, Finished)
        assert_equals_reference(transformer, asked[number], answer.hypotheses)
    assert runner.max_rows < LIMITS.max_rows  # as after any shortage


@pytest.mark.usefixtures("small_start")
@pytest.mark.parametrize("release", [0, -1])
def test_a_sentence_that_runs_or_waits_can_be_dropped(
    transformer: Transformer, release: int
) -> None:
    sizes = Sizes(num_slots=2, num_columns=32, source_length=32)
    session = Memory(transformer, need_of(transformer, sizes)).session()
    asked = requests(7)
    running = dict(zip(session.admit(asked), asked, strict=True))
    dropped = list(running)[release]
    session.release(dropped)
    del running[dropped]
    while not session.is_idle:
        for finished in session.step():
            request = running.pop(finished.slot_id)
            assert_equals_reference(transformer, request, finished.hypotheses)
    assert not running
