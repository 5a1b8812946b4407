import asyncio
import sqlite3
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from service.errors import RequestError
from service.glossaries.keeping import Glossaries, glossaries_of
from service.glossaries.store import GlossaryStore, NewDictionary
from service.settings import Settings

DICTIONARY = NewDictionary(languages=("en", "zh"), text="cat\t猫", kind="tsv")


def _names(glossaries: Glossaries, *new: str) -> list[str]:
    async def scenario() -> list[str]:
        async with glossaries.running():
            for name in new:
                await glossaries.ask(partial(_add, name=name))
            return [one.name for one in await glossaries.ask(lambda store: store.every(""))]

    return asyncio.run(scenario())


def _add(store: GlossaryStore, name: str) -> None:
    store.add("", name, [DICTIONARY])


def test_glossaries_are_kept_where_the_settings_say(tmp_path: Path) -> None:
    file, folder = tmp_path / "a" / "file", tmp_path / "documents"
    for settings in (
        Settings(glossaries=file, documents_folder=folder),
        Settings(documents_folder=folder),
    ):
        assert _names(glossaries_of(settings), "one") == ["one"]
        assert _names(glossaries_of(settings), "two") == ["one", "two"]
    assert file.is_file()
    assert (folder / "glossaries.sqlite3").is_file()


def test_without_a_place_they_go_with_the_server() -> None:
    assert _names(glossaries_of(Settings()), "one") == ["one"]
    assert _names(glossaries_of(Settings())) == []


def test_where_they_cannot_be_kept_the_log_says_why_and_they_are_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RequestError, match="cannot be kept on this server") as caught:
        _names(glossaries_of(Settings(glossaries=tmp_path)))
    assert caught.value.problem.status == 503
    assert [record.getMessage() for record in caplog.records] == ["glossaries_off"]


def test_a_disk_that_refuses_is_a_503(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_store: GlossaryStore) -> NoReturn:
        raise sqlite3.OperationalError("database or disk is full")

    async def scenario() -> None:
        glossaries = glossaries_of(Settings())
        async with glossaries.running():
            with pytest.raises(RequestError, match="cannot be kept") as caught:
                await glossaries.ask(refuse)
            assert caught.value.problem.status == 503

    asyncio.run(scenario())
    assert [record.getMessage() for record in caplog.records] == ["glossary_not_kept"]
