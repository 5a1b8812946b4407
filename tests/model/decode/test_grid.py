"""The grid on a CPU, recorded and not, against the plain search."""

import gc
import random
import weakref
from dataclasses import replace
from functools import partial

import pytest
import torch
from msgspec import structs

from model.config import SearchConfig
from model.decode.backends.cuda import grid as grid_module
from model.decode.backends.cuda import tables as tables_module
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.buckets import Bucket, rounded_up
from model.decode.backends.cuda.grid import Grid
from model.decode.backends.cuda.growth import Sizes
from model.decode.backends.cuda.recording import Recorder, Rerun, Step
from model.decode.session import DecodeRequest, DecodingSession, Hypothesis, SessionLimits
from model.errors import UnsupportedVariantError
from model.nn.transformer import Transformer
from support.search_cases import (
    CROWD,
    LIMITS,
    TOKENS,
    assert_equals_reference,
    random_request,
    run_in_a_crowd,
    small_transformer,
    with_sampling,
    with_suppressed,
)
from support.traced_steps import TracedSteps


def on_grid(
    transformer: Transformer, recorder: Recorder, limits: SessionLimits = LIMITS
) -> DecodingSession:
    return DecodingSession(
        transformer, tokens=TOKENS, limits=limits, opener=partial(GridBackend, recorder=recorder)
    )


@pytest.mark.parametrize("eos_bias", [-1.0, 1.0, 3.0])
@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"norm_placement": "pre", "activation": "gelu", "attention_bias": False},
        {"norm": "rmsnorm", "position": "learned", "max_positions": 64, "d_k": 6, "d_v": 10},
        {"position": "sinusoidal-m2m100", "position_offset": 2, "share_embeddings": False,
         "tie_output": False, "activation": "silu"},
    ],
    ids=["marian", "pre-norm", "rms-learned-uneven", "m2m100-separate"],
)  # fmt: skip
def test_in_float64_a_crowd_never_changes_a_sentence(
    eos_bias: float, shape: dict[str, object]
) -> None:
    transformer = small_transformer(eos_bias=eos_bias, **shape)
    opener = partial(GridBackend, recorder=Rerun())
    for request, hypotheses in run_in_a_crowd(transformer, random.Random(7), CROWD, opener=opener):
        assert_equals_reference(transformer, request, hypotheses)


def test_tokens_are_suppressed_in_the_sentences_that_ask_for_it_and_in_no_other() -> None:
    transformer = small_transformer(eos_bias=1.0)
    opener = partial(GridBackend, recorder=Rerun())
    crowd = run_in_a_crowd(
        transformer, random.Random(17), 2 * CROWD, opener=opener, has_suppressed=True
    )
    for request, hypotheses in crowd:
        assert_equals_reference(transformer, request, hypotheses)
        chosen = {token for one in hypotheses for token in one.token_ids}
        assert chosen.isdisjoint(request.suppressed_ids)
    num_asking = sum(bool(request.suppressed_ids) for request, _ in crowd)
    assert CROWD / 2 < num_asking < 3 * CROWD / 2


def test_only_while_a_sentence_has_suppressed_tokens_does_a_step_look_at_them(
    tight_buckets: list[tuple[Grid, Bucket]],
) -> None:
    session = on_grid(small_transformer(eos_bias=-20.0), Rerun())
    search = SearchConfig(beam_size=2, max_length=4)
    plain = random_request(random.Random(31), search)
    for request in (plain, structs.replace(plain, suppressed_ids=(5, 6)), plain):
        session.admit([request])
        while not session.is_idle:
            session.step()
    flags = [bucket.with_suppressed for _, bucket in tight_buckets]
    third = len(flags) // 3
    assert flags == [False] * third + [True] * third + [False] * third


@pytest.fixture
def tight_buckets(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Grid, Bucket]]:
    """Buckets without a lower bound, so that small sentences fill them; what was stepped."""
    monkeypatch.setattr(grid_module, "_MIN_COLUMNS", 1)
    monkeypatch.setattr(grid_module, "_MIN_SOURCE", 1)
    stepped: list[tuple[Grid, Bucket]] = []
    make_step = Grid._step

    def noted(grid: Grid, bucket: Bucket) -> Step:
        running = grid._ledger.running
        longest = max(len(request.source_ids) for request in running)
        assert bucket.source_length == rounded_up(longest, minimum=1, maximum=16)
        most = max(request.search.candidates for request in running)
        assert bucket.num_candidates == max(2 * grid._tables.width, most)
        assert bucket.with_sources == any(request.search.with_alignment for request in running)
        stepped.append((grid, bucket))
        return make_step(grid, bucket)

    monkeypatch.setattr(Grid, "_step", noted)
    return stepped


def test_in_buckets_that_just_hold_it_a_crowd_never_changes_a_sentence(
    tight_buckets: list[tuple[Grid, Bucket]],
) -> None:
    """Everybody's past, source and beams up to the last place of a bucket, and no place more."""
    transformer = small_transformer(num_encoder_layers=1, num_decoder_layers=1)
    opener = partial(GridBackend, recorder=Rerun())
    for request, hypotheses in run_in_a_crowd(transformer, random.Random(29), 25, opener=opener):
        assert_equals_reference(transformer, request, hypotheses)
    assert {bucket.num_columns for _, bucket in tight_buckets} >= {1, 2, 3, 4, 6, 8, 12}
    assert len({bucket.source_length for _, bucket in tight_buckets}) >= 3


def test_columns_and_slots_are_no_more_than_the_longest_past_and_the_last_slot_need(
    tight_buckets: list[tuple[Grid, Bucket]],
) -> None:
    session = on_grid(small_transformer(eos_bias=-20.0), Rerun())
    rng = random.Random(31)
    search = SearchConfig(beam_size=2, max_length=12)
    plain = [
        structs.replace(random_request(rng, search), source_ids=(5, 6, 1), prefix_ids=(0,))
        for _ in range(3)
    ]
    names = session.admit(plain)
    for _ in range(4):
        session.step()
    session.release(names[2])
    while not session.is_idle:
        session.step()
    columns = [rounded_up(past, minimum=1, maximum=32) for past in range(1, 13)]
    assert [bucket.num_columns for _, bucket in tight_buckets] == columns
    assert [bucket.num_slots for _, bucket in tight_buckets] == [3] * 4 + [2] * 8


@pytest.mark.usefixtures("tight_buckets")
def test_who_joins_finds_room_and_who_leaves_gives_it_back() -> None:
    """Longer source, more candidates, an alignment: each is asked for at the very next step."""
    transformer = small_transformer(eos_bias=-1.0)
    small = DecodeRequest(
        source_ids=(5, 6, 1), prefix_ids=(0,), search=SearchConfig(beam_size=3, max_length=20)
    )
    asking = SearchConfig(
        beam_size=3, num_hypotheses=3, num_candidates=17, max_length=6, with_alignment=True
    )
    newcomers = (
        structs.replace(
            small, search=replace(small.search, max_length=6), source_ids=(*range(4, 19), 1)
        ),
        structs.replace(small, search=replace(asking, num_candidates=None)),
        structs.replace(small, search=replace(asking, with_alignment=False)),
    )
    for newcomer in newcomers:
        exact = DecodingSession(transformer, tokens=TOKENS, limits=LIMITS)
        exact.admit([newcomer])
        alone: list[tuple[Hypothesis, ...]] = []
        while not exact.is_idle:
            alone += [sentence.hypotheses for sentence in exact.step()]
        session = on_grid(transformer, Rerun())
        session.admit([small])
        session.step()
        (name,) = session.admit([newcomer])
        found = {}
        while not session.is_idle:
            found.update({s.slot_id: s.hypotheses for s in session.step()})
        assert [h.alignment for h in found[name]] == [h.alignment for h in alone[0]]
        assert_equals_reference(transformer, newcomer, found[name])


def test_tables_that_grow_under_a_crowd_never_change_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From one slot and one column, with steps recorded in between that must not be used again."""
    monkeypatch.setattr(tables_module, "_FEWEST", {"slots": 1, "columns": 1, "sources": 1})
    monkeypatch.setattr(grid_module, "_MIN_SOURCE", 1)
    transformer = small_transformer(num_encoder_layers=1, num_decoder_layers=1)
    sizes: list[tuple[int, int, int]] = []
    reserve = tables_module.GridTables.reserve

    def noted(tables: tables_module.GridTables, needed: Sizes, *, foreseen: int) -> bool:
        has_moved = reserve(tables, needed, foreseen=foreseen)
        sizes.append((tables.num_slots, tables.num_columns, tables.source_length))
        return has_moved

    monkeypatch.setattr(tables_module.GridTables, "reserve", noted)
    opener = partial(GridBackend, recorder=TracedSteps())
    crowd = run_in_a_crowd(
        transformer, random.Random(41), 8, opener=opener, has_suppressed=True, vary=with_sampling
    )
    for request, hypotheses in crowd:
        assert_equals_reference(transformer, request, hypotheses)
    assert len({size[0] for size in sizes}) >= 3
    assert len({size[1] for size in sizes}) >= 3
    assert len({size[2] for size in sizes}) >= 2


def test_a_grid_of_another_width_keeps_the_recordings_of_an_idle_one() -> None:
    recorder = TracedSteps()
    session = on_grid(
        small_transformer(num_encoder_layers=1, num_decoder_layers=1), recorder, LIMITS
    )
    greedy, beam = SearchConfig(beam_size=1, max_length=5), SearchConfig(beam_size=4, max_length=5)
    recorded = []
    for search in (greedy, beam, greedy, beam):
        session.admit([random_request(random.Random(1), search)])
        while not session.is_idle:
            session.step()
        recorded.append(recorder.num_recorded)
    assert recorded == [1, 2, 2, 2]


def test_beams_are_reordered_in_the_last_column_of_a_bucket_too() -> None:
    """The smallest bucket has 32 columns, the next one 48: pasts that end there and go on."""
    transformer = small_transformer(eos_bias=-20.0, num_encoder_layers=1, num_decoder_layers=1)
    limits = SessionLimits(max_rows=32, max_slots=8, max_source_length=16, max_target_length=40)
    session = on_grid(transformer, Rerun(), limits)
    rng = random.Random(37)
    search = SearchConfig(beam_size=4, num_hypotheses=4, max_length=36)
    requests = [random_request(rng, search) for _ in range(2)]
    running = dict(zip(session.admit(requests), requests, strict=True))
    while not session.is_idle:
        for finished in session.step():
            assert_equals_reference(transformer, running[finished.slot_id], finished.hypotheses)


@pytest.mark.parametrize(
    ("has_suppressed", "num_buckets"), [(False, 2), (True, 4)], ids=["free", "suppressed"]
)
def test_recorded_steps_do_what_the_step_does(*, has_suppressed: bool, num_buckets: int) -> None:
    """Nothing of the sentences is baked into a recording: it serves those that come later."""
    transformer = small_transformer(num_encoder_layers=1, num_decoder_layers=1)
    recorder = TracedSteps()
    limits = SessionLimits(max_rows=8, max_slots=2, max_source_length=16, max_target_length=24)
    session = on_grid(transformer, recorder, limits)
    rng = random.Random(5)
    running: dict[int, DecodeRequest] = {}
    num_done = 0
    while num_done < 12:
        if session.free_slots and rng.random() < 0.7:
            search = SearchConfig(
                beam_size=rng.choice([3, 4]),
                num_hypotheses=2,
                max_length=rng.randint(1, 16),
                length_penalty=rng.choice([0.6, 1.0]),
            )
            request = random_request(rng, search)
            if has_suppressed:
                request = with_suppressed(rng, request)
            running[session.admit([request])[0]] = request
        for finished in session.step():
            assert_equals_reference(transformer, running.pop(finished.slot_id), finished.hypotheses)
            num_done += 1
    assert recorder.num_recorded <= num_buckets  # one slot, two slots; with tokens suppressed
    assert recorder.num_replayed > 40


def test_a_step_that_looks_at_the_device_cannot_be_recorded() -> None:
    state = torch.zeros(3)

    def step() -> torch.Tensor:
        return state + int(state.sum())

    with pytest.raises(RuntimeError, match="tracing tensor"):
        TracedSteps().record(step)


def test_a_released_slot_serves_another_while_its_last_step_is_still_unread() -> None:
    transformer = small_transformer()
    session = on_grid(transformer, Rerun())
    rng = random.Random(9)
    search = SearchConfig(beam_size=4, max_length=12)
    first, second = (random_request(rng, search) for _ in range(2))
    (slot_id,) = session.admit([first])
    for _ in range(3):
        session.step()
    session.release(slot_id)
    (slot_id,) = session.admit([second])
    finished = []
    while not session.is_idle:
        finished += session.step()
    assert [sentence.slot_id for sentence in finished] == [slot_id]
    assert_equals_reference(transformer, second, finished[0].hypotheses)


def test_a_sentence_without_a_finite_score_leaves_nothing_behind() -> None:
    transformer = small_transformer()
    session = on_grid(transformer, Rerun())
    rng = random.Random(13)
    search = SearchConfig(beam_size=2, max_length=12)
    poison = transformer.source_embedding.weight[22].clone()
    with torch.no_grad():
        transformer.source_embedding.weight[22] = torch.nan
    request = random_request(rng, search)
    bad = DecodeRequest(source_ids=(22, 1), prefix_ids=request.prefix_ids, search=search)
    session.admit([bad])
    found: list[tuple[Hypothesis, ...]] = []
    while not session.is_idle:
        found += [sentence.hypotheses for sentence in session.step()]
    with torch.no_grad():
        transformer.source_embedding.weight[22] = poison
    assert found == [()]
    session.admit([request])
    while not session.is_idle:
        for sentence in session.step():
            assert_equals_reference(transformer, request, sentence.hypotheses)


@pytest.mark.parametrize("num_steps", [0, 1, 3])
def test_a_released_sentence_without_finite_numbers_leaves_nothing_behind(num_steps: int) -> None:
    transformer = small_transformer()
    session = on_grid(transformer, Rerun())
    rng = random.Random(23)
    search = SearchConfig(beam_size=2, max_length=12)
    healthy, beside = (random_request(rng, search) for _ in range(2))
    clean = transformer.source_embedding.weight[22].clone()
    with torch.no_grad():
        transformer.source_embedding.weight[22] = torch.nan
    bad = DecodeRequest(source_ids=(*[22] * 14, 1), prefix_ids=(0, 4, 5, 6), search=search)
    (slot_id,) = session.admit([bad])
    for _ in range(num_steps):
        session.step()
    session.release(slot_id)
    with torch.no_grad():
        transformer.source_embedding.weight[22] = clean
    requests = dict(zip(session.admit([healthy, beside]), (healthy, beside), strict=True))
    while not session.is_idle:
        for sentence in session.step():
            assert_equals_reference(transformer, requests[sentence.slot_id], sentence.hypotheses)


def test_a_session_that_is_dropped_holds_no_memory() -> None:
    session = on_grid(small_transformer(), Rerun())
    session.admit([random_request(random.Random(3), SearchConfig(beam_size=2, max_length=4))])
    while not session.is_idle:
        session.step()
    (grid,) = session._backend._grids.values()
    is_there = weakref.ref(grid)
    gc.disable()
    try:
        del session, grid
        assert is_there() is None
    finally:
        gc.enable()


def test_an_alignment_is_what_the_tensors_of_the_other_backend_say() -> None:
    """Also of a token that is the second child of its beam, in another row than its parent."""
    transformer = small_transformer()
    search = SearchConfig(beam_size=4, num_hypotheses=4, max_length=14, with_alignment=True)
    rng = random.Random(17)
    requests = [random_request(rng, search) for _ in range(60)]
    results = []
    for open_one in (
        lambda: on_grid(transformer, Rerun()),
        lambda: DecodingSession(transformer, tokens=TOKENS, limits=LIMITS),
    ):
        found = []
        for begin in range(0, len(requests), 5):
            session = open_one()
            names = session.admit(requests[begin : begin + 5])
            ended = {}
            while not session.is_idle:
                ended.update({s.slot_id: s.hypotheses for s in session.step()})
            found += [[h.alignment for h in ended[name]] for name in names]
        results.append(found)
    assert results[0] == results[1]
    assert all(alignment for alignment in results[0][0])


def test_in_bfloat16_scores_stay_finer_than_the_network() -> None:
    transformer = small_transformer(dtype=torch.float32)
    rng = random.Random(19)
    requests = [random_request(rng, SearchConfig(beam_size=4, max_length=12)) for _ in range(6)]
    exact = {}
    for dtype in (torch.float32, torch.bfloat16):
        session = on_grid(transformer.to(dtype), Rerun())
        names = session.admit(requests)
        found = {}
        while not session.is_idle:
            found.update({s.slot_id: s.hypotheses for s in session.step()})
        exact[dtype] = [found[name][0] for name in names]
    for low, high in zip(exact[torch.bfloat16], exact[torch.float32], strict=True):
        assert low.score == pytest.approx(high.score, abs=0.3)
        assert low.score != float(torch.tensor(low.score).bfloat16())


def test_positions_inside_attention_are_refused() -> None:
    with pytest.raises(UnsupportedVariantError, match="rope"):
        on_grid(small_transformer(position="rope"), Rerun())


def test_what_is_encoded_is_as_long_as_its_bucket() -> None:
    limits = SessionLimits(max_rows=24, max_slots=6, max_source_length=48, max_target_length=24)
    session = on_grid(small_transformer(), Rerun(), limits)
    search = SearchConfig(max_length=2)
    requests = [
        DecodeRequest(source_ids=(5,) * length, prefix_ids=(0,), search=search)
        for length in (4, 9, 40)
    ]
    session.admit(requests)
    assert session.num_encoded_tokens == 2 * 32 + 48
