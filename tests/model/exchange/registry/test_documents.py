"""Documents that are kept, and what is done without a registry."""

import pytest

from model.errors import RegistryError, UnreachableError
from model.exchange.registry import documents as module
from model.exchange.registry.cache import Cache
from support.registry_mirror import Fault, Mirror, Waits, quick_documents

PATH = "/index.json"


@pytest.fixture
def url(mirror: Mirror) -> str:
    mirror.put_json(PATH, {"a": 1})
    return mirror.url + PATH


def test_a_document_that_has_not_changed_is_not_sent_again(
    mirror: Mirror, cache: Cache, waits: Waits, url: str
) -> None:
    for _ in range(2):
        assert quick_documents(cache, waits).get(url) == {"a": 1}
    assert mirror.bodies_of(PATH) == [8, 0]
    mirror.put_json(PATH, {"a": 2})
    assert quick_documents(cache, waits).get(url) == {"a": 2}
    assert mirror.bodies_of(PATH) == [8, 0, 8]


@pytest.mark.parametrize("tag", [b"\xff\xfe", b'"1"\n', b'"1"\r\n', b'"\x00"', b""])
def test_a_damaged_validator_is_not_sent(
    mirror: Mirror, cache: Cache, waits: Waits, url: str, tag: bytes
) -> None:
    quick_documents(cache, waits).get(url)
    cache.document(url).with_suffix(".etag").write_bytes(tag)
    for _ in range(2):
        assert quick_documents(cache, waits).get(url) == {"a": 1}
    assert mirror.bodies_of(PATH) == [8, 8, 0]


def test_without_the_registry_the_kept_document_stands_in_and_it_is_said(
    mirror: Mirror, cache: Cache, waits: Waits, url: str
) -> None:
    quick_documents(cache, waits).get(url)
    mirror.always[PATH] = Fault(status=503)
    documents = quick_documents(cache, waits)
    assert documents.get(url) == {"a": 1}
    assert len(documents.stale) == 1
    assert "status 503" in documents.stale[0]


def test_without_both_it_is_unreachable(
    mirror: Mirror, cache: Cache, waits: Waits, url: str
) -> None:
    mirror.always[PATH] = Fault(status=503)
    with pytest.raises(UnreachableError, match="status 503"):
        quick_documents(cache, waits).get(url)
    assert waits.waited == [1.0, 2.0, 4.0, 8.0]


def test_a_document_that_is_gone_is_not_replaced_by_the_kept_one(
    mirror: Mirror, cache: Cache, waits: Waits, url: str
) -> None:
    quick_documents(cache, waits).get(url)
    del mirror.files[PATH]
    with pytest.raises(RegistryError, match="is not there"):
        quick_documents(cache, waits).get(url)


def test_what_broke_off_is_asked_for_again(
    mirror: Mirror, cache: Cache, waits: Waits, url: str
) -> None:
    mirror.faults[PATH] = [Fault(cut_after=3)]
    assert quick_documents(cache, waits).get(url) == {"a": 1}


def test_an_endless_document_is_cut(
    mirror: Mirror, cache: Cache, waits: Waits, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_DOCUMENT_BYTES", 100_000)
    mirror.always[PATH] = Fault(is_endless=True)
    with pytest.raises(RegistryError, match="has more than 100000 bytes"):
        quick_documents(cache, waits).get(url)


def test_what_is_no_json_is_not_kept(mirror: Mirror, cache: Cache, waits: Waits, url: str) -> None:
    mirror.files[PATH] = b"<html>"
    for _ in range(2):
        with pytest.raises(RegistryError, match="not readable JSON"):
            quick_documents(cache, waits).get(url)
    assert mirror.bodies_of(PATH) == [6, 6]


def test_a_registry_that_sends_next_to_nothing_does_not_answer(
    mirror: Mirror, cache: Cache, waits: Waits
) -> None:
    mirror.put_json(PATH, ["a" * 9] * 1000)
    waits.seconds_a_look = 61.0
    with pytest.raises(UnreachableError, match=r"sent [0-9]+ bytes in 61 seconds"):
        quick_documents(cache, waits).get(mirror.url + PATH)
