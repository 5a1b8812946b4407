"""Pages of a request, with results as a translator would give them."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from model.documents.notation.document import DocumentOptions
from service.errors import RequestError
from service.models.requests.markup import Pages, PageWork
from service.models.requests.translation import Markup, TranslatedText
from service.models.translating.several_routes import unchanged
from service.settings import Settings

HTML, XML = Markup(kind="html"), Markup(kind="xml")


@pytest.fixture(scope="module")
def work() -> Iterator[PageWork]:
    with ThreadPoolExecutor(1) as thread, ThreadPoolExecutor(1) as large:
        yield PageWork(thread, large, Settings(max_text_characters=1_000))


def read(work: PageWork, *texts: str, markup: Markup = HTML) -> Pages:
    return asyncio.run(work.read(texts, markup, "interactive"))


def joined(work: PageWork, pages: Pages, results: list[TranslatedText]) -> list[TranslatedText]:
    return asyncio.run(work.joined(pages, results, "bulk"))


def test_texts_of_all_pages_are_in_one_row_and_come_back_to_their_pages(work: PageWork) -> None:
    texts = ("<p>one<p>two", "", "<b>three</b>", "7")
    pages = read(work, *texts)
    assert pages.texts == ("one", "two", "three")
    assert pages.samples == ("one\ntwo", "", "three", "")
    assert pages.of_texts("abcd") == ["a", "a", "c"]
    results = joined(work, pages, [unchanged(text.upper()) for text in pages.texts])
    assert [one.best.text for one in results] == ["<p>ONE<p>TWO", "", "<b>THREE</b>", "7"]
    assert [len(one.hypotheses) for one in results] == [2, 0, 1, 0]
    assert [one.between for one in results] == [None] * 4


def test_an_alternative_has_the_last_one_of_a_text_that_has_fewer(work: PageWork) -> None:
    pages = read(work, "<p>a<p>b")
    best = [unchanged("A"), unchanged("B")]
    results = [
        TranslatedText(best=one.best, alternatives=others, hypotheses=one.hypotheses)
        for one, others in zip(best, [("x", "y"), ("z",)], strict=True)
    ]
    (page,) = joined(work, pages, results)
    assert page.best.text == "<p>A<p>B"
    assert page.alternatives == ("<p>x<p>z", "<p>y<p>z")


def test_segments_are_in_the_notation_of_the_page(work: PageWork) -> None:
    pages = read(work, "<p>a &amp; <b title='c'>d</b> e</p>")
    attribute, text = pages.texts
    results = [unchanged(attribute.upper()), unchanged(text.upper() + "<")]
    (page,) = joined(work, pages, results)
    assert [one.text for one in page.best.segments] == ["C", "A &amp; <b title='C'>D</b> E&lt;"]
    results = [unchanged(attribute), unchanged(text)]
    (page,) = joined(work, pages, results)
    assert [one.source for one in page.best.segments] == ["c", "a &amp; <b title='c'>d</b> e"]


def test_options_reach_the_reader(work: PageWork) -> None:
    markup = Markup(kind="xml", options=DocumentOptions(has_outline=False))
    assert len(read(work, "<a>one</a><a>two</a>", markup=markup).texts) == 1
    assert read(work, "<a>one</a><a>two</a>", markup=XML).texts == ("one", "two")


@pytest.mark.parametrize(
    ("text", "markup", "status"),
    [("<a>", XML, 400), ("<a>" * 501 + "</a>" * 501, XML, 400), ("a" * 1_001, HTML, 413)],
)
def test_what_cannot_be_read_is_refused(
    work: PageWork, text: str, markup: Markup, status: int
) -> None:
    with pytest.raises(RequestError) as caught:
        read(work, text, markup=markup)
    assert caught.value.problem.status == status


@pytest.mark.parametrize(
    "bit",
    [
        "<b>",
        "</b>",
        "<b>x</b>",
        "<p>x",
        "<",
        "<!--",
        "&amp;",
        "<b title='x'>",
        "<a ",
        "<q>x <kbd>y",
    ],
)
def test_a_large_page_of_anything_comes_back_as_it_was(bit: str) -> None:
    page = bit * (30_000 // len(bit))
    with ThreadPoolExecutor(1) as thread:
        large = PageWork(thread, thread, Settings(max_text_characters=1_000_000))
        pages = read(large, page)
        (result,) = joined(large, pages, [unchanged(text) for text in pages.texts])
    assert result.best.text == page
