"""The offline driver: order, sharing of one session, and the same answers as alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from model.checkpoint.weights import load_checkpoint
from model.config import LengthLimits, SearchConfig
from model.errors import InputError
from model.offline.translator import Translator
from model.text.constraints.control import Control
from model.text.constraints.glossary import Entry, Glossary
from model.train.stopping import StoppedError
from support.tiny_checkpoint import EN_ZH, generated_pairs, write_tiny_checkpoint


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny")


def test_many_texts_give_what_each_gives_alone_and_in_order(directory: Path) -> None:
    texts = [source for source, _ in generated_pairs(30)]
    texts[3:3] = ["", "   \n", "12 + 30 = 42", f"{texts[0]} {texts[1]}\n\n{texts[2]}"]
    together = Translator(load_checkpoint(directory), max_rows=24)
    search = SearchConfig(beam_size=3)
    translations = together.translate(texts, EN_ZH, search)
    alone = Translator(load_checkpoint(directory), max_rows=3)
    for text, translation in zip(texts, translations, strict=True):
        (expected,) = alone.translate([text], EN_ZH, search)
        assert translation.text == expected.text
    assert [translations[i].text for i in (3, 4, 5)] == texts[3:6]


def test_each_text_is_given_once_it_is_whole_and_not_in_order(directory: Path) -> None:
    # A network that loses every number would be asked again for it.
    sources = [source for source, _ in generated_pairs(30) if "7.30" not in source]
    texts = [*sources[:12], "", " ".join(sources[:3])]
    translator = Translator(load_checkpoint(directory), max_rows=4)
    expected = [translation.text for translation in translator.translate(texts, EN_ZH)]
    finished: list[int] = []
    each = translator.translate_each(texts, EN_ZH, on_finished=finished.append)
    index, first = next(each)
    assert (index, first.text, finished) == (12, "", [])  # nothing to wait for
    found = {index: first.text}
    index, first = next(each)
    assert sum(finished) < len(texts)
    found |= {index: first.text} | {index: translation.text for index, translation in each}
    assert list(found) != sorted(found)
    assert [found[index] for index in range(len(texts))] == expected


def test_progress_counts_every_segment_that_went_to_the_network(directory: Path) -> None:
    translator = Translator(load_checkpoint(directory))
    texts = [source for source, _ in generated_pairs(10)]
    counts: list[int] = []
    translations = translator.translate(texts, EN_ZH, on_finished=counts.append)
    assert sum(counts) == sum(len(translation.segments) for translation in translations)


def test_who_may_stop_a_translation_is_asked_in_later_rounds_too(directory: Path) -> None:
    texts = ["The cat sees 7.30 rivers."]  # whose number is lost: it is tried again
    counts: list[int] = []
    (translation,) = Translator(load_checkpoint(directory)).translate(
        texts, EN_ZH, on_finished=counts.append
    )
    assert sum(counts) == len(translation.segments) == 1

    def stop(num_finished: int) -> None:
        if not num_finished:
            raise StoppedError

    with pytest.raises(StoppedError):
        Translator(load_checkpoint(directory)).translate(texts, EN_ZH, on_finished=stop)


def test_a_beam_wider_than_the_session_is_named(directory: Path) -> None:
    translator = Translator(load_checkpoint(directory), max_rows=2)
    with pytest.raises(InputError, match="beam_size is 4; this translator has 2 rows"):
        translator.translate(["A cat."], EN_ZH, SearchConfig(beam_size=4))


def test_a_long_segment_may_become_as_long_as_the_checkpoint_allows(tmp_path: Path) -> None:
    limits = LengthLimits(max_source_length=400, max_target_length=700)
    checkpoint = load_checkpoint(write_tiny_checkpoint(tmp_path / "tiny", limits=limits))
    translator = Translator(checkpoint)
    prepared = translator.pipeline.prepare("cat " * 150, EN_ZH)
    (request,) = translator.requests(prepared, EN_ZH, SearchConfig())
    assert len(request.source_ids) > 150
    assert request.search.max_length == min(700, 2 * len(request.source_ids) + 16)


def test_a_search_that_is_held_to_terms_writes_them(directory: Path) -> None:
    translator = Translator(load_checkpoint(directory), max_rows=8)
    ((source, target),) = generated_pairs(1)
    glossary = Glossary([Entry(source=source.split()[0], target=target[:2])])
    prepared = translator.pipeline.prepare(source, EN_ZH, Control(glossary=glossary))
    (segment,) = prepared.segments
    held = replace(prepared, segments=(replace(segment, is_held=True),))
    (asked,) = translator.requests(prepared, EN_ZH, SearchConfig())
    (request,) = translator.requests(held, EN_ZH, SearchConfig(beam_size=8))
    assert (asked.phrases, request.phrases) == ((), segment.phrases)
    assert len(segment.phrases) == 1
    ((best, *_),) = translator.search([request])
    assert best.num_missed == 0
    translation = translator.pipeline.finish(held, [best])
    assert target[:2] in translation.text
