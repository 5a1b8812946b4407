"""XLIFF: ours finds, and writes, what lxml reads in generated files of both versions.

The format's own library, translate-toolkit, is under the GPL; lxml is what it reads XML with.
"""

from collections.abc import Iterator
from random import Random
from xml.sax.saxutils import escape

import pytest
from lxml import etree

from model.documents.formats import open_document
from model.text.marks.carrying import carry
from model.text.marks.finding import find_marks
from model.text.marks.inline_codes import ANY_CODE, class_of, without_codes
from support.library_texts import NUM_DOCUMENTS, line, translated

OLD = '<xliff version="1.2"><file><body>{}</body></file></xliff>'
NEW = '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0"><file>{}</file></xliff>'
OLD_CODES = [
    '<g id="{}">{}</g>',
    '<x id="{}"/>{}',
    '{1}<ph id="{0}">&lt;br/></ph>',
    '<bpt id="{0}">&lt;b></bpt>{1}<ept id="{0}">&lt;/b></ept>',
    '{1}<bx id="{0}"/><it id="{0}" pos="close">&lt;/i></it>',
    "{1}",
]
NEW_CODES = [
    '<pc id="{}">{}</pc>',
    '<ph id="{}"/>{}',
    '{1}<cp hex="{0:04}"/>',
    '<sc id="{0}"/>{1}<ec startRef="{0}"/>',
    "{1}",
]
NATIVE = {"ph", "x", "cp", "bpt", "ept", "bx", "it", "sc", "ec"}


def source(chance: Random, number: int, codes: list[str]) -> str:
    parts = [escape(line(chance)) for _ in range(chance.randrange(1, 4))]
    return f"{number}" + "".join(chance.choice(codes).format(number, part) for part in parts)


def unit(chance: Random, number: int, *, is_old: bool) -> str:
    """A unit with a translation, without one, with an empty one, or one that is to stay."""
    target = chance.choice(["", "", "<target/>", "<target>there</target>"])
    said = f"<source>{source(chance, number, OLD_CODES if is_old else NEW_CODES)}</source>{target}"
    kept = ' translate="no"' if chance.random() < 0.1 else ""
    space = ' xml:space="preserve"' if chance.random() < 0.5 else ""
    if is_old:
        other = "<alt-trans><source>o</source><target>p</target></alt-trans>"
        return f'<trans-unit id="{number}"{kept}{space}>{said}<note>n</note>{other}</trans-unit>\n'
    return f'<unit id="{number}"{kept}{space}><segment>{said}</segment></unit>\n'


def texts(data: bytes, name: str) -> Iterator[str | None]:
    """What the sources or targets of all units say without what their codes stand for."""
    for one in etree.fromstring(data).iter("{*}trans-unit", "{*}segment"):
        element = one.find(f"{{*}}{name}")
        yield None if element is None else "".join(inner_text(element))


def inner_text(element: etree._Element) -> Iterator[str]:
    yield element.text or ""
    for inner in element:
        if etree.QName(inner).localname not in NATIVE:
            yield from inner_text(inner)
        yield inner.tail or ""


def is_open(one: etree._Element) -> bool:
    target = one.find("{*}target")
    is_kept = "no" in (one.get("translate"), one.getparent().get("translate"))
    return not is_kept and (target is None or not target.text)


def folded(text: str | None) -> str:
    """A text with one space where there are several; a code may stand between two."""
    return " ".join(part for part in (text or "").split(" ") if part)


@pytest.mark.parametrize("is_old", [True, False])
@pytest.mark.parametrize("seed", range(NUM_DOCUMENTS))
def test_units_are_what_lxml_reads(seed: int, is_old: bool) -> None:
    chance = Random(seed)
    units = "".join(unit(chance, number, is_old=is_old) for number in range(60))
    data = (OLD if is_old else NEW).format(units).encode()
    document = open_document(data, "xliff")
    units_before, sources = units_of(data), [folded(text) for text in texts(data, "source")]
    is_wanted = [is_open(one) for one in units_before]
    assert [folded(without_codes(text)) for text in document.texts] == [
        text
        for text, wanted in zip(sources, is_wanted, strict=True)
        if wanted and any(map(str.isalpha, text))
    ]
    rebuilt = document.rebuild([translated(text) for text in document.texts])
    assert [folded(text) for text in texts(rebuilt, "source")] == sources
    targets = [folded(text) for text in texts(rebuilt, "target")]
    expected = [translated(text) if any(map(str.isalpha, text)) else text for text in sources]
    assert [one for one, wanted in zip(targets, is_wanted, strict=True) if wanted] == [
        one for one, wanted in zip(expected, is_wanted, strict=True) if wanted
    ]
    for one, wanted in zip(units_of(rebuilt), is_wanted, strict=True):
        if wanted:
            assert codes_of(one, "target") == codes_of(one, "source")


def units_of(data: bytes) -> list[etree._Element]:
    return list(etree.fromstring(data).iter("{*}trans-unit", "{*}segment"))


def codes_of(one: etree._Element, name: str) -> list[str | None]:
    element = one.find(f"{{*}}{name}")
    assert element is not None
    return [inner.tag + str(inner.get("id")) for inner in element.iterdescendants()]


def test_white_space_that_has_a_meaning_stays() -> None:
    said = "<source>one  two\n three</source>"
    for attribute in ("", ' xml:space="preserve"'):
        data = OLD.format(f"<trans-unit{attribute}>{said}</trans-unit>")
        text = "one  two\n three" if attribute else "one two three"
        assert open_document(data.encode(), "xliff").texts == (text,)


@pytest.mark.parametrize(
    "other",
    [
        '<x:segment n="1"></x:segment>',
        "<x:segment><x:segment/></x:segment>",
        "<x:trans-unit><x:source>a</x:source></x:trans-unit>",
    ],
)
def test_elements_of_other_tools_in_a_unit_are_parts_of_it(other: str) -> None:
    unit = f"<trans-unit id='1'><source>One</source>{{}}{other}</trans-unit>"
    units = f"{unit}<trans-unit id='2' translate='no'><source>Two</source>{other}</trans-unit>"
    file = f"<xliff xmlns:x='x' version='1.2'>{units}</xliff>"
    document = open_document(file.format("").encode(), "xliff")
    assert document.texts == ("One",)
    assert document.rebuild(["Eins"]).decode() == file.format("<target>Eins</target>")


@pytest.mark.parametrize(
    ("said", "classes"),
    [
        ('<bpt id="1">&lt;b></bpt>big<ept id="1">&lt;/b></ept>', ["opening", "closing"]),
        ('<bpt id="1" rid="7"/>big<ept id="2" rid="7"/>', ["opening", "closing"]),
        ('<bx id="1"/>big<ex id="2" rid="1"/>', ["opening", "closing"]),
        ('<sc id="1"/>big<ec startRef="1"/>', ["opening", "closing"]),
        ('<sm id="1"/>big<em startRef="1"/>', ["opening", "closing"]),
        ('<bpt id="1"/>big<ept id="2"/>', ["lone", "lone"]),
        ('<it id="1" pos="open"/>big<it id="1" pos="close"/>', ["opening", "closing"]),
        ('<it id="1" pos="close"/>big<x id="2"/>', ["lone", "lone"]),
        ('<bx id="1"/>a<bx id="2"/>big<ex rid="1"/>b<ex rid="2"/>', ["lone"] * 4),
    ],
)
def test_codes_that_begin_and_end_something_are_a_pair(said: str, classes: list[str]) -> None:
    data = OLD.format(f"<trans-unit><source>A {said} house</source></trans-unit>").encode()
    document = open_document(data, "xliff")
    assert [class_of(one) for one in ANY_CODE.findall(document.texts[0])] == classes
    assert f"<target>A {said} house</target>" in document.rebuild(document.texts).decode()


@pytest.mark.parametrize(
    ("said", "is_whole"),
    [
        ('2<bpt id="1">&lt;sup></bpt>nd<ept id="1">&lt;/sup></ept>', True),
        ('2<bx id="1"/>nd<ex id="2" rid="1"/>', True),
        ('2<it id="1" pos="open">&lt;sup></it>nd', True),
        ('2<g id="1">nd</g>', True),
        ('2<x id="1"/>nd', False),
    ],
)
def test_a_code_in_a_word_divides_it_if_it_may_be_seen(said: str, is_whole: bool) -> None:
    data = OLD.format(f"<trans-unit><source>The {said} house</source></trans-unit>").encode()
    text = open_document(data, "xliff").texts[0]
    carried = carry(text, find_marks(text), ("X1", "X2"), ("47", "58"))
    assert carried is not None
    assert ("2nd" in carried.shown) == is_whole
