"""What a reader is told of sentences that are written; its oracle puts the pieces together."""

import random
import re
from collections.abc import Sequence

import pytest

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.text.pipeline import TextPipeline
from service.models.requests.translation import AddedText, GrowingSentence
from service.models.translating.writing import WrittenSentences
from support.tiny_checkpoint import write_tiny_checkpoint

_BREAKS = re.compile("[\\t\\n\\v\\f\\r\\x1c-\\x1e\\x85\\u2028\\u2029]+")
PLACES = [(0, 0), (0, 2), (3, 1)]


class Reader:
    """A reader that shows what it is told, and knows what it has shown before."""

    def __init__(self) -> None:
        self.shown: dict[tuple[int, int], str] = {}
        self.news: list[AddedText] = []

    def __call__(self, grown: GrowingSentence) -> None:
        news = grown.added
        if news is None:
            return
        self.news.append(news)
        before = "" if news.is_restart else self.shown.get((news.text_index, news.index), "")
        self.shown[(news.text_index, news.index)] = before + news.text

    @property
    def num_restarts(self) -> int:
        return sum(news.is_restart for news in self.news)


def _letters(token_ids: Sequence[int], *, is_whole: bool) -> str:
    """Raw text of letters, of which the last stays once another one follows."""
    text = "".join(map(chr, token_ids))
    return text if is_whole else text[:-1]


def _ids(text: str) -> tuple[int, ...]:
    return tuple(map(ord, text))


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def written(reader: Reader) -> WrittenSentences:
    return WrittenSentences(_letters, PLACES, reader)


def test_sentences_grow_where_they_stand_and_end_whole(
    written: WrittenSentences, reader: Reader
) -> None:
    written.add(0, 0, _ids("a"))
    assert reader.news == []
    written.add(2, 0, _ids("xyz"))
    written.add(0, 1, _ids("b"))
    written.add(0, 2, _ids("cd"))
    assert reader.shown == {(3, 1): "xy", (0, 0): "abc"}
    written.end(0, _ids("abcde"))
    written.end(2, _ids("xyz"))
    written.end(1, _ids("at once"))
    assert reader.shown == {(3, 1): "xyz", (0, 0): "abcde", (0, 2): "at once"}
    assert [news.text for news in reader.news] == ["xy", "a", "bc", "de", "z", "at once"]
    assert reader.num_restarts == 0


def test_what_begins_anew_is_withdrawn_once(written: WrittenSentences, reader: Reader) -> None:
    written.add(0, 0, _ids("abc"))
    written.add(0, 0, _ids("a"))
    assert reader.shown == {(0, 0): ""}
    written.add(0, 1, _ids("xyz"))
    written.end(0, _ids("axyz"))
    assert reader.shown == {(0, 0): "axyz"}
    assert reader.num_restarts == 1


def test_of_what_was_never_shown_nothing_is_withdrawn(
    written: WrittenSentences, reader: Reader
) -> None:
    written.withdraw(0)
    written.add(0, 0, _ids("a"))
    written.add(0, 0, _ids("a"))
    written.withdraw(0)
    assert reader.news == []


def test_a_result_that_goes_on_otherwise_than_was_told_replaces_it(
    written: WrittenSentences, reader: Reader
) -> None:
    written.add(1, 0, _ids("one way."))
    written.end(1, _ids("another way."))
    assert reader.shown == {(0, 2): "another way."}
    assert reader.num_restarts == 1


def test_a_text_that_shrinks_for_a_while_takes_nothing_back(reader: Reader) -> None:
    texts = iter(["ab", "a", "abc"])

    def shrinking(_: Sequence[int], *, is_whole: bool) -> str:
        return next(texts)

    written = WrittenSentences(shrinking, PLACES, reader)
    for start in range(3):
        written.add(0, start, (7,))
    assert [news.text for news in reader.news] == ["ab", "c"]


def test_what_is_taken_late_is_all_that_came_and_is_put_together_once() -> None:
    calls = 0

    def counted(token_ids: Sequence[int], *, is_whole: bool) -> str:
        nonlocal calls
        calls += 1
        return _letters(token_ids, is_whole=is_whole)

    grown: list[GrowingSentence] = []
    written = WrittenSentences(counted, PLACES, grown.append)
    for place, letter in enumerate("abcdef"):
        written.add(0, place, _ids(letter))
    assert calls == 0
    assert grown[0].added == AddedText(text_index=0, index=0, text="abcde")
    assert calls == 1
    assert grown[0].added is None
    written.add(0, 0, _ids("xyz"))
    written.end(0, _ids("xyz"))
    assert grown[-1].added == AddedText(text_index=0, index=0, text="xyz", is_restart=True)
    written.withdraw(0)
    written.withdraw(0)
    assert grown[-1].added == AddedText(text_index=0, index=0, text="", is_restart=True)
    assert grown[-1].added is None


def test_any_tokens_of_a_real_vocabulary_are_shown_as_their_raw_text(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = write_tiny_checkpoint(tmp_path_factory.mktemp("writing") / "tiny")
    manifest = read_manifest(path)
    tokenizer = load_tokenizer(path, manifest)
    pipeline = TextPipeline(tokenizer, manifest.limits)
    rng = random.Random(3)
    num_unreadable = 0
    for _ in range(300):
        reader = Reader()
        written = WrittenSentences(pipeline.raw_text, [(0, 0)], reader)
        ids = [rng.randrange(3, 600) for _ in range(rng.randint(1, 20))]
        *fox, _ = tokenizer.encode_target("🦊 é")
        ids[len(ids) // 2 : len(ids) // 2] = fox
        for place, token in enumerate(ids):
            written.add(0, place, (token,))
        written.end(0, ids)
        raw = tokenizer.decode(ids)
        assert reader.shown.get((0, 0), "") == _BREAKS.sub(" ", raw.split("\ufffd")[0])
        assert not any("\ufffd" in news.text for news in reader.news)
        assert reader.num_restarts == 0
        num_unreadable += "\ufffd" in raw
    assert 0 < num_unreadable < 300
