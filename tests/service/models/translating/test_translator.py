import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest
from msgspec import structs

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.request import Hypothesis
from model.text.pipeline import TextPipeline
from service.engine.client.client import EngineClient
from service.engine.client.segment_room import SegmentRoom
from service.engine.client.submission import OnWritten, SegmentBatch, SegmentJob
from service.engine.errors import (
    EngineError,
    EngineUnavailableError,
    QueueFullError,
    SegmentFailedError,
)
from service.engine.messages import Configure, Finished, SegmentTimings
from service.errors import RequestError
from service.models.requests.translation import (
    AddedText,
    DoneSegment,
    GrowingSentence,
    SegmentTally,
    TranslatedText,
    TranslationRequest,
)
from service.models.routes.routing import Hop, Route
from service.models.translating.segment_cache import SegmentCache
from service.models.translating.translator import OnlineTranslator
from support.tiny_checkpoint import EN_ZH, TINY_LIMITS, write_tiny_checkpoint

TEXT = "The cat sees the river."


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def engine(
    runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EngineClient]:
    path = write_tiny_checkpoint(tmp_path_factory.mktemp("online") / "tiny")
    configure = Configure(
        checkpoint_paths=(str(path),),
        num_threads=1,
        device="cpu",
        compute_type="float32",  # slow enough for deadlines and cancellations to meet it
        max_rows=16,
        max_slots=4,
        log_level="error",
    )
    engine = runner.run(EngineClient.start(configure, room=SegmentRoom(30)))
    yield engine
    runner.run(engine.close())


@pytest.fixture(scope="module")
def translator(engine: EngineClient, tmp_path_factory: pytest.TempPathFactory) -> OnlineTranslator:
    path = write_tiny_checkpoint(tmp_path_factory.mktemp("pipeline") / "tiny")
    manifest = read_manifest(path)
    return OnlineTranslator(
        pipeline=TextPipeline(load_tokenizer(path, manifest), manifest.limits),
        limits=TINY_LIMITS,
        engine=engine,
        text_thread=ThreadPoolExecutor(max_workers=1),
        bulk_turn=asyncio.Semaphore(1),
    )


def _request(
    texts: Sequence[str],
    *,
    beam_size: int = 2,
    num_alternatives: int = 0,
    max_length: int | None = None,
    timeout_seconds: float = 60.0,
    tally: SegmentTally | None = None,
) -> TranslationRequest:
    return TranslationRequest(
        tally=tally,
        texts=tuple(texts),
        route=Route(hops=(Hop(checkpoint="tiny", pair=EN_ZH),)),
        beam_size=beam_size,
        length_penalty=1.0,
        num_alternatives=num_alternatives,
        max_length=max_length,
        with_alignment=False,
        timeout_seconds=timeout_seconds,
    )


def test_texts_keep_their_order_and_their_segments_their_hypotheses(
    runner: asyncio.Runner, translator: OnlineTranslator
) -> None:
    texts = [TEXT, "", f"7.30\n{TEXT}", "a" * 500, " "]
    results: list[TranslatedText] = runner.run(translator.translate(_request(texts)))
    assert [len(result.best.segments) == len(result.hypotheses) for result in results] == [True] * 5
    assert results[0].best.text == results[2].best.segments[1].text
    assert [hypothesis is None for hypothesis in results[2].hypotheses] == [True, False]
    assert (results[1].best.text, results[4].best.text) == ("", " ")


def test_alternatives_differ_and_a_copied_text_has_none(
    runner: asyncio.Runner, translator: OnlineTranslator
) -> None:
    request = _request([TEXT, "7.30"], beam_size=4, num_alternatives=3)
    translated, copied = runner.run(translator.translate(request))
    assert len({translated.best.text, *translated.alternatives}) > 1
    assert copied.alternatives == ()


def test_max_length_only_ever_shortens(
    runner: asyncio.Runner, translator: OnlineTranslator
) -> None:
    def longest(max_length: int | None) -> int:
        (result,) = runner.run(translator.translate(_request([TEXT], max_length=max_length)))
        return max(segment.num_target_tokens for segment in result.best.segments)

    assert longest(3) <= 2
    assert longest(64) == longest(None)


def test_more_segments_than_may_ever_wait_are_a_413(
    runner: asyncio.Runner, translator: OnlineTranslator
) -> None:
    with pytest.raises(RequestError) as caught:
        runner.run(translator.translate(_request([TEXT] * 31)))
    problem = caught.value.problem
    assert (problem.status, problem.value, problem.limit) == (413, 31, 30)


def test_a_deadline_is_a_504_and_leaves_nothing_pending(
    runner: asyncio.Runner, translator: OnlineTranslator, engine: EngineClient
) -> None:
    with pytest.raises(RequestError) as caught:
        runner.run(translator.translate(_request([TEXT] * 30, timeout_seconds=0.05)))
    assert caught.value.problem.status == 504
    runner.run(_nothing_pending(engine))


def test_cancelling_a_request_cancels_its_segments(
    runner: asyncio.Runner, translator: OnlineTranslator, engine: EngineClient
) -> None:
    async def scenario() -> None:
        task = asyncio.create_task(translator.translate(_request([TEXT] * 20)))
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
    translator = OnlineTranslator(
        pipeline=pipeline_of.pipeline,
        limits=TINY_LIMITS,
        engine=engine,
        text_thread=pipeline_of._text_work._thread,
        bulk_turn=asyncio.Semaphore(1),
    )
    with pytest.raises(EngineUnavailableError):
        asyncio.run(translator.translate(request))
    return engine


FULL = QueueFullError(value=9, limit=8, retry_after_seconds=1.0)


class _Echo:
    """An engine that answers at once with the source, and keeps what it is asked for.

    Args:
        max_submits: So many submits are accepted.
        refusal: What a further one is told; None lets it wait without an answer.
        keeps_all: The whole source is the answer; else its first token is.
    """

    max_request_segments = 8

    def __init__(
        self,
        *,
        max_submits: int = 9,
        refusal: EngineError | None = FULL,
        keeps_all: bool = False,
    ) -> None:
        self.submits: list[list[SegmentJob]] = []
        self.cancelled: list[int] = []
        self._max_submits = max_submits
        self._refusal = refusal
        self._keeps_all = keeps_all

    def submit(
        self, jobs: Sequence[SegmentJob], *, client: int = 0, on_written: OnWritten | None = None
    ) -> SegmentBatch:
        is_over = len(self.submits) == self._max_submits
        if is_over and self._refusal is not None:
            raise self._refusal
        loop = asyncio.get_running_loop()
        answers = {number: loop.create_future() for number in range(len(jobs))}
        if not is_over:
            self.submits.append(list(jobs))
            for number, job in enumerate(jobs):
                answers[number].set_result(self._finished(number, job))
        return SegmentBatch(answers, cancel=self.cancelled.extend)

    def _finished(self, number: int, job: SegmentJob) -> Finished:
        ids = job.request.source_ids[:-1] if self._keeps_all else job.request.source_ids[:1]
        hypothesis = Hypothesis(
            token_ids=ids,
            score=-1.0,
            token_log_probs=(-1.0,) * (len(ids) + 1),
            is_truncated=False,
            alignment=tuple(range(len(ids))) if job.request.search.with_alignment else None,
        )
        timings = SegmentTimings(
            queue_seconds=0.0, first_step_seconds=0.0, decode_seconds=0.0, num_steps=0
        )
        return Finished(segment_id=number, hypotheses=(hypothesis,), timings=timings)


def _through(
    pipeline_of: OnlineTranslator,
    engine: _Echo,
    text: str,
    *,
    timeout_seconds: float = 60.0,
    **options: Any,
) -> TranslatedText:
    translator = OnlineTranslator(
        pipeline=pipeline_of.pipeline,
        limits=TINY_LIMITS,
        engine=engine,
        text_thread=pipeline_of._text_work._thread,
        bulk_turn=asyncio.Semaphore(1),
    )
    request = _request([text], timeout_seconds=timeout_seconds, **options)
    (result,) = asyncio.run(translator.translate(request))
    assert len(result.hypotheses) == len(result.best.segments)
    return result


MARKED = "The cat sees {name} and the river."


def test_marks_that_were_lost_are_asked_for_again_until_they_are_there(
    translator: OnlineTranslator,
) -> None:
    engine = _Echo()
    result = _through(translator, engine, MARKED)
    assert [len(jobs) for jobs in engine.submits] == [1, 1, 2]
    assert result.best.text.count("{name}") == 1
    assert result.best.num_flagged == 0
    searches = [job.request.search for jobs in engine.submits for job in jobs]
    assert [search.num_hypotheses for search in searches] == [2] * 4


def test_a_plain_text_is_submitted_once_with_the_search_that_was_asked_for(
    translator: OnlineTranslator,
) -> None:
    engine = _Echo(keeps_all=True)
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
    engine, tally = _Echo(keeps_all=True), SegmentTally()
    text = "She sells. They run. A cat waits."
    for _ in range(2):
        _through(translator, engine, text, tally=tally)
    _through(translator, _Echo(keeps_all=True), text, tally=tally)
    num_submits = len(engine.submits)
    with pytest.raises(RequestError, match="at least 9 segments; the limit is 8") as caught:
        _through(translator, engine, text, tally=tally)
    assert caught.value.problem.status == 413
    assert len(engine.submits) == num_submits


@pytest.mark.parametrize(("max_submits", "options"), [(1, {}), (9, {"max_length": 20})])
def test_without_room_for_another_round_marks_are_kept_somewhere_and_flagged(
    translator: OnlineTranslator, max_submits: int, options: dict[str, int]
) -> None:
    engine = _Echo(max_submits=max_submits)
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
    engine = _Echo(max_submits=1, refusal=failure)
    result = _through(translator, engine, MARKED, timeout_seconds=1.0)
    assert result.best.text.count("{name}") == 1
    assert "marks" in result.best.segments[0].quality.failed
    assert engine.cancelled == ([] if failure else [0])


def test_alternatives_have_the_marks_too(translator: OnlineTranslator) -> None:
    engine = _Echo(keeps_all=True)
    result = _through(translator, engine, MARKED, beam_size=4, num_alternatives=2)
    assert all("{name}" in text for text in (result.best.text, *result.alternatives))


def test_many_short_segments_are_more_work_than_their_characters_say(
    translator: OnlineTranslator,
) -> None:
    few = _request(["a\n" * 100], beam_size=2)
    assert {job.priority for job in _asked(translator, few).jobs} == {"interactive"}
    many = _request(["a\n" * 300], beam_size=2)
    asked = _asked(translator, many)
    assert (len(asked.jobs), {job.priority for job in asked.jobs}) == (300, {"bulk"})


def test_bulk_stays_bulk_and_the_engine_hears_whose_it_is(translator: OnlineTranslator) -> None:
    request = structs.replace(_request([TEXT]), priority="bulk", client=7)
    asked = _asked(translator, request)
    assert ([job.priority for job in asked.jobs], asked.client) == (["bulk"], 7)


def test_of_bulk_one_piece_of_text_is_worked_on_at_a_time(
    runner: asyncio.Runner, translator: OnlineTranslator
) -> None:
    bulk = structs.replace(_request([TEXT] * 2), priority="bulk")

    async def scenario() -> None:
        async with translator._text_work._bulk_turn:  # a piece of bulk is at work
            waiting = asyncio.create_task(translator.translate(bulk))
            assert len(await translator.translate(_request([TEXT]))) == 1
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
    request = _request(texts, num_alternatives=1, max_length=64)  # one round
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


def _watched(texts: Sequence[str], **options: Any) -> TranslationRequest:
    return structs.replace(_request(texts, beam_size=1, **options), is_watched=True)


class _Reader:
    """A reader that takes what is new of each sentence at once."""

    def __init__(self) -> None:
        self.told: list[DoneSegment | AddedText] = []
        self.shown: dict[tuple[int, int], str] = {}

    def __call__(self, news: DoneSegment | GrowingSentence) -> None:
        told = news if isinstance(news, DoneSegment) else news.added
        if told is None:
            return
        self.told.append(told)
        if isinstance(told, AddedText):
            key = (told.text_index, told.index)
            before = "" if told.is_restart else self.shown.get(key, "")
            self.shown[key] = before + told.text

    @property
    def done(self) -> list[tuple[int, int]]:
        return [(one.text_index, one.index) for one in self.told if isinstance(one, DoneSegment)]


def test_a_watched_request_is_shown_the_raw_text_of_what_it_ends_with(
    runner: asyncio.Runner, translator: OnlineTranslator
) -> None:
    reader = _Reader()
    texts = [TEXT, f"7.30\n{TEXT}", "She sells. They run."]
    request = _watched(texts, max_length=30)
    results = runner.run(translator.translate(request, reader))
    raw = {
        (place, index): translator.pipeline.raw_text(found.token_ids, is_whole=True)
        for place, result in enumerate(results)
        for index, found in enumerate(result.hypotheses)
        if found is not None
    }
    assert reader.shown == {key: text for key, text in raw.items() if text}
    assert sorted(reader.done) == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert results == runner.run(translator.translate(_request(texts, beam_size=1, max_length=30)))


def test_of_a_request_that_nobody_watches_the_engine_is_asked_for_no_tokens(
    translator: OnlineTranslator,
) -> None:
    class Listening(_Echo):
        watchers: ClassVar[list[object]] = []

        def submit(
            self,
            jobs: Sequence[SegmentJob],
            *,
            client: int = 0,
            on_written: OnWritten | None = None,
        ) -> SegmentBatch:
            self.watchers.append(on_written)
            return super().submit(jobs, client=client)

    async def scenario() -> None:
        reader = _Reader()
        own = _over(translator, Listening(keeps_all=True))
        for request in (_request(["She sells."]), _watched(["She sells."])):
            await own.translate(request)
            await own.translate(request, reader)
        assert [one is not None for one in Listening.watchers] == [False, False, False, True]
        assert reader.shown == {(0, 0): "She sells."}, "what was answered at once is told at once"

    asyncio.run(scenario())


def test_what_was_in_the_cache_is_told_as_it_is_done_alone(
    runner: asyncio.Runner, translator: OnlineTranslator, engine: EngineClient
) -> None:
    cached = _over(translator, engine, cache=SegmentCache(1 << 20))
    first, second = _Reader(), _Reader()
    runner.run(cached.translate(_watched([TEXT], max_length=30), first))
    runner.run(cached.translate(_watched([TEXT, "She sells."], max_length=30), second))
    assert set(first.shown) == {(0, 0)}
    assert set(second.shown) == {(1, 0)}
    assert sorted(second.done) == [(0, 0), (1, 0)]


def test_what_is_tried_again_is_withdrawn_before_it_is_done(translator: OnlineTranslator) -> None:
    reader = _Reader()
    own = _over(translator, _Echo())
    asyncio.run(own.translate(_watched([MARKED]), reader))
    *_, withdrawn, done = reader.told
    assert isinstance(withdrawn, AddedText)
    assert (withdrawn.text, withdrawn.is_restart) == ("", True)
    assert isinstance(done, DoneSegment)
    assert done.segments[0].quality.num_tries > 0
    assert reader.shown == {(0, 0): ""}


def _over(
    pipeline_of: OnlineTranslator, engine: Any, *, cache: SegmentCache | None = None
) -> OnlineTranslator:
    """The same checkpoint by another engine."""
    return OnlineTranslator(
        pipeline=pipeline_of.pipeline,
        limits=TINY_LIMITS,
        engine=engine,
        text_thread=pipeline_of._text_work._thread,
        bulk_turn=asyncio.Semaphore(1),
        cache=cache,
    )


def test_without_an_engine_a_request_is_refused_at_once(
    runner: asyncio.Runner, translator: OnlineTranslator, engine: EngineClient
) -> None:
    runner.run(engine.close())
    with pytest.raises(EngineUnavailableError):
        runner.run(translator.translate(_request([TEXT])))
