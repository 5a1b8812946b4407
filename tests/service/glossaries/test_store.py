import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from model.errors import ConfigError
from service.access.access import Caller
from service.api.receiving import owner_of
from service.errors import RequestError
from service.glossaries.entries import MAX_ENTRIES, Languages
from service.glossaries.store import DictionaryInfo, GlossaryLimits, GlossaryStore, NewDictionary

EN_ZH, EN_DE = ("en", "zh"), ("en", "de")


def _dictionary(text: str = "cat\t猫", languages: Languages = EN_ZH) -> NewDictionary:
    return NewDictionary(languages=languages, text=text, kind="tsv")


def _info(languages: Languages, num_entries: int) -> DictionaryInfo:
    return DictionaryInfo(languages=languages, num_entries=num_entries)


def test_glossaries_come_back_after_a_restart_the_oldest_first(tmp_path: Path) -> None:
    path, times = tmp_path / "new" / "file", iter([2.0, 1.0])
    with GlossaryStore(path, now=lambda: next(times)) as store:
        second = store.add("a", "second", [_dictionary()])
        first = store.add("a", "first", [_dictionary("dog\tHund", EN_DE), _dictionary()])
    assert path.stat().st_mode & 0o077 == 0
    with GlossaryStore(path) as store:
        assert store.every("a") == [first, second]
        assert first.dictionaries == (_info(EN_DE, 1), _info(EN_ZH, 1))
        assert store.entries("a", first.id, EN_DE) == {"dog": "Hund"}
        store.remove("a", first.id)
        assert store.every("a") == [second]


def test_nobody_sees_or_changes_what_is_anothers() -> None:
    with GlossaryStore(None) as store:
        info = store.add("a", "mine", [_dictionary()])
        assert store.every("b") == []
        for attempt in (
            lambda: store.find("b", info.id),
            lambda: store.entries("b", info.id, EN_ZH),
            lambda: store.glossary("b", [info.id], EN_ZH),
            lambda: store.change("b", info.id, name="x"),
            lambda: store.change("b", info.id, added=[_dictionary("dog\t狗")]),
            lambda: store.replace("b", info.id, _dictionary("dog\t狗")),
            lambda: store.remove("b", info.id),
            lambda: store.remove_dictionary("b", info.id, EN_ZH),
        ):
            with pytest.raises(RequestError, match="there is no such glossary") as caught:
                attempt()
            assert caught.value.problem.status == 404
        assert store.every("a") == [info]


def test_entries_are_added_replaced_and_forgotten() -> None:
    with GlossaryStore(None) as store:
        made = store.add("a", "one", [_dictionary("cat\t猫\ndog\t狗")])
        more = [_dictionary("cat\t小猫\nfish\t鱼"), _dictionary("dog\tHund", EN_DE)]
        changed = store.change("a", made.id, name="two", added=more)
        assert (changed.name, changed.created) == ("two", made.created)
        assert changed.dictionaries == (_info(EN_DE, 1), _info(EN_ZH, 3))
        assert store.entries("a", made.id, EN_ZH) == {"cat": "小猫", "dog": "狗", "fish": "鱼"}
        assert store.replace("a", made.id, _dictionary("hen\t鸡")) == _info(EN_ZH, 1)
        assert store.entries("a", made.id, EN_ZH) == {"hen": "鸡"}
        store.remove_dictionary("a", made.id, EN_ZH)
        assert store.find("a", made.id).dictionaries == (_info(EN_DE, 1),)
        with pytest.raises(RequestError, match="no dictionary from en to zh"):
            store.remove_dictionary("a", made.id, EN_ZH)


def test_of_several_glossaries_the_first_one_counts() -> None:
    with GlossaryStore(None) as store:
        texts = ("cat\t一", "cat\t二\ndog\t三")
        ids = [store.add("a", "x", [_dictionary(text)]).id for text in texts]
        found = store.glossary("a", ids, EN_ZH)
        assert {one.source: one.target for one in found.entries} == {"cat": "一", "dog": "三"}
        with pytest.raises(RequestError, match="no dictionary from en to de"):
            store.glossary("a", ids, EN_DE)
        for number in range(2):
            lines = [f"term {number} {line}\tx" for line in range(MAX_ENTRIES)]
            ids.append(store.add("a", "x", [_dictionary("\n".join(lines))]).id)
        with pytest.raises(RequestError, match=f"limit is {MAX_ENTRIES}"):
            store.glossary("a", ids, EN_ZH)
        with pytest.raises(RequestError, match=f"limit is {MAX_ENTRIES}"):
            store.change("a", ids[-1], added=[_dictionary()])


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (GlossaryLimits(max_glossaries=1), "2 glossaries; the limit is 1"),
        (GlossaryLimits(max_owner_bytes=10), "14 bytes of your entries; the limit is 10"),
        (GlossaryLimits(max_bytes=10), "14 bytes of everybody's entries; the limit is 10"),
    ],
)
def test_what_is_too_much_is_refused_and_leaves_nothing(limits: GlossaryLimits, words: str) -> None:
    with GlossaryStore(None, limits) as store:
        kept = store.add("a", "one", [_dictionary()])
        with pytest.raises(RequestError, match=words) as caught:
            store.add("a", "two", [_dictionary()])
        assert caught.value.problem.status == 400
        assert store.every("a") == [kept]
        store.change("a", kept.id, name="other")


def test_a_glossary_has_a_limit_of_dictionaries() -> None:
    with GlossaryStore(None, GlossaryLimits(max_dictionaries=1)) as store:
        made = store.add("a", "one", [_dictionary()])
        for attempt in (
            lambda: store.replace("a", made.id, _dictionary("dog\tHund", EN_DE)),
            lambda: store.change("a", made.id, name="x", added=[_dictionary(languages=EN_DE)]),
        ):
            with pytest.raises(RequestError, match="2 dictionaries of the glossary"):
                attempt()
        assert store.every("a") == [made]


def test_a_file_that_is_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"no database at all" * 100, None):
        if content is None:
            path.unlink()
            with sqlite3.connect(path) as database:
                database.execute("CREATE TABLE other (one TEXT)")
            database.close()
        else:
            path.write_bytes(content)
        before = path.read_bytes()
        with pytest.raises(ConfigError, match=r"glossaries cannot be kept in .*file"):
            GlossaryStore(path)
        assert path.read_bytes() == before
    with pytest.raises(ConfigError, match="cannot be kept"):
        GlossaryStore(tmp_path)


def test_two_servers_of_a_machine_may_have_one_file(tmp_path: Path) -> None:
    with GlossaryStore(tmp_path / "file") as one, GlossaryStore(tmp_path / "file") as other:
        made = one.add("a", "x", [_dictionary()])
        assert other.every("a") == [made]
        other.remove("a", made.id)
        assert one.every("a") == []


def test_what_a_withdrawn_name_has_kept_is_deleted_as_the_page_says(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "security.md").read_text()
    command = re.search(r'`sqlite3 FILE "(.+)"`', page)
    assert command is not None
    bob, alice = (
        owner_of(
            Caller(
                identity=f"key:{name}",
                requests_per_minute=None,
                characters_per_minute=None,
                has_key=True,
            )
        ).key_name
        for name in ("bob", "alice")
    )
    path = tmp_path / "file"
    with GlossaryStore(path) as store:
        for owner in (bob, alice):
            store.add(owner, "mine", [_dictionary()])
        with closing(sqlite3.connect(path)) as beside:
            beside.executescript(command[1])
            [num_dictionaries] = beside.execute("SELECT COUNT(*) FROM dictionaries").fetchone()
        assert (len(store.every(bob)), len(store.every(alice)), num_dictionaries) == (0, 1, 1)
