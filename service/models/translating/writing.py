"""Text of sentences while they are written: what a reader has seen of each, and what is added.

Owns which tokens there are of a sentence, which of its text may be shown, and what a reader is told
when it begins anew. Tokens become text in `model.text.pipeline`, and only when somebody takes it:
how many come until then costs nothing. Who takes it, and when, is `service.api.telling`'s. Pure but
for what it calls.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from service.models.requests.translation import AddedText, GrowingSentence

Place = tuple[int, int]
"""Which text of a request, and which sentence of it."""


class RawText(Protocol):
    """What turns tokens into text: `model.text.pipeline.TextPipeline.raw_text`."""

    def __call__(self, token_ids: Sequence[int], *, is_whole: bool) -> str:
        """The text of some tokens."""


@dataclass(slots=True)
class _Sentence:
    """A sentence that is written.

    Attributes:
        token_ids: So far.
        is_whole: No more come.
        shown: The text that was taken of it.
        is_anew: That does not count any more.
    """

    token_ids: list[int] = field(default_factory=list)
    is_whole: bool = False
    shown: str = ""
    is_anew: bool = False


class WrittenSentences:
    """Sentences of a request that the engine has, by number.

    What is taken of a sentence is its raw text from the beginning, each time what is new; where it
    begins anew, or turns out not to go on as it was shown, what was shown is withdrawn.

    Args:
        raw_text: Turns tokens into text.
        places: Of the sentences.
        on_grown: Called with each sentence of which there may be something to take.
    """

    def __init__(
        self,
        raw_text: RawText,
        places: Sequence[Place],
        on_grown: Callable[[GrowingSentence], None],
    ) -> None:
        self._raw_text = raw_text
        self._places = places
        self._on_grown = on_grown
        self._sentences: dict[int, _Sentence] = {}

    def __repr__(self) -> str:
        return f"<WrittenSentences: {len(self._sentences)} of {len(self._places)} begun>"

    def add(self, number: int, start: int, token_ids: Sequence[int]) -> None:
        """Take note of tokens of a sentence.

        Args:
            number: Which one.
            start: How many of its tokens stay.
            token_ids: Those that stand behind them.
        """
        one = self._sentences.setdefault(number, _Sentence())
        if start < len(one.token_ids):
            one.is_anew = bool(one.shown)
        one.token_ids[start:] = token_ids
        self._report(number)

    def end(self, number: int, token_ids: Sequence[int]) -> None:
        """Take note of all tokens of a sentence, whose search is over."""
        one = self._sentences.setdefault(number, _Sentence())
        one.token_ids, one.is_whole = list(token_ids), True
        self._report(number)

    def withdraw(self, number: int) -> None:
        """Take back what was shown of a sentence, if anything was; nothing more comes of it."""
        one = self._sentences.get(number)
        if one is not None:
            one.is_anew = bool(one.shown)
            one.token_ids, one.is_whole = [], True
            self._report(number)

    def _report(self, number: int) -> None:
        text_index, index = self._places[number]
        take = partial(self._take, self._sentences[number], text_index, index)
        self._on_grown(GrowingSentence(text_index=text_index, index=index, take=take))

    def _take(self, one: _Sentence, text_index: int, index: int) -> AddedText | None:
        """What a reader has not seen of a sentence; None if there is nothing."""
        text = self._raw_text(one.token_ids, is_whole=one.is_whole)
        if not (one.is_whole or one.is_anew) and one.shown.startswith(text):
            return None
        is_restart = one.is_anew or not text.startswith(one.shown)
        added = text if is_restart else text[len(one.shown) :]
        one.shown, one.is_anew = text, False
        if not (added or is_restart):
            return None
        return AddedText(text_index=text_index, index=index, text=added, is_restart=is_restart)
