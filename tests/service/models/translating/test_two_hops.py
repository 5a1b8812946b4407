"""Two hops with a real engine, beside each hop alone."""

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.config import LengthLimits, Sampling
from model.text.constraints.glossary import Entry, Glossary
from model.text.pipeline import TextPipeline
from service.engine.client.client import EngineClient
from service.errors import RequestError
from service.models.requests.translation import (
    DoneSegment,
    GrowingSentence,
    SearchedText,
    TranslatedText,
    TranslationRequest,
)
from service.models.routes.routing import Hop, Route
from service.models.translating.parts import REPORTS_PER_TURN
from service.models.translating.translator import OnlineTranslator
from service.models.translating.two_hops import TwoHops
from support.online_translation import slow_engine
from support.several_models import DE_EN, write_several
from support.tiny_checkpoint import EN_ZH, TINY_LIMITS

INTO = Hop(checkpoint="german", pair=DE_EN)
OUT_OF = Hop(checkpoint="small", pair=EN_ZH)
TEXT = "The cat sees the river."

Make = Callable[..., OnlineTranslator]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_several(tmp_path_factory.mktemp("hops") / "checkpoints")


@pytest.fixture(scope="module")
def engine(runner: asyncio.Runner, folder: Path) -> Iterator[EngineClient]:
    with slow_engine(runner, folder / "b", folder / "c") as engine:
        yield engine


@pytest.fixture(scope="module")
def make(engine: EngineClient, folder: Path) -> Make:
    thread, turn = ThreadPoolExecutor(max_workers=1), asyncio.Semaphore(1)

    def make(number: int, limits: LengthLimits = TINY_LIMITS) -> OnlineTranslator:
        directory = folder / "bc"[number]
        manifest = read_manifest(directory)
        return OnlineTranslator(
            pipeline=TextPipeline(load_tokenizer(directory, manifest), limits),
            limits=limits,
            engine=engine,
            checkpoint=number,
            checkpoint_name=manifest.name,
            text_thread=thread,
            bulk_turn=turn,
        )

    return make


@pytest.fixture(scope="module")
def hops(make: Make) -> tuple[OnlineTranslator, OnlineTranslator]:
    return make(0), make(1)


def _request(*texts: str, hops: tuple[Hop, ...] = (INTO, OUT_OF)) -> TranslationRequest:
    return TranslationRequest(
        texts=texts,
        route=Route(hops=hops),
        beam_size=2,
        length_penalty=1.0,
        num_alternatives=0,
        max_length=None,
        with_alignment=True,
        timeout_seconds=60.0,
    )


def test_every_segment_is_what_the_hops_make_of_it_one_after_the_other(
    runner: asyncio.Runner, hops: tuple[OnlineTranslator, OnlineTranslator]
) -> None:
    texts = (f"{TEXT}  She sells apples!\n7.30\n\n{TEXT}", "", "https://example.org")
    results: list[TranslatedText] = runner.run(TwoHops(*hops).translate(_request(*texts)))
    middle = runner.run(hops[0].translate(_request(*texts, hops=(INTO,))))
    for result, first in zip(results, middle, strict=True):
        assert [one.source for one in result.best.segments] == [
            one.source for one in first.best.segments
        ]
        assert result.between is not None
        for place, segment in enumerate(first.best.segments):
            last, between = result.best.segments[place], result.between[place]
            if segment.is_verbatim:
                assert (last, between) == (segment, None)
                continue
            assert between is not None
            assert (between.text, between.hypothesis) == (segment.text, first.hypotheses[place])
            [alone] = runner.run(hops[1].translate(_request(segment.text, hops=(OUT_OF,))))
            assert last.text == alone.best.text.strip()
            assert last.num_source_tokens == segment.num_source_tokens
            assert last.num_target_tokens == alone.best.num_target_tokens
            assert last.quality == segment.quality.combined(
                one.quality for one in alone.best.segments
            )
    assert [result.best.text for result in results[1:]] == ["", "https://example.org"]
    parts = [segment.text for segment in results[0].best.segments]
    assert results[0].best.text == f"{parts[0]}  {parts[1]}\n7.30\n\n{parts[3]}"


def test_alignments_lead_from_the_last_target_to_the_first_source(
    runner: asyncio.Runner, hops: tuple[OnlineTranslator, OnlineTranslator]
) -> None:
    [result] = runner.run(TwoHops(*hops).translate(_request(f"{TEXT} My friend waits.")))
    for segment, found in zip(result.best.segments, result.hypotheses, strict=True):
        assert found is not None
        assert found.alignment is not None
        assert len(found.alignment) == len(found.token_ids) == segment.num_target_tokens
        assert all(0 <= index < segment.num_source_tokens for index in found.alignment)


def test_what_the_second_hop_cuts_by_its_own_limits_is_one_segment_again(
    runner: asyncio.Runner, make: Make
) -> None:
    short = make(1, LengthLimits(max_source_length=12, max_target_length=64))
    request = replace(_request(TEXT), length_penalty=0.5)
    [result] = runner.run(TwoHops(make(0), short).translate(request))
    assert result.between is not None
    [between] = result.between
    assert between is not None
    again = replace(request, texts=(between.text,), route=Route(hops=(OUT_OF,)))
    [alone] = runner.run(short.translate(again))
    assert len([one for one in alone.hypotheses if one is not None]) > 1
    [segment], [found] = result.best.segments, result.hypotheses
    assert found is not None
    assert found.alignment is not None
    assert (segment.text, segment.is_cut) == (alone.best.text.strip(), True)
    parts = [one for one in alone.hypotheses if one is not None]
    assert found.token_ids == tuple(token for part in parts for token in part.token_ids)
    log_probs = [value for part in parts for value in part.token_log_probs]
    assert found.token_log_probs == tuple(log_probs)
    assert found.score == pytest.approx(sum(log_probs) / len(log_probs) ** 0.5)
    assert segment.score == found.score
    assert len(found.alignment) == segment.num_target_tokens
    assert all(0 <= index < segment.num_source_tokens for index in found.alignment)


def test_alternatives_are_those_of_the_second_hop(
    runner: asyncio.Runner, hops: tuple[OnlineTranslator, OnlineTranslator]
) -> None:
    request = replace(_request(TEXT), beam_size=4, num_alternatives=3)
    [result] = runner.run(TwoHops(*hops).translate(request))
    assert result.between is not None
    assert result.between[0] is not None
    again = replace(request, texts=(result.between[0].text,), route=Route(hops=(OUT_OF,)))
    [alone] = runner.run(hops[1].translate(again))
    assert result.alternatives
    assert (result.best.text, result.alternatives) == (alone.best.text, alone.alternatives)


def test_max_length_caps_the_second_hop_alone(
    runner: asyncio.Runner, hops: tuple[OnlineTranslator, OnlineTranslator]
) -> None:
    request = replace(_request(TEXT), max_length=3)
    [result] = runner.run(TwoHops(*hops).translate(request))
    [whole] = runner.run(TwoHops(*hops).translate(_request(TEXT)))
    assert result.between == whole.between
    assert result.best.num_target_tokens <= 2
    assert result.best.is_truncated


def test_more_segments_than_may_ever_wait_are_a_413(
    runner: asyncio.Runner, hops: tuple[OnlineTranslator, OnlineTranslator]
) -> None:
    with pytest.raises(RequestError) as caught:
        runner.run(TwoHops(*hops).translate(_request(*[TEXT] * 31)))
    assert (caught.value.problem.status, caught.value.problem.limit) == (413, 30)


def test_both_hops_have_one_deadline_and_one_cancellation(
    runner: asyncio.Runner,
    hops: tuple[OnlineTranslator, OnlineTranslator],
    engine: EngineClient,
) -> None:
    async def scenario() -> None:
        late = replace(_request(*[TEXT] * 30), timeout_seconds=0.05)
        with pytest.raises(RequestError) as caught:
            await TwoHops(*hops).translate(late)
        assert caught.value.problem.status == 504
        task = asyncio.create_task(TwoHops(*hops).translate(_request(*[TEXT] * 20)))
        while engine.num_pending < 20:  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while engine.num_pending:  # noqa: ASYNC110  # draining would be for good
            await asyncio.sleep(0)

    runner.run(scenario())


def test_what_is_bulk_by_the_work_of_both_hops_is_bulk_in_both(
    runner: asyncio.Runner,
    hops: tuple[OnlineTranslator, OnlineTranslator],
    monkeypatch: pytest.MonkeyPatch,
    engine: EngineClient,
) -> None:
    classes: list[set[str]] = []
    submit = engine.submit

    def noted(jobs, **options):  # type: ignore[no-untyped-def]
        classes.append({job.priority for job in jobs})
        return submit(jobs, **options)

    monkeypatch.setattr(engine, "submit", noted)
    for texts, expected in (((TEXT,), {"interactive"}), (("The cat sees. " * 5,) * 6, {"bulk"})):
        request = replace(_request(*texts), beam_size=8, max_length=2)
        runner.run(TwoHops(*hops).translate(request))
        assert len(classes) > 1
        assert all(found == expected for found in classes)
        classes.clear()


def test_segments_are_told_as_the_whole_result_has_them(
    runner: asyncio.Runner, hops: tuple[OnlineTranslator, OnlineTranslator]
) -> None:
    texts = (f"{TEXT}  She sells {{apples}}!\n7.30\n\n{TEXT}", "", "https://example.org")
    told: list[DoneSegment] = []
    results = runner.run(TwoHops(*hops).translate(_request(*texts), told.append))
    plain = runner.run(TwoHops(*hops).translate(_request(*texts)))
    assert [result.best.text for result in results] == [result.best.text for result in plain]
    by_place = {(one.text_index, one.index): one for one in told}
    assert len(by_place) == len(told) == sum(len(result.best.segments) for result in results)
    for (place, index), one in by_place.items():
        segment = results[place].best.segments[index]
        assert (one.source, one.text) == (segment.source, segment.text)
        assert texts[place].startswith(one.source, one.start)
        assert [other.quality for other in one.segments] == [segment.quality]
    for place, result in enumerate(results):
        own = sorted((one for one in told if one.text_index == place), key=lambda one: one.index)
        assert result.best.text == "".join(one.separator + one.text for one in own)


def test_others_have_their_turn_while_what_the_first_hop_copied_is_told(
    runner: asyncio.Runner, hops: tuple[OnlineTranslator, OnlineTranslator]
) -> None:
    told: list[DoneSegment] = []
    seen: list[int] = []

    async def scenario() -> None:
        request = _request("\n".join(["7"] * 500))
        work = asyncio.create_task(TwoHops(*hops).translate(request, told.append))
        while not work.done():
            await asyncio.sleep(0)
            seen.append(len(told))

    runner.run(scenario())
    steps = [after - before for before, after in zip([0, *seen], seen, strict=False)]
    assert (len(told), max(steps)) == (500, REPORTS_PER_TURN)


def test_terms_go_through_both_hops_and_only_the_last_one_begins_as_asked(
    runner: asyncio.Runner, hops: tuple[OnlineTranslator, OnlineTranslator]
) -> None:
    glossary = Glossary([Entry(source="cat", target="Qīng")])
    asked = _request(f"{TEXT} {TEXT}", "7.30", f"- {TEXT}")
    request = replace(asked, glossary=glossary, target_prefixes=("我 的", "我", "猫"))
    first, second, third = runner.run(TwoHops(*hops).translate(request))
    # What a random network writes in between may begin with what is no language, and stays there.
    assert "我 的" in first.best.segments[0].text
    assert second.best.text == "7.30"
    assert "猫" in third.best.segments[0].text
    assert first.between is not None
    assert not any("我" in one.text for one in first.between if one is not None)
    for text, number in ((first, 2), (third, 1)):
        uses = [use for segment in text.best.segments for use in segment.terms]
        assert [(use.source, use.target, use.is_hit) for use in uses] == [
            ("cat", "Qīng", True)
        ] * number
        assert text.best.text.count("Qīng") >= number


class Copied:
    """A first hop of which the pivot's first segment is text that the second one copies."""

    def __init__(self, hop: OnlineTranslator, pivot: str) -> None:
        self._hop, self._pivot = hop, pivot

    def __getattr__(self, name: str) -> object:
        return getattr(self._hop, name)

    async def search(self, *args: Any, **values: Any) -> tuple[list[SearchedText], str]:
        [text], priority = await self._hop.search(*args, **values)
        begin, *rest = text.translation.segments
        segments = (dataclasses.replace(begin, text=self._pivot), *rest)
        translation = dataclasses.replace(text.translation, segments=segments)
        return [dataclasses.replace(text, translation=translation)], priority


@pytest.mark.parametrize("pivot", ["", "7.30", "—"])
def test_what_a_translation_begins_with_is_that_of_the_first_segment_that_both_hops_translate(
    runner: asyncio.Runner, hops: tuple[OnlineTranslator, OnlineTranslator], pivot: str
) -> None:
    asked = replace(_request(f"{TEXT} {TEXT}"), target_prefixes=("我 的",), with_alignment=False)
    first: Any = Copied(hops[0], pivot)
    [text] = runner.run(TwoHops(first, hops[1]).translate(asked))
    one, two = text.best.segments
    assert (one.text, "我 的" in two.text) == (pivot, True)


def test_only_the_last_hop_has_groups_of_beams(
    runner: asyncio.Runner, hops: tuple[OnlineTranslator, OnlineTranslator]
) -> None:
    plain = replace(_request(TEXT), beam_size=4, num_alternatives=3)
    divided = replace(plain, num_groups=4, diversity_penalty=100.0)
    (one,), (other,) = (
        runner.run(TwoHops(*hops).translate(request)) for request in (plain, divided)
    )
    assert one.between == other.between
    assert one.alternatives != other.alternatives


def test_only_the_last_hop_is_drawn(
    runner: asyncio.Runner, hops: tuple[OnlineTranslator, OnlineTranslator]
) -> None:
    drawn = [
        runner.run(
            TwoHops(*hops).translate(
                replace(_request(TEXT), sampling=Sampling(temperature=5.0, seed=seed))
            )
        )[0]
        for seed in (1, 2, 3)
    ]
    assert len({text.best.text for text in drawn}) > 1
    assert len({between.text for text in drawn for between in text.between or () if between}) == 1


class _Reader:
    """A reader that takes what is new of each sentence, as often as it is told to.

    Args:
        every: Of how many news of a sentence it takes the last one only.
    """

    def __init__(self, every: int = 1) -> None:
        self.shown: dict[tuple[int, int], str] = {}
        self.done: list[tuple[int, int]] = []
        self._every = every
        self._num_news = 0
        self._growing: dict[tuple[int, int], GrowingSentence] = {}

    def __call__(self, news: DoneSegment | GrowingSentence) -> None:
        key = (news.text_index, news.index)
        if isinstance(news, DoneSegment):
            self._take(key)
            self.done.append(key)
            return
        assert key not in self.done
        self._growing[key] = news
        self._num_news += 1
        if self._num_news % self._every == 0:
            self._take(key)

    def _take(self, key: tuple[int, int]) -> None:
        added = self._growing.pop(key).added if key in self._growing else None
        if added is not None:
            assert (added.text_index, added.index) == key
            self.shown[key] = ("" if added.is_restart else self.shown.get(key, "")) + added.text


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("max_source_length", [64, 6])
def test_what_the_second_hop_writes_is_shown_sentence_by_sentence_as_one(
    runner: asyncio.Runner, make: Make, max_source_length: int, every: int
) -> None:
    limits = LengthLimits(max_source_length=max_source_length, max_target_length=64)
    into, out_of = make(0), make(1, limits)
    asked = replace(_request(f"{TEXT} 7.30", "She sells."), beam_size=1, is_watched=True)
    asked = replace(asked, max_length=12, with_alignment=False)
    reader = _Reader(every)
    results = runner.run(TwoHops(into, out_of).translate(asked, reader))
    middle = runner.run(
        into.translate(replace(asked, route=Route(hops=(INTO,)), is_watched=False, max_length=None))
    )
    expected = {}
    for place, text in enumerate(middle):
        for index, segment in enumerate(text.best.segments):
            if not segment.is_verbatim:
                alone = _Reader()
                own = replace(asked, texts=(segment.text,), route=Route(hops=(OUT_OF,)))
                [whole] = runner.run(out_of.translate(own, alone))
                copied = {
                    (0, part): one.text
                    for part, one in enumerate(whole.best.segments)
                    if one.is_verbatim
                }
                parts = copied | alone.shown
                expected[(place, index)] = "".join(parts[key] for key in sorted(parts))
    assert reader.shown == {key: text for key, text in expected.items() if text}
    assert len(reader.done) == sum(len(result.best.segments) for result in results)
    if max_source_length == 6:
        assert any(segment.is_cut for result in results for segment in result.best.segments)


def test_what_the_second_hop_tries_again_is_not_shown_at_its_end(
    runner: asyncio.Runner, hops: tuple[OnlineTranslator, OnlineTranslator]
) -> None:
    texts = [TEXT, "The cat sees {name} and https://example.org/a.", "7.30", "She sells."]
    request = replace(_request(*texts), beam_size=1, is_watched=True)
    reader, plain = _Reader(), _Reader()
    results = runner.run(TwoHops(*hops).translate(request, reader))
    runner.run(TwoHops(*hops).translate(replace(request, is_watched=False), plain))
    assert sorted(reader.done) == sorted(plain.done)
    assert plain.shown == {}
    tries = {
        (place, index): segment.quality.num_tries
        for place, result in enumerate(results)
        for index, segment in enumerate(result.best.segments)
    }
    assert any(tries.values())
    assert not any("{name}" in text for text in reader.shown.values()), "marks come at the end"


def test_through_a_pivot_nobody_is_shown_what_he_did_not_ask_for(
    runner: asyncio.Runner, hops: tuple[OnlineTranslator, OnlineTranslator]
) -> None:
    told: list[DoneSegment | GrowingSentence] = []
    request = replace(_request(TEXT, "7.30"), beam_size=1)
    runner.run(TwoHops(*hops).translate(request, told.append))
    assert [type(news) for news in told] == [DoneSegment] * 2
