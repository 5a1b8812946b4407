import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from service.engine.client.client import EngineClient
from service.engine.client.submission import OnWritten, SegmentBatch, SegmentJob
from service.engine.errors import (
    EngineError,
    EngineUnavailableError,
    SegmentFailedError,
)
from service.errors import RequestError
from service.models.requests.translation import (
    SegmentTally,
    TranslatedText,
    TranslationRequest,
)
from service.models.translating.counting import MAX_COPIED_SEGMENTS
from service.models.translating.segment_cache import SegmentCache
from service.models.translating.translator import OnlineTranslator
from support.online_translation import MARKED, TEXT, Echo, request_of, translator_over
from support.tiny_checkpoint import EN_ZH, TINY_LIMITS


def test_texts_keep_their_order_and_their_segments_their_hypotheses(
    runner: asyncio.Runner, translator: OnlineTranslator
) -> None:
    texts = [TEXT, "", f"7.30\n{TEXT}", "a" * 500, " "]
    results: list[TranslatedText] = runner.run(translator.translate(request_of(texts)))
    assert [len(result.best.segments) == len(result.hypotheses) for result in results] == [True] * 5
    assert results[0].best.text == results[2].best.segments[1].text
    assert [hypothesis is None for hypothesis in results[2].hypotheses] == [True, False]
    assert (results[1].best.text, results[4].best.text) == ("", " ")


def test_alternatives_differ_and_a_copied_text_has_none(
    runner: asyncio.Runner, translator: OnlineTranslator
) -> None:
    request = request_of([TEXT, "7.30"], beam_size=4, num_alternatives=3)
    translated, copied = runner.run(translator.translate(request))
    assert len({translated.best.text, *translated.alternatives}) > 1
    assert copied.alternatives == ()


def test_max_length_only_ever_shortens(
    runner: asyncio.Runner, translator: OnlineTranslator
) -> None:
    def longest(max_length: int | None) -> int:
        (result,) = runner.run(translator.translate(request_of([TEXT], max_length=max_length)))
        return max(segment.num_target_tokens for segment in result.best.segments)

    assert longest(3) <= 2
    assert longest(64) == longest(None)


def test_more_segments_than_may_ever_wait_are_a_413(
    runner: asyncio.Runner, translator: OnlineTranslator
) -> None:
    with pytest.raises(RequestError) as caught:
        runner.run(translator.translate(request_of([TEXT] * 31)))
    problem = caught.value.problem
    assert (problem.status, problem.value, problem.limit) == (413, 31, 30)


@pytest.mark.parametrize("is_one_text", [True, False])
def test_more_copied_segments_than_there_may_be_are_a_413(
    translator: OnlineTranslator, *, is_one_text: bool
) -> None:
    own = translator_over(translator, Echo())
    lines = ["7"] * (MAX_COPIED_SEGMENTS + 1)
    texts = ["\n".join(lines)] if is_one_text else lines
    with pytest.raises(RequestError) as caught:
        asyncio.run(own.translate(request_of(texts)))
    problem = caught.value.problem
    assert (problem.status, problem.code) == (413, "too_long")
    assert (problem.value, problem.limit) == (MAX_COPIED_SEGMENTS + 1, MAX_COPIED_SEGMENTS)
    assert f"{MAX_COPIED_SEGMENTS + 1} segments that are copied" in problem.message


def test_copied_segments_are_counted_in_all_parts_of_a_request_and_apart_from_the_others(
    translator: OnlineTranslator,
) -> None:
    tally, own = SegmentTally(), translator_over(translator, Echo())
    text = "\n".join(["She sells.", *["7"] * (MAX_COPIED_SEGMENTS - 1)])
    (result,) = asyncio.run(own.translate(request_of([text], tally=tally)))
    assert len(result.hypotheses) == MAX_COPIED_SEGMENTS
    asyncio.run(own.translate(request_of(["7"], tally=tally)))
    with pytest.raises(RequestError, match="10001 segments that are copied"):
        asyncio.run(own.translate(request_of(["7"], tally=tally)))


def test_a_deadline_is_a_504_and_leaves_nothing_pending(
    runner: asyncio.Runner, translator: OnlineTranslator, engine: EngineClient
) -> None:
    with pytest.raises(RequestError) as caught:
        runner.run(translator.translate(request_of([TEXT] * 30, timeout_seconds=0.05)))
    assert caught.value.problem.status == 504
    runner.run(_nothing_pending(engine))


def test_cancelling_a_request_cancels_its_segments(
    runner: asyncio.Runner, translator: OnlineTranslator, engine: EngineClient
) -> None:
    async def scenario() -> None:
        task = asyncio.create_task(translator.translate(request_of([TEXT] * 20)))
        while engine.num_pending < 20:  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await _nothing_pending(engine)

    before = engine.counters.num_finished
    runner.run(scenario())
    assert engine.counters.num_finished - before < 20


async def _nothing_pending(engine: EngineClient) -> None:
    """Give the loop its turn until the engine has confirmed; pytest's timeout is the bound."""
    while engine.num_pending:  # noqa: ASYNC110  # draining would be for good
        await asyncio.sleep(0)


class _Recorder:
    """An engine that keeps what it is asked for and refuses it."""

    max_request_segments = 1_000

    def __init__(self) -> None:
        self.jobs: list[SegmentJob] = []
        self.client = 0

    def submit(
        self, jobs: Sequence[SegmentJob], *, client: int = 0, on_written: OnWritten | None = None
    ) -> SegmentBatch:
        self.jobs, self.client = list(jobs), client
        raise EngineUnavailableError("it only listens")


def _asked(pipeline_of: OnlineTranslator, request: TranslationRequest) -> _Recorder:
    engine = _Recorder()
    translator = translator_over(pipeline_of, engine)
    with pytest.raises(EngineUnavailableError):
        asyncio.run(translator.translate(request))
    return engine


def _through(
    pipeline_of: OnlineTranslator,
    engine: Echo,
    text: str,
    *,
    timeout_seconds: float = 60.0,
    **options: Any,
) -> TranslatedText:
    translator = translator_over(pipeline_of, engine)
    request = request_of([text], timeout_seconds=timeout_seconds, **options)
    (result,) = asyncio.run(translator.translate(request))
    assert len(result.hypotheses) == len(result.best.segments)
    return result


def test_marks_that_were_lost_are_asked_for_again_until_they_are_there(
    translator: OnlineTranslator,
) -> None:
    engine = Echo()
    result = _through(translator, engine, MARKED)
    assert [len(jobs) for jobs in engine.submits] == [1, 1, 2]
    assert result.best.text.count("{name}") == 1
    assert result.best.num_flagged == 0
    searches = [job.request.search for jobs in engine.submits for job in jobs]
    assert [search.num_hypotheses for search in searches] == [2] * 4


def test_a_plain_text_is_submitted_once_with_the_search_that_was_asked_for(
    translator: OnlineTranslator,
) -> None:
    engine = Echo(keeps_all=True)
    result = _through(translator, engine, "She sells.")
    assert result.best.text == "She sells."
    ((job,),) = engine.submits
    search = job.request.search
    assert (search.num_hypotheses, search.with_alignment) == (1, False)
    assert (
        job.request.source_ids
        == translator.pipeline.prepare("She sells.", EN_ZH).segments[0].source_ids
    )


def test_parts_of_a_request_are_counted_together_where_they_have_one_engine(
    translator: OnlineTranslator,
) -> None:
    engine, tally = Echo(keeps_all=True), SegmentTally()
    text = "She sells. They run. A cat waits."
    for _ in range(2):
        _through(translator, engine, text, tally=tally)
    _through(translator, Echo(keeps_all=True), text, tally=tally)
    num_submits = len(engine.submits)
    with pytest.raises(RequestError, match="at least 9 segments; the limit is 8") as caught:
        _through(translator, engine, text, tally=tally)
    assert caught.value.problem.status == 413
    assert len(engine.submits) == num_submits


@pytest.mark.parametrize(("max_submits", "options"), [(1, {}), (9, {"max_length": 20})])
def test_without_room_for_another_round_marks_are_kept_somewhere_and_flagged(
    translator: OnlineTranslator, max_submits: int, options: dict[str, int]
) -> None:
    engine = Echo(max_submits=max_submits)
    result = _through(translator, engine, MARKED, **options)
    assert len(engine.submits) == 1
    assert result.best.text.count("{name}") == 1
    assert "marks" in result.best.segments[0].quality.failed


@pytest.mark.parametrize(
    "failure", [EngineUnavailableError("gone"), SegmentFailedError(code="a", message="b"), None]
)
def test_a_further_round_that_fails_or_does_not_end_leaves_the_first_answer(
    translator: OnlineTranslator, failure: EngineError | None
) -> None:
    engine = Echo(max_submits=1, refusal=failure)
    result = _through(translator, engine, MARKED, timeout_seconds=1.0)
    assert result.best.text.count("{name}") == 1
    assert "marks" in result.best.segments[0].quality.failed
    assert engine.cancelled == ([] if failure else [0])


def test_alternatives_have_the_marks_too(translator: OnlineTranslator) -> None:
    engine = Echo(keeps_all=True)
    result = _through(translator, engine, MARKED, beam_size=4, num_alternatives=2)
    assert all("{name}" in text for text in (result.best.text, *result.alternatives))


def test_many_short_segments_are_more_work_than_their_characters_say(
    translator: OnlineTranslator,
) -> None:
    few = request_of(["a\n" * 100], beam_size=2)
    assert {job.priority for job in _asked(translator, few).jobs} == {"interactive"}
    many = request_of(["a\n" * 300], beam_size=2)
    asked = _asked(translator, many)
    assert (len(asked.jobs), {job.priority for job in asked.jobs}) == (300, {"bulk"})


def test_bulk_stays_bulk_and_the_engine_hears_whose_it_is(translator: OnlineTranslator) -> None:
    request = structs.replace(request_of([TEXT]), priority="bulk", client=7)
    asked = _asked(translator, request)
    assert ([job.priority for job in asked.jobs], asked.client) == (["bulk"], 7)


def test_of_bulk_one_piece_of_text_is_worked_on_at_a_time(
    runner: asyncio.Runner, translator: OnlineTranslator
) -> None:
    bulk = structs.replace(request_of([TEXT] * 2), priority="bulk")

    async def scenario() -> None:
        async with translator._text_work._bulk_turn:  # a piece of bulk is at work
            waiting = asyncio.create_task(translator.translate(bulk))
            assert len(await translator.translate(request_of([TEXT]))) == 1
            assert not waiting.done()
        assert len(await waiting) == 2

    runner.run(scenario())


def test_what_was_translated_before_is_not_searched_again(
    runner: asyncio.Runner, translator: OnlineTranslator, engine: EngineClient
) -> None:
    looked_up: list[tuple[int, int]] = []
    searched: list[int] = []
    cached = OnlineTranslator(
        pipeline=translator.pipeline,
        limits=TINY_LIMITS,
        engine=engine,
        text_thread=translator._text_work._thread,
        bulk_turn=asyncio.Semaphore(1),
        on_finished=lambda jobs, answers: searched.append(len(answers)),
        cache=SegmentCache(1_000_000),
        fingerprint="a",
        on_looked_up=lambda hits, misses: looked_up.append((hits, misses)),
    )
    other = "My friend waits for a letter."
    texts = [TEXT, "7.30", f"{TEXT}\n{other}"]
    request = request_of(texts, num_alternatives=1, max_length=64)  # one round
    plain = runner.run(translator.translate(request))
    assert runner.run(cached.translate(request)) == plain
    assert looked_up[0] == (0, 3)
    num_searched = sum(searched)
    assert runner.run(cached.translate(request)) == plain
    assert sum(searched) == num_searched, "nothing is searched again"
    for changed in (
        structs.replace(request, cache_scope="key:other"),
        structs.replace(request, length_penalty=0.5),
    ):
        looked_up.clear()
        assert runner.run(cached.translate(changed)) == runner.run(translator.translate(changed))
        assert looked_up[0] == (0, 3)
    looked_up.clear()
    more = structs.replace(request, texts=("A dog runs.", other))
    assert runner.run(cached.translate(more))[1].hypotheses == plain[2].hypotheses[1:]
    assert looked_up[0] == (1, 1)


def test_without_an_engine_a_request_is_refused_at_once(
    runner: asyncio.Runner, translator: OnlineTranslator, engine: EngineClient
) -> None:
    runner.run(engine.close())
    with pytest.raises(EngineUnavailableError):
        runner.run(translator.translate(request_of([TEXT])))
