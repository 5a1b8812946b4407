"""Pages and XML of a request: read into the texts that are translated, and put together again.

Owns that the texts of all pages are translated as one request, which text belongs to which page,
and what a page's translation is made of. Both are done off the event loop, in time linear in the
page. What of a page is text, and how tags come back, is `model.documents`.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from model.documents.markup.html import html_template
from model.documents.markup.xml import xml_template
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import Template
from model.errors import DocumentError
from model.text.drafts.segments import TranslatedSegment, Translation
from model.text.marks.inline_codes import without_codes
from model.text.pipeline import hypotheses_at
from service.errors import invalid_markup, too_long
from service.models.requests.text_work import TextWork
from service.models.requests.translation import Markup, TranslatedText
from service.priority import Priority
from service.settings import Settings

T = TypeVar("T")
U = TypeVar("U")

_LIMITS = DocumentLimits(max_depth=500)
_SAMPLE_CHARACTERS = 1_000
_LARGE = 16_000  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page that was read.

    Attributes:
        template: What stays of it, with places for its texts.
        sample: The beginning of what it says, for the detection of its language.
        num_characters: What it says, in characters.
        size: Its characters, tags included.
    """

    template: Template
    sample: str
    num_characters: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The pages of a request.

    Attributes:
        pages: In order.
    """

    pages: tuple[Page, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of all pages, page after page."""
        return tuple(text for page in self.pages for text in page.template.texts)

    @property
    def samples(self) -> tuple[str, ...]:
        """The beginning of what each page says."""
        return tuple(page.sample for page in self.pages)

    def of_texts(self, values: Sequence[T]) -> list[T]:
        """For every text what belongs to its page.

        Args:
            values: One a page.
        """
        pairs = zip(self.pages, values, strict=True)
        return [value for page, value in pairs for _ in page.template.texts]


class PageWork:
    """Reading and writing of pages, on a thread.

    Args:
        thread: Where that is done.
        large_thread: Where it is done with large pages, so that no text waits behind them.
        settings: Of the server: the most that one page may say.
    """

    def __init__(self, thread: Executor, large_thread: Executor, settings: Settings) -> None:
        self._work = TextWork(thread, asyncio.Semaphore(1))
        self._large_work = TextWork(large_thread, asyncio.Semaphore(1))
        self._max_characters = settings.max_text_characters

    async def read(self, texts: Sequence[str], markup: Markup, priority: Priority) -> Pages:
        """The pages that texts are.

        Args:
            texts: Of a request.
            markup: Their notation.
            priority: The class of the request.

        Raises:
            RequestError: A 400: XML that is not well-formed, or elements nested too deeply; a 413:
                a page says too much.
        """

        def read(text: str) -> Page:
            return _page(text, markup, max_characters=self._max_characters)

        return Pages(pages=tuple(await self._each(read, texts, list(map(len, texts)), priority)))

    async def joined(
        self, pages: Pages, results: Sequence[TranslatedText], priority: Priority
    ) -> list[TranslatedText]:
        """One result a page, of those of its texts.

        Args:
            pages: Of the request.
            results: One for each of `pages.texts`, in order.
            priority: The class of the request.
        """
        remaining = iter(results)
        parts = [(page, tuple(islice(remaining, len(page.template.texts)))) for page in pages.pages]
        sizes = [page.size for page in pages.pages]
        return await self._each(lambda part: _joined(*part), parts, sizes, priority)

    async def _each(
        self,
        function: Callable[[T], U],
        items: Sequence[T],
        sizes: Sequence[int],
        priority: Priority,
    ) -> list[U]:
        work = self._large_work if max(sizes, default=0) > _LARGE else self._work
        return [done async for done in work.map(function, items, sizes, priority)]


def _page(text: str, markup: Markup, *, max_characters: int) -> Page:
    try:
        read = html_template if markup.kind == "html" else xml_template
        template = read(text, markup.options, _LIMITS)
    except DocumentError as error:
        raise invalid_markup(markup.kind, error.problem) from None
    says = [without_codes(one) for one in template.texts]
    num_characters = sum(map(len, says))
    if num_characters > max_characters:
        raise too_long(
            f"a text has {num_characters} characters without its tags;"
            f" the limit is {max_characters}",
            value=num_characters,
            limit=max_characters,
        )
    sample = "\n".join(islice(says, _SAMPLE_CHARACTERS))[:_SAMPLE_CHARACTERS]
    return Page(template=template, sample=sample, num_characters=num_characters, size=len(text))


def _joined(page: Page, results: Sequence[TranslatedText]) -> TranslatedText:
    """The translation of a page; its facts are those of its texts, one after another."""
    template = page.template
    num_alternatives = max((len(result.alternatives) for result in results), default=0)
    best = template.rebuilt([result.best.text for result in results])
    ranked = [(result.best.text, *result.alternatives) for result in results]
    others = [
        template.rebuilt(hypotheses_at(ranked, rank)) for rank in range(1, num_alternatives + 1)
    ]
    has_between = any(result.between is not None for result in results)
    return TranslatedText(
        best=Translation(text=best, segments=tuple(_segments(template, results))),
        alternatives=tuple(dict.fromkeys(other for other in others if other != best)),
        hypotheses=tuple(one for result in results for one in result.hypotheses),
        between=tuple(
            one for result in results for one in result.between or (None,) * len(result.hypotheses)
        )
        if has_between
        else None,
        num_characters=page.num_characters,
    )


def _segments(template: Template, results: Sequence[TranslatedText]) -> Iterator[TranslatedSegment]:
    """The segments of a page, in its notation."""
    slots = template.slots
    translations = [result.best.text for result in results]
    for index, result in enumerate(results):
        slot = slots[index]
        for segment in result.best.segments:
            yield replace(
                segment,
                source=template.written(slot, segment.source, template.texts),
                text=template.written(slot, segment.text, translations),
            )
