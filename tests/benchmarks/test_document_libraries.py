import pytest

from benchmarks.document_libraries.__main__ import compared, in_capitals
from benchmarks.document_libraries.files import File, files
from benchmarks.document_libraries.losses import Losses, losses
from benchmarks.document_libraries.reach import reach
from benchmarks.document_libraries.reading import NOTATIONS, reading
from support.made_documents import archive


def test_what_is_gone_is_counted() -> None:
    before = "<a x='1' y='2'><!-- c --><b/><b/></a>"
    after = '<a y="2" x="3"><b /></a>'
    assert losses("xliff", before.encode(), after.encode()) == Losses(
        files=1, elements=1, attributes=1, comments=1, lines=1
    )
    assert losses("srt", b"one\r\ntwo\r\n", b"TWO\r\none\n") == Losses(files=1, lines=1)
    assert losses("srt", b"one", b"one") == Losses(files=1, same_bytes=1)
    assert losses("srt", b"one", None) == Losses(files=1, failed=1)


def test_members_of_archives_are_compared() -> None:
    old = archive({"a.xml": "<a><b/></a>", "b": "one", "c": "two"})
    new = archive({"a.xml": "<a></a>", "b": "three"})
    assert losses("docx", old, new) == Losses(files=1, members=1, changed_members=2, elements=1)
    assert losses("docx", old, old) == Losses(files=1, same_bytes=1)


@pytest.fixture(scope="module")
def rows(
    tmp_path_factory: pytest.TempPathFactory,
) -> list[dict[str, object]]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", "")  # no other programs
        found = list(files(tmp_path_factory.mktemp("made"), most=1))
    return compared(found)


def test_ours_loses_nothing_and_writes_what_it_read(rows: list[dict[str, object]]) -> None:
    ours = [row for row in rows if str(row["written_by"]).startswith("ours")]
    assert len(ours) == 20
    for row in ours:
        assert [row[lost] for lost in ("failed", "members", "elements", "comments")] == [0] * 4
        assert row["attributes"] == 0
        # What has no translation gets one, though it says the same.
        is_filled = row["format"] in ("po", "xliff")
        assert row["same_bytes"] == int(row["written_by"] == "ours" and not is_filled)


def test_a_text_in_capitals_is_one() -> None:
    assert in_capitals("srt", b"1\n0:0:1,0 --> 0:0:2,0\none\n").endswith(b"\nONE\n")


def test_ours_finds_the_text_in_every_place() -> None:
    found = reach()
    assert all(one["ours"] for one in found.values())
    assert found["a paragraph"]["python-docx"]


def test_where_libraries_read_catalogues_and_subtitles_otherwise() -> None:
    data = b'msgid ""\nmsgstr "x"\n\nmsgid "a\\acat"\nmsgstr "b"\n\nmsgid "c"\nmsgstr ""\n'
    found = reading([File(kind="po", maker="by hand", data=data, name="one")])
    assert found["polib"]["files"] == len(NOTATIONS["po"]) + 1
    otherwise = {one["file"]: one for one in found["polib"]["read_otherwise"]}
    assert otherwise["one"] == {
        "file": "one", "texts": 1, "ours": "a\acat", "theirs": "a\\acat"
    }  # fmt: skip
    assert otherwise["two strings on a line"]["theirs"] == "OSError"
    assert "no empty line between" not in otherwise
    assert found["srt"]["read_otherwise"][0]["theirs"] == "SRTParseError"
    assert found["webvtt-py"]["read_otherwise"] == []
