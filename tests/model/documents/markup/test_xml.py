import pytest

from model.documents.formats import open_document
from model.documents.markup.xml import xml_template
from model.documents.markup.xml_events import xml_events
from model.documents.notation.document import DocumentOptions
from model.documents.notation.limits import DocumentLimits
from model.errors import DocumentError
from model.text.marks.inline_codes import without_codes


def plain_texts(markup: str, **options: frozenset[str]) -> list[str]:
    return [without_codes(text) for text in xml_template(markup, DocumentOptions(**options)).texts]


def in_capitals(markup: str) -> str:
    template = xml_template(markup)
    return template.rebuilt([text.upper() for text in template.texts])


def test_a_text_with_tags_needs_no_root() -> None:
    markup = "Press <x id='1'>go</x> &amp; <y/> wait &lt;b&gt;"
    assert plain_texts(markup) == ["Press go &  wait <b>"]
    assert in_capitals(markup) == "PRESS <x id='1'>GO</x> &amp; <y/> WAIT &lt;B&gt;"


def test_an_element_without_text_of_its_own_divides() -> None:
    markup = "<doc><title>One</title>\n<par>two <b>three <i>four</i></b></par></doc>"
    assert plain_texts(markup) == ["One", "two three four"]


def test_the_caller_may_say_what_divides_and_what_does_not() -> None:
    markup = "<r>one <s>two</s> three</r>"
    assert plain_texts(markup, splitting_elements=frozenset({"s"})) == ["one", "two", "three"]
    markup = "<r><a>one</a><b>two</b></r>"
    assert plain_texts(markup, inline_elements=frozenset({"a", "b"})) == ["onetwo"]


def test_what_is_not_to_be_translated_is_copied() -> None:
    markup = "<r>one <k>two</k> <c translate='no'>three</c><k/> four</r>"
    assert plain_texts(markup, ignored_elements=frozenset({"k"})) == ["one   four"]


def test_sections_are_text_and_written_as_text() -> None:
    markup = "<r> <![CDATA[ a < b &nbsp; ]]> </r>"
    assert plain_texts(markup) == ["a < b &nbsp;"]
    assert in_capitals(markup) == "<r> A &lt; B &amp;NBSP; </r>"
    assert xml_template(markup).rebuilt(xml_template(markup).texts) == markup


def test_references_are_written_as_they_were() -> None:
    assert in_capitals("<r>a &#8217; &quot;b&quot;</r>") == "<r>A &#8217; &quot;B&quot;</r>"


def test_a_number_is_that_character_in_xml_and_not_what_it_is_in_html() -> None:
    data = b"<a>It&#146;s x&#x80;</a>"
    document = open_document(data, "xml")
    assert document.texts == ("It\x92s x\x80",)
    assert document.rebuild(["’€"]).decode() == "<a>’€</a>"
    assert document.rebuild(["IT\x92S X\x80"]) == b"<a>IT&#146;S X&#x80;</a>"
    page = open_document(b"<p>It&#146;s x&#x80;</p>", "html")
    assert page.texts == ("It’s x€",)
    assert page.rebuild(["’A€"]) == b"<p>&#146;A&#x80;</p>"


def test_references_to_foreign_declarations_are_kept_as_they_are() -> None:
    head = '<!DOCTYPE book PUBLIC "-//x" "x.dtd"><book><para>'
    source = f"{head}Install &product; now&hellip; see &notify-guide; and &copyrightholder;.</para>"
    source += "<para>&product; <b>two</b></para><para>&product;</para></book>"
    assert plain_texts(source) == ["Install  now… see  and .", " two"]
    assert in_capitals(source) == (
        f"{head}INSTALL &product; NOW&hellip; SEE &notify-guide; AND &copyrightholder;.</para>"
        "<para>&product; <b>TWO</b></para><para>&product;</para></book>"
    )


def test_events_are_the_whole_file() -> None:
    text = (
        "<?xml version='1.0'?>\n<!DOCTYPE r SYSTEM 'x'>\n<!-- c --><r a='1'>é &amp; <b/>x"
        "<![CDATA[y]]><?p q?>&nbsp;\n</r>\n"
    )
    events = list(xml_events(text, "xml", DocumentLimits()))
    assert "".join(event.raw for event in events) == text
    assert [event.text for event in events if event.kind == "text"] == ["é & ", "xy", "\u00a0\n"]


def test_attributes_that_are_declared_in_the_file_have_their_defaults() -> None:
    text = (
        "<!DOCTYPE r [<!-- c --><!ELEMENT r ANY><!ATTLIST code translate (yes|no) 'no'"
        " translate CDATA 'x' b CDATA #IMPLIED c CDATA #REQUIRED d CDATA #FIXED 'e'>]>"
        "<r>One <code c='f'>two</code> <code c='g' translate='yes'>three</code></r>"
    )
    events = list(xml_events(text, "xml", DocumentLimits()))
    assert "".join(event.raw for event in events) == text
    assert [event.attributes for event in events if event.kind == "start"] == [
        {},
        {"c": "f", "translate": "no", "d": "e"},
        {"c": "g", "translate": "yes", "d": "e"},
    ]
    assert in_capitals(text) == text.replace(">One", ">ONE").replace("three", "THREE")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"<a><b></a>", "is not well-formed XML: mismatched tag on line 1"),
        (b"", "is not well-formed XML: no element found"),
        (b"<a>&x;</a>", "is not well-formed XML: undefined entity"),
        (b"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "declares entities"),
        (b"<?xml version='1.0' encoding='klingon'?><a/>", "is in an unknown encoding"),
        (b"\xff", "is not text in utf-8"),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(data: bytes, problem: str) -> None:
    with pytest.raises(DocumentError) as caught:
        open_document(data, "xml")
    assert str(caught.value).startswith(f"the xml document {problem}")


def test_an_old_encoding_stays_and_what_it_lacks_is_a_reference() -> None:
    data = "<?xml version='1.0' encoding='ISO-8859-2'?><a>ž</a>".encode("iso-8859-2")
    document = open_document(data, "xml")
    assert document.texts == ("ž",)
    assert document.rebuild(["ž猫"]) == data.replace(b"</a>", b"&#29483;</a>")


OLD = """\
<xliff version="1.2"><file source-language="en" target-language="de"><body>
<trans-unit id="1"><source>Click <g id="1">here</g> <x id="2"/>now</source></trans-unit>
<trans-unit id="2"><source>Two</source><target state="new"/><note>n</note></trans-unit>
<trans-unit id="3"><source>Three</source><target>Drei</target></trans-unit>
<trans-unit id="4" translate="no"><source>Four</source></trans-unit>
<trans-unit id="5"><source>12</source><alt-trans><source>a</source></alt-trans></trans-unit>
</body></file></xliff>
"""
NEW = """\
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0"><file id="f">
<unit id="1"><segment><source>Hello <pc id="1">big</pc> <ph id="2"/>world</source></segment></unit>
<unit id="2" translate="no"><segment><source>No</source></segment></unit>
</file></xliff>
"""


def test_units_without_a_translation_get_one() -> None:
    document = open_document(OLD.encode(), "xliff")
    assert [without_codes(text) for text in document.texts] == ["Click here now", "Two"]
    rebuilt = document.rebuild([text.upper() for text in document.texts]).decode()
    expected = OLD.replace(
        "now</source>", 'now</source><target>CLICK <g id="1">HERE</g> <x id="2"/>NOW</target>'
    ).replace('<target state="new"/>', '<target state="new">TWO</target>')
    expected = expected.replace("<source>12</source>", "<source>12</source><target>12</target>")
    assert rebuilt == expected


@pytest.mark.parametrize("target", ["", "<target state='new'>{0} {1}</target>", "<target/>"])
def test_segments_of_a_source_that_is_divided_are_texts_and_stay(target: str) -> None:
    empty = ["<mrk mtype='seg' mid='1'/>", "<mrk mtype='seg' mid='2'></mrk>"]
    divided = (
        "<g id='1'><mrk mtype='seg' mid='1'>One <g id='2'>big</g>.</mrk> <x id='3'/> "
        "<mrk mtype='seg' mid='2'>Two.</mrk></g>"
    )
    said = f"<source><g id='1'>One.</g></source><seg-source>{divided}</seg-source>"
    source = f"<xliff><trans-unit>{said + target.format(*empty)}</trans-unit></xliff>"
    document = open_document(source.encode(), "xliff")
    assert [without_codes(text) for text in document.texts] == ["One big.", "Two."]
    rebuilt = document.rebuild([text.upper() for text in document.texts]).decode()
    inner = divided.replace("One", "ONE").replace("big", "BIG").replace("Two", "TWO")
    begin = "<target state='new'>" if "state" in target else "<target>"
    assert f"{said}{begin}{inner}</target>" in rebuilt


def test_a_source_that_is_divided_into_nothing_is_one_text() -> None:
    unit = "<trans-unit><source>One.</source><seg-source>One.</seg-source></trans-unit>"
    document = open_document(f"<xliff>{unit}</xliff>".encode(), "xliff")
    assert document.texts == ("One.",)
    assert b"</seg-source><target>ONE.</target>" in document.rebuild(["ONE."])


def test_a_target_that_is_a_reference_is_a_translation() -> None:
    unit = "<trans-unit><source>&a;</source><target>&b;</target></trans-unit>"
    assert (
        open_document(f"<!DOCTYPE xliff SYSTEM 'x'><xliff>{unit}</xliff>".encode(), "xliff").texts
        == ()
    )


def test_segments_of_version_two_too() -> None:
    document = open_document(NEW.encode(), "xliff")
    rebuilt = document.rebuild([text.upper() for text in document.texts]).decode()
    assert rebuilt == NEW.replace(
        "world</source>",
        'world</source><target>HELLO <pc id="1">BIG</pc> <ph id="2"/>WORLD</target>',
    )


def test_other_xml_is_no_xliff() -> None:
    with pytest.raises(DocumentError, match="is XML of another kind"):
        open_document(b"<html/>", "xliff")


def test_white_space_has_a_meaning_where_an_element_says_so() -> None:
    markup = (
        '<r><p>one\n  two</p><v xml:space="preserve">one\n  two <b>x\ny</b>'
        '<i xml:space="default">a\n  b</i></v><w>one\n  two</w></r>'
    )
    assert plain_texts(markup) == ["one two", "one\n  two x\nya b", "one two"]
    document = open_document(markup.encode(), "xml")
    rebuilt = document.rebuild([text.upper() for text in document.texts]).decode()
    assert '<v xml:space="preserve">ONE\n  TWO <b>X\nY</b>' in rebuilt
    assert "<p>ONE TWO</p>" in rebuilt
    assert document.rebuild(document.texts).decode() == markup
