"""What documents say of their language, before and after a translation."""

import pytest

from model.documents.formats import open_document
from support.made_documents import archive, epub, members_of

PO = 'msgid ""\nmsgstr ""\n"Language:{}\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
MESSAGE = '\nmsgid "Cat"\nmsgstr "{}"\n'
OLD = (
    '<xliff version="1.2"><file original="a" source-language="en"{}><body>'
    '<trans-unit id="1"><source>Cat</source>{}</trans-unit></body></file></xliff>'
)
NEW = (
    '<xliff version="2.0" srcLang="en"{}><file id="f"><unit id="1"><segment>'
    "<source>Cat</source>{}</segment></unit></file></xliff>"
)
TARGET = "<target>CAT</target>"


def translated(data: str, kind: str, language: str | None) -> str:
    document = open_document(data.encode(), kind)
    return document.rebuild([text.upper() for text in document.texts], language).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<html lang="en">', '<html lang="de">'),
        ("<HTML class=x LANG=en-US id=y>", "<HTML class=x LANG=de id=y>"),
        ("<html lang=\"en\" xml:lang='en'>", "<html lang=\"de\" xml:lang='de'>"),
        ('<html lang="">', '<html lang="de">'),
        ('<html lang="de-AT">', '<html lang="de-AT">'),
        ("<html>", "<html>"),
        ('<html translate="no" lang="en">', '<html translate="no" lang="en">'),
        ('<p lang="en">', '<p lang="en">'),
    ],
)
def test_a_page_says_the_language_that_it_is_in_now(before: str, after: str) -> None:
    has_text = "translate" not in before
    found = translated(f"<!doctype html>{before}<p>Cat</p>", "html", "de")
    assert found == f"<!doctype html>{after}<p>{'CAT' if has_text else 'Cat'}</p>"


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("xliff", OLD.format("", ""), OLD.format(' target-language="de"', TARGET)),
        ("xliff", NEW.format("", ""), NEW.format(' trgLang="de"', TARGET)),
        *(
            ("xliff", form.format(f' {name}="fr"', ""), form.format(f' {name}="fr"', TARGET))
            for form, name in ((OLD, "target-language"), (NEW, "trgLang"))
        ),
        ("po", PO.format(" ") + MESSAGE.format(""), PO.format(" de") + MESSAGE.format("CAT")),
        ("po", PO.format("") + MESSAGE.format(""), PO.format(" de") + MESSAGE.format("CAT")),
        ("po", PO.format(" fr") + MESSAGE.format(""), PO.format(" fr") + MESSAGE.format("CAT")),
    ],
)
def test_files_of_two_languages_say_the_second_if_they_said_none(
    kind: str, before: str, after: str
) -> None:
    assert translated(before, kind, "de") == after


@pytest.mark.parametrize(
    ("tag", "said"), [("zh-Hans", "zh_CN"), ("zh-Hant", "zh_TW"), ("pt-BR", "pt_BR"), ("de", "de")]
)
def test_catalogues_have_names_of_their_own_for_languages(tag: str, said: str) -> None:
    found = translated(PO.format("") + MESSAGE.format(""), "po", tag)
    assert f'"Language: {said}\\n"' in found


def test_a_book_and_its_pages_say_the_language_that_they_are_in_now() -> None:
    data = epub('<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en"><p>One.</p></html>')
    document = open_document(data, "epub")
    found = members_of(document.rebuild(document.texts, "zh-Hans"))
    assert "<dc:language>zh-Hans</dc:language>" in found["o/b.opf"]
    assert ' xml:lang="zh-Hans"' in found["o/p 1.xhtml"]
    several = members_of(data)
    more = "</dc:language><dc:language>fr</dc:language>"
    several["o/b.opf"] = several["o/b.opf"].replace("</dc:language>", more)
    both = open_document(archive(several), "epub")
    kept = members_of(both.rebuild([text.upper() for text in both.texts], "de"))
    assert f"<dc:language>en{more}" in kept["o/b.opf"]


@pytest.mark.parametrize(
    ("kind", "before"),
    [
        ("html", '<html lang="en"><p>Cat</p>'),
        ("xliff", OLD.format("", TARGET)),
        ("xliff", NEW.format("", TARGET)),
        ("po", PO.format("") + MESSAGE.format("chat")),
    ],
)
def test_nothing_is_said_of_a_document_that_stays_as_it_is(kind: str, before: str) -> None:
    document = open_document(before.encode(), kind)
    assert document.rebuild(document.texts).decode() == before
    if not document.texts:
        assert document.rebuild([], "de").decode() == before
