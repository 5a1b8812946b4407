import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

from model.errors import ConfigError
from service.documents.store import JobStore
from support.document_jobs import job


def test_jobs_come_back_as_they_were_the_oldest_first(tmp_path: Path) -> None:
    jobs = [job("b", created=2.0, state="done", num_flagged=3), job("a", created=1.0)]
    with JobStore(tmp_path / "new" / "folder") as store:
        for one in jobs:
            store.make_folder(one.id)
            store.save(one)
        store.save(jobs[0])
    with JobStore(tmp_path / "new" / "folder") as store:
        assert store.load() == jobs[::-1]
        store.remove("a")
        assert [one.id for one in store.load()] == ["b"]
        assert not store.files("a").folder.exists()


def test_what_has_no_other_half_is_removed(tmp_path: Path) -> None:
    with JobStore(tmp_path) as store:
        stray = store.make_folder("0" * 32).folder
        store.save(job("lost"))
        assert store.load() == []
        assert not stray.exists()


def test_a_folder_that_is_not_ours_stays(tmp_path: Path) -> None:
    others = tmp_path / "models"
    others.mkdir()
    with JobStore(tmp_path) as store:
        store.load()
    assert others.is_dir()


def test_nobody_else_may_read_the_files(tmp_path: Path) -> None:
    with JobStore(tmp_path / "jobs") as store:
        folder = store.make_folder("a").folder
        assert folder.stat().st_mode & 0o077 == 0
        assert folder.parent.stat().st_mode & 0o077 == 0


def test_a_folder_belongs_to_one_server(tmp_path: Path) -> None:
    with JobStore(tmp_path), pytest.raises(ConfigError, match="another server uses it"):
        JobStore(tmp_path)
    JobStore(tmp_path).close()


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"cannot be kept in .*file"):
        JobStore(tmp_path / "file")
    (tmp_path / "jobs.sqlite3").write_bytes(b"no database at all" * 100)
    with pytest.raises(ConfigError, match="file is not a database"):
        JobStore(tmp_path)


def test_a_folder_without_a_name_goes_with_the_server() -> None:
    store = JobStore(None)
    store.make_folder("a")
    assert store.folder.is_dir()
    store.close()
    assert not store.folder.exists()


def test_a_database_of_another_version_is_begun_anew(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "jobs.sqlite3") as database:
        database.execute("CREATE TABLE jobs (other TEXT)")
        database.execute("PRAGMA user_version = 99")
    with JobStore(tmp_path) as store:
        store.make_folder("a")
        store.save(job("a"))
        assert [one.id for one in store.load()] == ["a"]


@pytest.mark.parametrize("rest", [b"", b'"thr', b'"three"'])
def test_translations_that_were_written_whole_are_counted(tmp_path: Path, rest: bytes) -> None:
    with JobStore(tmp_path) as store:
        files = store.make_folder("a")
        assert files.count_translations() == 0
        files.add_translations(["one\n", "zwölf 猫 \u2028"])
        with files.translations.open("ab") as lines:
            lines.write(rest)
        assert files.count_translations() == 2
        files.add_translations(["four"])
        assert files.count_translations() == 3
        assert files.translations.read_bytes().endswith(b'"four"\n')


def test_temporary_folders_of_servers_that_were_killed_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed = tmp_path / "dragoman-documents-killed"
    with JobStore(None) as running:
        shutil.copytree(running.folder, killed)
        begins = tmp_path / "dragoman-documents-begins"
        begins.mkdir()
        (begins / "lock").touch()
        link = tmp_path / "dragoman-documents-link"
        link.symlink_to(begins)
        named = tmp_path / "named"
        shutil.copytree(killed, named)
        with JobStore(None):
            assert not killed.exists()
            assert all(path.exists() for path in (running.folder, begins, link, named))
