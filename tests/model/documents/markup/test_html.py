import os
import random
import re
from html.parser import HTMLParser
from pathlib import Path

import lxml.html
import pytest

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.documents.formats import open_document
from model.documents.markup.html import html_template
from model.documents.markup.html_events import Event, page_events
from model.documents.notation.document import DocumentOptions
from model.documents.notation.limits import DocumentLimits
from model.errors import DocumentError, InputError
from model.text.marks.inline_codes import class_of, without_codes
from model.text.pipeline import TextPipeline
from support.fake_translations import translated_badly
from support.markup_trees import outline_of, tree_of
from support.random_pages import random_page
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

NUM_FRAGMENTS = int(os.environ.get("NUM_FRAGMENTS", "150"))
"""Of each kind; `make test-documents` has 10,000 in all."""


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> TextPipeline:
    folder = write_tiny_checkpoint(tmp_path_factory.mktemp("html") / "tiny")
    manifest = read_manifest(folder)
    return TextPipeline(load_tokenizer(folder, manifest), manifest.limits)


def in_capitals(page: str, **options: frozenset[str]) -> str:
    """A page whose texts a perfect translator has put in capitals."""
    template = html_template(page, DocumentOptions(**options))
    return template.rebuilt([text.upper() for text in template.texts])


@pytest.mark.parametrize("is_broken", [False, True])
def test_any_fragment_has_the_same_tags_after_a_bad_translation(
    pipeline: TextPipeline, *, is_broken: bool
) -> None:
    chance = random.Random(23)
    num_texts = 0
    for number in range(NUM_FRAGMENTS):
        page = random_page(chance, is_broken=is_broken)
        template = html_template(page)
        num_texts += len(template.texts)
        translations = translated_badly(template.texts, pipeline, EN_ZH, number)
        rebuilt = template.rebuilt(translations)
        if is_broken:
            assert structure(rebuilt) == structure(page), page
        else:
            assert tree_of(rebuilt) == tree_of(page), page
            assert outline_of(rebuilt) == outline_of(page), page
    assert num_texts > 2 * NUM_FRAGMENTS


def structure(page: str) -> list[tuple[str, str, str]]:
    """What is no text, but for attributes that people read."""
    return sorted(
        (one.kind, one.name, "" if "title=" in one.raw or "alt=" in one.raw else notation(one))
        for one in page_events(page)
        if one.kind != "text"
    )


def notation(event: Event) -> str:
    """An event as it is written; of one that is neither text nor a tag, what could be a tag."""
    return (
        "".join(re.findall("<[A-Za-z/!?][^<>]*>?", event.raw))
        if event.kind == "other"
        else event.raw
    )


def test_events_are_the_whole_page() -> None:
    chance = random.Random(5)
    for _ in range(300):
        page = random_page(chance, is_broken=True)
        assert "".join(event.raw for event in page_events(page)) == page


def test_a_page_whose_texts_come_back_is_the_same_byte_for_byte() -> None:
    chance = random.Random(7)
    for _ in range(300):
        page = random_page(chance, is_broken=True)
        template = html_template(page)
        assert template.rebuilt(template.texts) == page


def test_text_never_becomes_markup() -> None:
    template = html_template("<p>one</p><p title='two'>three</p><img alt=four>")
    evil = "</p><script>alert(1)</script> & \" ' > x=y"
    rebuilt = template.rebuilt([evil] * 4)
    root = lxml.html.fragment_fromstring(rebuilt, create_parent=True)
    assert [element.tag for element in root.iter()] == ["div", "p", "p", "img"]
    assert [root[0].text, root[1].text, root[1].get("title"), root[2].get("alt")] == [evil] * 4


def test_inline_tags_are_codes_and_blocks_are_borders() -> None:
    page = "<h1>Hello <em>big</em> world</h1><ul><li>one<li>two</ul>three<br>four"
    template = html_template(page)
    assert [without_codes(text) for text in template.texts] == [
        "Hello big world", "one", "two", "three", "four",
    ]  # fmt: skip
    assert len(template.texts[0]) == len("Hello big world") + 2


def test_tags_around_a_whole_text_are_not_in_it() -> None:
    template = html_template("<p> <a href=x><b>The cat</b></a> </p>")
    assert template.texts == ("The cat",)
    assert template.rebuilt(["Die Katze"]) == "<p> <a href=x><b>Die Katze</b></a> </p>"


@pytest.mark.parametrize(
    "page",
    [
        "<script>var a = 'the cat';</script>",
        "<style>p { color: red }</style>",
        "<!-- the cat -->",
        "<pre><code>the cat\n</code></pre>",
        "<div translate=no>the <p>cat</p> sees</div>",
        "<p class='a notranslate b'>the cat</p>",
        "<svg><text>the cat</text><![CDATA[a > b the cat]]></svg>",
        "<textarea>the <b>cat</textarea>",
        "<script>if (a<b) '</p>the cat'",
        "<!-- the cat",
        "<a title='the cat",
        "<p>1,000 &amp; 5</p>",
        "<img alt='12'>",
        "",
    ],
)
def test_what_is_not_for_translation_has_no_text(page: str) -> None:
    assert html_template(page).texts == ()


def test_code_in_a_sentence_is_one_word_of_it() -> None:
    page = "<p>Run <code>ls <i>-l</i></code> now</p>"
    template = html_template(page)
    assert len(template.texts[0]) == len("Run x now")
    assert in_capitals(page) == "<p>RUN <code>ls <i>-l</i></code> NOW</p>"


def test_untouched_text_that_is_never_closed_ends_with_its_block() -> None:
    assert in_capitals("<p>a <code>b</p><p>c</p>") == "<p>A <code>b</p><p>C</p>"


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("<ul><li translate=no>Foo<li>Bar</ul><p>Hello world.</p>", ("Bar", "Hello world.")),
        ("<ul><li>Bar<li translate=no>Foo</ul><p>Hello world.</p>", ("Bar", "Hello world.")),
        ("<p class=notranslate>A<p>B</p><p>C</p>", ("B", "C")),
        ("<p class=notranslate>A<hr/>B", ("B",)),
        ("<div><p class=notranslate>A<br>x<b>y</b></div>B", ("B",)),
        ("<p class=notranslate>A<button><p>x</p></button>y</p>B", ("B",)),
        ("<ul><li translate=no>A<ul><li>B</ul><li>C</ul>", ("C",)),
        ("<ul><li translate=no>A<ul><li>B</ul>x</li><li>C</ul>D", ("C", "D")),
        ("<ul><li translate=no>A<p>x<div>y</p>z</div><li>C</ul>", ("C",)),
        ("<dl><dt translate=no>A<dd>B<dt>C</dl>", ("B", "C")),
        ("<table><tr><td translate=no>A<td>B<tr><th>C</table>", ("B", "C")),
        ("<table><tr translate=no><td>A<td>B<tr><th>C</table>D", ("C", "D")),
        ("<table><tr><td translate=no><table><tr><td>A</table><td>B</table>", ("B",)),
        ("<select><option translate=no>A<option>B</select>", ("B",)),
        ("<div translate=no>A<div>B</div></p><p>C</p></div>D", ("D",)),
    ],
)
def test_what_is_not_translated_may_be_without_its_end_tag(
    page: str, texts: tuple[str, ...]
) -> None:
    template = html_template(page)
    assert template.texts == texts
    assert template.rebuilt(texts) == page


def test_the_caller_may_say_what_ends_a_sentence_and_what_is_inside_one() -> None:
    page = "<p>a <Q>b</Q> c</p><div>d <li>e</li></div>"
    options = DocumentOptions(
        splitting_elements=frozenset({"q"}), inline_elements=frozenset({"LI"})
    )
    texts = html_template(page, options).texts
    assert [without_codes(text) for text in texts] == ["a", "b", "c", "d e"]


def test_elements_that_the_caller_names_are_ignored() -> None:
    page = "<p>a <Q>b</Q> c</p><aside>d</aside>"
    ignored = frozenset({"q", "aside"})
    assert in_capitals(page, ignored_elements=ignored) == "<p>A <Q>b</Q> C</p><aside>d</aside>"


def test_attributes_that_people_read_are_texts() -> None:
    page = (
        "<img alt='a cat' src='a cat'><input placeholder=\"one's\" value=two>"
        "<input type=submit value=send><meta name=description content='a page'>"
        '<meta name=viewport content=width><option label="x &quot;y&quot;">z</option>'
    )
    assert in_capitals(page) == (
        "<img alt='A CAT' src='a cat'><input placeholder=\"ONE'S\" value=two>"
        "<input type=submit value=\"SEND\"><meta name=description content='A PAGE'>"
        '<meta name=viewport content=width><option label="X &quot;Y&quot;">Z</option>'
    )


def test_of_text_areas_and_frames_only_attributes_are_texts() -> None:
    page = (
        '<p>a <textarea rows=2 placeholder="the cat" title=it>x <b>y</textarea> b</p>'
        "<iframe src=x title='a map'><p>z</p></iframe><svg aria-label=c><title>d</title></svg>"
    )
    assert in_capitals(page) == (
        '<p>A <textarea rows=2 placeholder="THE CAT" title="IT">x <b>y</textarea> B</p>'
        "<iframe src=x title='A MAP'><p>z</p></iframe><svg aria-label=c><title>d</title></svg>"
    )
    in_a_sentence = "<p>a <textarea title='x'>y</textarea> b</p>"
    rebuilt = in_capitals(in_a_sentence, inline_elements=frozenset({"textarea"}))
    assert rebuilt == "<p>A <textarea title='X'>y</textarea> B</p>"


@pytest.mark.parametrize("said", ["translate=no", "class=notranslate", "class=ignored"])
def test_attributes_of_what_is_not_to_be_translated_are_no_texts(said: str) -> None:
    for name in ("textarea", "iframe", "p"):
        options = DocumentOptions(ignored_elements=frozenset({name} if "ignored" in said else ()))
        assert html_template(f"<{name} title=cat {said}>x</{name}>", options).texts == ()


def test_references_are_written_as_they_were() -> None:
    page = "<p>&copy; a&nbsp;b &lt;i&gt; caf&eacute; &#8217; &amp;amp;</p>"
    assert html_template(page).texts == ("© a\u00a0b <i> café ’ &amp;",)
    assert html_template(page).rebuilt(["x © ’ \u00a0 é ü & < >"]) == (
        "<p>x &copy; &#8217; &nbsp; &eacute; ü &amp; &lt; &gt;</p>"
    )


def test_white_space_is_folded_but_in_pre() -> None:
    assert html_template("<p>\n  one\n  two\n</p>").texts == ("one two",)
    assert html_template("<pre>one\n  two</pre>").texts == ("one\n  two",)
    assert in_capitals("<p>\n  one\n  two\n</p>") == "<p>\n  ONE TWO\n</p>"


def test_a_sentence_may_end_inside_an_element(pipeline: TextPipeline) -> None:
    (text,) = html_template("<p><b>The cat sees.</b> She <i>waits. Nobody</i> sells.</p>").texts
    segments = [segment.text for segment in pipeline.prepare(text, EN_ZH).segments]
    assert [without_codes(segment) for segment in segments] == [
        "The cat sees.", "She waits.", "Nobody sells.",
    ]  # fmt: skip


def test_codes_that_a_translator_lost_are_put_back() -> None:
    template = html_template("<p>a <b>b</b> <code>c</code> d</p>")
    assert template.rebuilt(["x y"]) == "<p>x y<b></b><code>c</code></p>"


def test_code_does_not_leave_its_element() -> None:
    template = html_template("<p>a <b>b <code>c</code></b> d</p>")
    opening, word, closing = (c for c in template.texts[0] if ord(c) > 0xFFFF)
    moved = f"{word} x {opening}y{closing} z"
    assert template.rebuilt([moved]) == "<p> x <b><code>c</code> y</b> z</p>"


def test_an_element_at_the_edge_of_a_sentence_is_in_it() -> None:
    template = html_template("<p><b>Now</b> I see <i>it</i></p>")
    (text,) = template.texts
    (b, end_of_b), (i, end_of_i) = (
        [one for one in text if ord(one) > 0xFFFF][n : n + 2] for n in (0, 2)
    )
    assert text == f"{b}Now{end_of_b} I see {i}it{end_of_i}"
    moved = f"ich sehe {i}es{end_of_i} {b}nun{end_of_b} klar"
    assert template.rebuilt([moved]) == "<p>ich sehe <i>es</i> <b>nun</b> klar</p>"


def test_an_element_that_went_into_another_is_put_right() -> None:
    template = html_template("<p><b>a</b> c <i>d</i> e</p>")
    b, end_of_b, i, end_of_i = (one for one in template.texts[0] if ord(one) > 0xFFFF)
    rebuilt = template.rebuilt([f"x {b}y {i}z{end_of_i}{end_of_b}"])
    assert tree_of(rebuilt) == tree_of("<p><b></b><i></i></p>")


def test_tags_that_do_not_match_keep_their_order() -> None:
    template = html_template("<p>a <b>b <i>c</b> d</i> <u>e</u> f</p>")
    codes = [one for one in template.texts[0] if ord(one) > 0xFFFF]
    assert {class_of(one) for one in codes} == {"lone"}


def test_a_blank_translation_leaves_the_source() -> None:
    assert html_template("<p>a <b>b</b></p>").rebuilt([" "]) == "<p>a <b>b</b></p>"


def test_too_few_translations_are_refused() -> None:
    with pytest.raises(InputError, match="has 1 texts, not 0"):
        html_template("<p>a</p>").rebuilt([])


@pytest.mark.parametrize(
    "bit", ["<a ", "<!--", "&#", "</", "<![", "<p title='", "<", "<b></", '="']
)
def test_hostile_repetition_is_read_in_linear_time(bit: str) -> None:
    page = bit * 20_000
    assert "".join(event.raw for event in page_events(page)) == page


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "shift_jis"])
def test_a_page_is_read_and_written_in_the_encoding_that_it_declares(charset: str) -> None:
    page = (
        f"<meta charset={charset}><p>caf\u00e9</p>"
        if charset != "shift_jis"
        else ("<meta charset=shift_jis><p>猫</p>")
    )
    document = open_document(page.encode(charset), "html")
    rebuilt = document.rebuild(["猫"])
    root = lxml.html.document_fromstring(rebuilt)
    assert root.findtext(".//p") == "猫"


def test_damaged_bytes_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="is not text in utf-8"):
        open_document(b"<p>\xff</p>", "html")
    with pytest.raises(DocumentError, match="unknown encoding, 'klingon'"):
        open_document(b"<meta charset=klingon>", "html")
    with pytest.raises(DocumentError, match="has 9 bytes; at most 5 are read"):
        open_document(b"<p>abc</p"[:9], "html", limits=DocumentLimits(max_bytes=5))
    with pytest.raises(DocumentError, match="more than 1 texts"):
        open_document(b"<p>a</p><p>b</p>", "html", limits=DocumentLimits(max_texts=1))


@pytest.fixture
def as_later_parsers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's parser with what its later releases read otherwise."""
    before = HTMLParser.parse_starttag

    def parse_starttag(self: HTMLParser, i: int) -> int:
        end = before(self, i)
        if end > 0 and self.lasttag in ("textarea", "title"):
            self.set_cdata_mode(self.lasttag, escapable=True)
        return end

    def parse_html_declaration(self: HTMLParser, i: int) -> int:
        end = self.rawdata.find("]]>", i)
        if end > 0:
            self.unknown_decl(self.rawdata[i + 3 : end])
        return end + 3 if end > 0 else -1

    monkeypatch.setattr(HTMLParser, "parse_starttag", parse_starttag)
    monkeypatch.setattr(HTMLParser, "parse_html_declaration", parse_html_declaration)
    monkeypatch.setattr("html.parser.unescape", lambda value: value.replace("&quot;", '"'))


@pytest.mark.usefixtures("as_later_parsers")
@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("<title>The report</title><p>Hello.</p>", ("The report", "Hello.")),
        ("<title>The &lt;b&gt; report", ("The <b> report",)),
        ("<![CDATA[ x > <p>Hello</p>", ("Hello",)),
        ("<![CDATA[ x > <p>Hello</p> ]]> <p>You</p>", ("Hello", "You")),
        ("<svg><title>a</title><![CDATA[ > ]]></svg><p>Hello</p>", ("Hello",)),
        ('<a href="?a=1&section=2" title="Open &quot;it&quot;">x</a>', ('Open "it"', "x")),
        ('<p title=b" alt=cat>x</p>', ("x",)),
    ],
)
def test_later_parsers_find_the_same_texts(page: str, texts: tuple[str, ...]) -> None:
    assert html_template(page).texts == texts


def test_a_text_area_has_no_tags() -> None:
    page = "<textarea><!-- a <textarea></textarea><p>Hello</p>"
    assert html_template(page).texts == ("Hello",)
