"""When keys files are read again, and what becomes of the keys there were."""

import asyncio
import logging
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from model.errors import ConfigError
from service.access.key_store import KeySources, KeysResult, KeyStore
from service.access.keys import ApiKey

Change = Callable[[Path], None]


def _secret(name: str) -> str:
    return f"{name}-{'k' * 40}"


def _lines(*names: str, admin: bool = False) -> str:
    keys = [
        ApiKey(name=name, sha256=sha256(_secret(name).encode()).digest(), is_admin=admin)
        for name in names
    ]
    return "".join(f"{key.line()}\n" for key in keys)


def _names(store: KeyStore) -> list[str]:
    return sorted(key.name for key in store.ring.keys)


def _refresh_until_at_rest(store: KeyStore) -> None:
    store.refresh()
    store.refresh()


@pytest.fixture
def results() -> list[KeysResult]:
    return []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("alice", "bob"):
        (tmp_path / f"{name}.toml").write_text(_lines(name))
    return tmp_path


@pytest.fixture
def store(folder: Path, results: list[KeysResult]) -> KeyStore:
    return KeyStore(KeySources(directory=folder), on_reload=results.append)


def _replaced(folder: Path) -> None:
    """As an editor saves: another file takes the place of the one there was."""
    (folder / ".alice.toml.new").write_text(_lines("carol"))
    (folder / ".alice.toml.new").rename(folder / "alice.toml")


def _written(folder: Path) -> None:
    (folder / "alice.toml").write_text(_lines("carol"))


def _deleted(folder: Path) -> None:
    (folder / "alice.toml").unlink()
    (folder / "carol.toml").write_text(_lines("carol"))


@pytest.mark.parametrize("change", [_replaced, _written, _deleted])
def test_a_key_that_was_taken_away_goes_and_one_that_was_added_comes(
    store: KeyStore, folder: Path, results: list[KeysResult], change: Change
) -> None:
    assert store.ring.find(_secret("alice"))
    change(folder)
    _refresh_until_at_rest(store)
    assert store.ring.find(_secret("alice")) is None
    assert _names(store) == ["bob", "carol"]
    _refresh_until_at_rest(store)
    assert results == ["success"]  # what has not changed is not read again


def test_a_secret_that_kubernetes_swaps_is_seen(tmp_path: Path) -> None:
    """A volume's files are links through `..data`, which is replaced as a whole."""
    for number, name in enumerate(("alice", "bob")):
        (tmp_path / f"..{number}").mkdir()
        (tmp_path / f"..{number}" / "keys.toml").write_text(_lines(name))
    (tmp_path / "..data").symlink_to("..0")
    (tmp_path / "keys.toml").symlink_to("..data/keys.toml")
    store = KeyStore(KeySources(directory=tmp_path))
    assert _names(store) == ["alice"]
    (tmp_path / "..data_tmp").symlink_to("..1")
    (tmp_path / "..data_tmp").rename(tmp_path / "..data")
    _refresh_until_at_rest(store)
    assert _names(store) == ["bob"]


def test_a_file_that_is_being_written_is_not_read(store: KeyStore, folder: Path) -> None:
    (folder / "alice.toml").write_text("")
    store.refresh()
    (folder / "alice.toml").write_text(_lines("alice", "carol"))
    store.refresh()
    assert _names(store) == ["alice", "bob"]
    store.refresh()
    assert _names(store) == ["alice", "bob", "carol"]


def test_mistakes_change_nothing_and_are_told_once(
    store: KeyStore, folder: Path, results: list[KeysResult], caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "alice.toml").write_text("nonsense")
    for _ in range(4):
        store.refresh()
    assert _names(store) == ["alice", "bob"]
    assert results == ["failure"]
    [record] = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", "keys_refused")
    assert "alice.toml is not valid TOML" in record.__dict__["fields"]["reason"]
    (folder / "alice.toml").write_text(_lines("carol"))
    _refresh_until_at_rest(store)
    assert (_names(store), results) == (["bob", "carol"], ["failure", "success"])


def test_a_directory_that_cannot_be_read_changes_nothing_and_one_that_is_gone_withdraws_all(
    store: KeyStore, folder: Path, results: list[KeysResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", denied)
        _refresh_until_at_rest(store)
    assert (_names(store), results) == (["alice", "bob"], ["failure"])
    folder.rename(folder.with_name("elsewhere"))
    _refresh_until_at_rest(store)
    assert (_names(store), results) == ([], ["failure", "success"])
    assert store.is_guarded


@pytest.mark.parametrize("text", ["nonsense", 'alice = { sha256 = "short" }\n'])
def test_a_process_that_starts_at_a_mistake_holds_the_keys_that_another_one_has_read(
    store: KeyStore, folder: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    (folder / "alice.toml").write_text(text)
    sources = KeySources(directory=folder)
    with pytest.raises(ConfigError, match=r"alice\.toml"):
        KeyStore(sources)
    later = KeyStore(sources, held=store.held)
    assert (later.ring, later.is_guarded) == (store.ring, True)
    assert [record.getMessage() for record in caplog.records] == ["keys_refused"]
    (folder / "alice.toml").write_text(_lines("carol"))
    _refresh_until_at_rest(later)
    assert _names(later) == ["bob", "carol"]


def test_a_process_that_starts_later_has_the_keys_of_today_and_is_never_open(
    store: KeyStore, folder: Path
) -> None:
    (folder / "alice.toml").unlink()
    assert _names(KeyStore(KeySources(directory=folder), held=store.held)) == ["bob"]
    (folder / "bob.toml").unlink()
    later = KeyStore(KeySources(directory=folder), held=store.held)
    assert (_names(later), later.is_guarded) == ([], True)


def test_a_store_of_an_open_server_holds_nothing() -> None:
    store = KeyStore(KeySources())
    assert store.held is None
    assert not KeyStore(KeySources(), held=store.held).is_guarded


def test_who_came_went_and_changed_is_logged_by_name_without_any_key(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store = KeyStore(KeySources(directory=folder))
    (folder / "alice.toml").write_text(_lines("carol"))
    (folder / "bob.toml").write_text(_lines("bob", admin=True))
    store.reload()
    for file in folder.iterdir():
        file.unlink()
    store.reload()
    fields = [record.__dict__["fields"] for record in caplog.records]
    assert fields == [
        {"num_keys": 2, "added": ["carol"], "withdrawn": ["alice"], "changed": ["bob"]},
        {"num_keys": 0, "added": [], "withdrawn": ["bob", "carol"], "changed": []},
    ]
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
    shown = repr([record.__dict__ for record in caplog.records]) + repr(store)
    for name in ("alice", "bob", "carol"):
        assert _secret(name) not in shown
        assert sha256(_secret(name).encode()).hexdigest() not in shown


def test_the_watch_refreshes_again_and_again_and_survives_what_was_not_foreseen(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        has_refreshed = asyncio.Event()
        loop = asyncio.get_running_loop()
        num_refreshes = 0

        def refresh() -> None:
            nonlocal num_refreshes
            num_refreshes += 1
            if num_refreshes == 3:
                loop.call_soon_threadsafe(has_refreshed.set)
            raise OSError(5, os.strerror(5))

        monkeypatch.setattr(store, "refresh", refresh)
        watch = asyncio.create_task(store.watch(seconds=0.0))
        await has_refreshed.wait()
        watch.cancel()
        await asyncio.wait([watch])

    asyncio.run(scenario())
    assert {record.getMessage() for record in caplog.records} == {"keys_watch_failed"}


def test_without_files_nothing_is_watched() -> None:
    asyncio.run(KeyStore(KeySources(text=_lines("alice"))).watch(seconds=3600.0))
