from model.documents.kinds import KINDS, kind_of, media_type


def test_kinds_have_endings_and_media_types() -> None:
    assert kind_of("A.Letter.DOCX") == "docx"
    assert [kind_of(f"a.{ending}") for ending in ("xlf", "htm", "pot")] == ["xliff", "html", "po"]
    assert [kind_of("exe"), kind_of("a.exe")] == [None, None]
    assert all("/" in media_type(kind) and kind_of(f"a.{kind}") == kind for kind in KINDS)
