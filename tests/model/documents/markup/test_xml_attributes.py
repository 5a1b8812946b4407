"""Attributes that people read: ours finds, and writes, what lxml reads."""

from random import Random

import pytest
from lxml import etree

from model.documents.markup.xml_attributes import tag_pieces
from model.documents.markup.xml_events import xml_events
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import TemplateBuilder
from support.library_texts import NUM_DOCUMENTS, SPACES, line

READ = {"pic": {"descr", "title"}}


def said(chance: Random) -> str:
    """A line, with what ends a value or a line between."""
    return chance.choice(["", "\n", "\t", '"', "'", "\r"]).join(line(chance) for _ in range(3))


@pytest.mark.parametrize("seed", range(20 * NUM_DOCUMENTS))
def test_values_are_what_lxml_reads(seed: int) -> None:
    chance = Random(seed)
    element = etree.Element("{n}pic", name=said(chance), descr=said(chance), title=said(chance))
    element.set("{n}descr", said(chance))
    source = etree.tostring(element, encoding="unicode")
    builder = TemplateBuilder(kind="xml", limits=DocumentLimits())
    for event in xml_events(source, "xml", DocumentLimits()):
        builder.pieces += tag_pieces(event, READ, builder)
    template = builder.template()
    wanted = [element.get(name).strip(SPACES) for name in ("descr", "title", "{n}descr")]
    assert list(template.texts) == [one for one in wanted if any(map(str.isalpha, one))]
    assert template.rebuilt(template.texts) == source
    translations = [f"{text} {said(chance)} é" for text in template.texts]
    waiting = iter(translations)
    after = etree.fromstring(template.rebuilt(translations).encode())
    assert after.get("name") == element.get("name")
    for name, text in zip(("descr", "title", "{n}descr"), wanted, strict=True):
        is_text = any(map(str.isalpha, text))
        assert after.get(name).strip(SPACES) == (next(waiting) if is_text else text)


def test_a_value_may_be_written_in_any_way() -> None:
    source = "<pic descr = ' a cat ' id=\"descr='x'\" x:title=\"one&#10;&quot;two&quot;\"\n/>"
    builder = TemplateBuilder(kind="xml", limits=DocumentLimits())
    whole = f"<x xmlns:x='x'>{source}</x>"
    for event in xml_events(whole, "xml", DocumentLimits()):
        builder.pieces += tag_pieces(event, READ, builder)
    template = builder.template()
    assert template.texts == ("a cat", 'one\n"two"')
    assert template.rebuilt(template.texts) == whole
    rebuilt = template.rebuilt(["it's", "three\nfour"])
    assert "<pic descr = ' it&#39;s ' id=\"descr='x'\" x:title=\"three&#10;four\"\n/>" in rebuilt
