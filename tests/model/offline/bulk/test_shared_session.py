"""A session that callers share: the same words, no pile behind another, and nobody left waiting."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from model.errors import CheckpointError
from model.offline.bulk.shared_session import Found, SharedSession
from model.offline.bulk.task import Method, open_network
from model.offline.translator import Translator
from model.text.drafts.segments import Translation
from support.bulk_jobs import method_of, sentences
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint


@pytest.fixture(scope="module")
def method(tmp_path_factory: pytest.TempPathFactory) -> Method:
    return method_of(
        write_tiny_checkpoint(tmp_path_factory.mktemp("shared") / "tiny", pairs=(EN_ZH,))
    )


@pytest.fixture
def session(method: Method) -> Iterator[SharedSession]:
    session = SharedSession(lambda: open_network(method), method)
    yield session
    session.close()


def _texts(found: Found) -> list[str]:
    assert all(isinstance(one, Translation) for one in found)
    return [one.text for one in found if isinstance(one, Translation)]


def test_piles_of_many_threads_are_each_what_the_translator_makes_of_them(
    session: SharedSession, method: Method
) -> None:
    texts = sentences(48)
    translator = open_network(method)
    expected = [one.text for one in translator.translate(texts, EN_ZH, method.search)]
    with ThreadPoolExecutor(8) as threads:
        found = threads.map(
            lambda start: _texts(session.translate(texts[start : start + 6]).result()),
            range(0, 48, 6),
        )
    assert [text for pile in found for text in pile] == expected


def test_a_long_pile_holds_no_short_one_back(session: SharedSession) -> None:
    order: list[str] = []
    piles = {
        "long": session.translate([" ".join(sentences(200))]),
        "short": session.translate(sentences(2)),
    }
    for name, pile in piles.items():
        pile.add_done_callback(lambda _, name=name: order.append(name))  # type: ignore[misc]
    for pile in piles.values():
        pile.result()
    assert order == ["short", "long"]


def test_an_empty_pile_is_answered_at_once(session: SharedSession) -> None:
    assert session.translate([]).result() == []


def test_what_is_handed_over_before_the_end_is_done(method: Method) -> None:
    session = SharedSession(lambda: open_network(method), method)
    pile = session.translate(sentences(8))
    session.close()
    assert len(_texts(pile.result(timeout=0))) == 8


def test_a_network_that_does_not_open_is_the_callers_error(method: Method) -> None:
    def missing() -> Translator:
        raise CheckpointError(Path("x"), "is missing")

    with pytest.raises(CheckpointError, match="x: is missing"):
        SharedSession(missing, method)


def test_whoever_waits_when_a_step_fails_is_told_and_so_is_whoever_comes_later(
    method: Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_fail = threading.Event()

    def opened() -> Translator:
        translator = open_network(method)

        def fail() -> None:
            may_fail.wait()
            raise ZeroDivisionError

        monkeypatch.setattr(translator.session, "step", fail)
        return translator

    session = SharedSession(opened, method)
    piles = [session.translate(sentences(2)) for _ in range(3)]
    cancelled: Future[Found] = session.translate(sentences(2))
    was_cancelled = cancelled.cancel()
    may_fail.set()
    for pile in [*piles, session.translate(sentences(2))]:
        with pytest.raises(ZeroDivisionError):
            pile.result()
    assert was_cancelled == cancelled.cancelled()
    session.close()
