"""Places of text in office files beside their paragraphs: which are translated, and which stay."""

import pytest

from model.documents.formats import open_document
from model.text.marks.inline_codes import without_codes
from support.made_documents import A, W, archive, docx, members_of, odt

O = "application/vnd.openxmlformats-officedocument."  # noqa: E741  # as its neighbours
MAINS = {
    "docx": f"{O}wordprocessingml.document.main+xml",
    "pptx": f"{O}presentationml.presentation.main+xml",
    "xlsx": f"{O}spreadsheetml.sheet.main+xml",
}
CORE = "application/vnd.openxmlformats-package.core-properties+xml"
SLIDE, CHART = f"{O}presentationml.slide+xml", f"{O}drawingml.chart+xml"
DRAWING = f"{O}drawing+xml"
THREADS = "application/vnd.ms-excel.threadedcomments+xml"
MODERN = "application/vnd.ms-powerpoint.comments+xml"
C = "xmlns:c='c' xmlns:a='a'"


def package(kind: str, part_type: str, part: str) -> bytes:
    """A file with one part beside its main one."""
    listed = "".join(
        f"<Override PartName='/{name}' ContentType='{said}'/>"
        for name, said in (("main.xml", MAINS[kind]), ("part.xml", part_type))
    )
    return archive(
        {"[Content_Types].xml": f"<Types>{listed}</Types>", "main.xml": "<m/>", "part.xml": part}
    )


def drawn(attributes: str) -> str:
    return (
        f"<p:sld {A} xmlns:p='p'><p:pic><p:nvPicPr><p:cNvPr id='1' name='Picture 1' {attributes}/>"
        "</p:nvPicPr></p:pic></p:sld>"
    )


def chart(inner: str) -> str:
    return f"<c:chartSpace {C}>{inner}</c:chartSpace>"


CASES = [
    (
        "pptx",
        f"{O}presentationml.comments+xml",
        (
            "<p:cmLst xmlns:p='p'><p:cm authorId='0'><p:pos "
            "x='1'/><p:text>{}</p:text></p:cm><p:cm><p:text>{}</p:text></p:cm></p:cmLst>"
        ),
        ["Is it so?", "It is."],
    ),
    (
        "pptx",
        MODERN,
        (
            f"<m:cmLst xmlns:m='m' {A}><m:cm><m:replyLst><m:reply><m:txBody><a:p><a:r>"
            "<a:t>{}</a:t></a:r></a:p></m:txBody></m:reply></m:replyLst><m:txBody><a:p><a:r><a:t>{}</a:t>"
            "</a:r></a:p></m:txBody></m:cm></m:cmLst>"
        ),
        ["It is.", "Is it so?"],
    ),
    ("pptx", SLIDE, drawn("descr=\"{}\" title='{}'"), ["A black cat", "The cat"]),
    (
        "pptx",
        SLIDE,
        (
            f"<p:sld {A} xmlns:p='p'><a:p><a:r><a:rPr><a:hlinkClick tooltip='{{}}'/>"
            "</a:rPr><a:t>{}</a:t></a:r></a:p></p:sld>"
        ),
        ["To the page", "here"],
    ),
    (
        "pptx",
        f"{O}presentationml.slideLayout+xml",
        (
            f"<p:sldLayout {A} xmlns:p='p'><p:sp><p:nvSpPr>"
            "<p:nvPr><p:ph/></p:nvPr></p:nvSpPr><a:p><a:t>Click it</a:t></a:p></p:sp>"
            "<p:sp><a:p><a:t>{}</a:t></a:p></p:sp></p:sldLayout>"
        ),
        ["For us alone"],
    ),
    (
        "docx",
        CHART,
        chart(
            "<c:ser><c:tx><c:strRef><c:f>Sheet1!A1</c:f><c:strCache><c:pt idx='0'>"
            "<c:v>{}</c:v></c:pt></c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:strCache><c:pt><c:v>{}"
            "</c:v></c:pt><c:pt><c:v>{}</c:v></c:pt></c:strCache></c:strRef></c:cat><c:val><c:numRef>"
            "<c:numCache><c:pt><c:v>#N/A</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser>"
        ),
        ["Sales", "East", "West"],
    ),
    (
        "xlsx",
        CHART,
        chart(
            "<c:ser><c:tx><c:v>{}</c:v></c:tx><c:cat><c:strRef><c:strCache><c:pt>"
            "<c:v>a cell</c:v></c:pt></c:strCache></c:strRef></c:cat></c:ser>"
        ),
        ["Sales"],
    ),
    *(
        (
            kind,
            "application/vnd.ms-office.chartex+xml",
            (
                "<cx:chartSpace xmlns:cx='cx' xmlns:a='a'><cx:chartData><cx:data><cx:strDim>"
                f"<cx:lvl><cx:pt idx='0'>{category}</cx:pt></cx:lvl></cx:strDim><cx:numDim>"
                "<cx:lvl><cx:pt>7</cx:pt></cx:lvl></cx:numDim></cx:data></cx:chartData><cx:title>"
                "<cx:tx><cx:txData><cx:v>{}</cx:v></cx:txData><cx:rich><a:p><a:r><a:t>{}</a:t></a:r>"
                "</a:p></cx:rich></cx:tx></cx:title></cx:chartSpace>"
            ),
            texts,
        )
        for kind, category, texts in (
            ("pptx", "{}", ["East", "Sales", "Sales of cats"]),
            ("xlsx", "a cell", ["Sales", "Sales of cats"]),
        )
    ),
    (
        "xlsx",
        f"{O}spreadsheetml.chartsheet+xml",
        (
            "<chartsheet><headerFooter><oddHeader>&amp;C{}</oddHeader><oddFooter>{}</oddFooter>"
            "</headerFooter></chartsheet>"
        ),
        ["Sales", "For us alone"],
    ),
    (
        "xlsx",
        DRAWING,
        ("<x:wsDr xmlns:x='x' xmlns:a='a'><x:pic><x:cNvPr name='n' descr='{}'/></x:pic></x:wsDr>"),
        ["A black cat"],
    ),
    (
        "xlsx",
        THREADS,
        (
            "<ThreadedComments><threadedComment ref='A1'><text>{}</text>"
            "</threadedComment><threadedComment><text>@An author, look</text><mentions><mention "
            "startIndex='0' length='10'/></mentions></threadedComment></ThreadedComments>"
        ),
        ["Is it so?"],
    ),
    *(
        (
            kind,
            CORE,
            (
                "<cp:coreProperties xmlns:cp='cp' xmlns:dc='dc'><dc:title>{}</dc:title>"
                "<dc:subject>{}</dc:subject><dc:creator>An author</dc:creator>"
                "<cp:keywords>{}</cp:keywords>"
                "<dc:description>{}</dc:description><cp:lastModifiedBy>One</cp:lastModifiedBy>"
                "</cp:coreProperties>"
            ),
            ["A report", "Cats", "cat, river", "Of cats."],
        )
        for kind in MAINS
    ),
]


@pytest.mark.parametrize(("kind", "part_type", "part", "texts"), CASES)
def test_a_part_of_office_has_these_texts(
    kind: str, part_type: str, part: str, texts: list[str]
) -> None:
    made = package(kind, part_type, part.format(*texts))
    document = open_document(made, kind)
    assert list(map(without_codes, document.texts)) == texts
    rebuilt = document.rebuild([text.upper() for text in document.texts])
    assert members_of(rebuilt)["part.xml"] == part.format(*(text.upper() for text in texts))
    assert members_of(document.rebuild(document.texts)) == members_of(made)


def test_descriptions_of_pictures_tables_and_links_of_word_are_texts() -> None:
    body = (
        "<w:tbl><w:tblPr><w:tblCaption w:val='{}'/><w:tblDescription w:val='{}'/></w:tblPr></w:tbl>"
        "<w:p><w:r><w:drawing><wp:docPr id='1' name='Picture 1' descr='{}' title='{}'/>"
        "<pic:cNvPr descr='{}'/></w:drawing></w:r><w:r><w:pict><v:shape alt='{}' type='#t'>"
        "<v:textpath string='{}'/></v:shape></w:pict></w:r><w:hyperlink w:tooltip='{}'>"
        "<w:r><w:t>here</w:t></w:r></w:hyperlink></w:p>"
    )
    texts = ["Sales", "by year", "A cat", "The cat", "Cat", "A shape", "Do not copy", "To the page"]
    namespaces = "<w:tbl xmlns:wp='wp' xmlns:pic='pic' xmlns:v='v'>"
    document = open_document(docx(body.format(*texts).replace("<w:tbl>", namespaces, 1)), "docx")
    # Codes of a sentence come after what stands in them.
    assert sorted(map(without_codes, document.texts)) == sorted([*texts, "here"])
    rebuilt = members_of(document.rebuild([text.upper() for text in document.texts]))
    for text in texts:
        assert f"'{text.upper()}'" in rebuilt["word/document.xml"]
    assert "name='Picture 1'" in rebuilt["word/document.xml"]
    assert W in rebuilt["word/document.xml"]


@pytest.mark.parametrize(
    ("attribute", "text", "translation", "written"),
    [
        ("descr='a &amp; b'", "a & b", 'it\'s "<c>"', "descr='it&#39;s &#34;&lt;c&gt;&#34;'"),
        ('descr="one&#10;two"', "one\ntwo", "three\nfour", 'descr="three&#10;four"'),
        ('descr = " a cat "', "a cat", "eine Katze", 'descr = " eine Katze "'),
        ("descr='a&#xA0;cat'", "a\xa0cat", "b\xa0c", "descr='b&#xA0;c'"),
    ],
)
def test_a_translation_never_leaves_its_attribute(
    attribute: str, text: str, translation: str, written: str
) -> None:
    document = open_document(package("pptx", SLIDE, drawn(attribute)), "pptx")
    assert document.texts == (text,)
    assert members_of(document.rebuild([translation]))["part.xml"] == drawn(written)


def test_descriptions_footers_and_titles_of_opendocument_are_texts() -> None:
    body = (
        "<presentation:footer-decl>{}</presentation:footer-decl><text:p>{}"
        "<text:a office:title='{}'>"
        "{}</text:a><draw:frame draw:name='Picture 1'><svg:title>{}</svg:title><svg:desc>{}"
        "</svg:desc></draw:frame></text:p><form:button form:label='{}' form:name='one'/>"
        "<text:table-of-content-source><text:index-title-template>{}</text:index-title-template>"
        "</text:table-of-content-source><text:p><text:text-input>{}</text:text-input></text:p>"
    )
    texts = [
        "For us alone", "See ", "To the page", "here", "The cat", "A black cat", "Send", "Contents",
        "as you like",
    ]  # fmt: skip
    namespaces = "<office:text xmlns:presentation='p' xmlns:draw='d' xmlns:svg='s' xmlns:form='f'>"
    made = odt(body.format(*texts))
    content = members_of(made)["content.xml"].replace("<office:text>", namespaces)
    document = open_document(archive({"content.xml": content}), "odp")
    found = sorted(map(without_codes, document.texts))
    assert found == sorted(["See here", *(one for one in texts if one not in ("See ", "here"))])
    rebuilt = members_of(document.rebuild([text.upper() for text in document.texts]))
    assert rebuilt["content.xml"] == content.replace(
        body.format(*texts), body.format(*(text.upper() for text in texts))
    )


def test_what_a_form_sends_stays() -> None:
    body = (
        "<form:button form:label='Send'/><form:listbox form:title='x'>"
        "<form:option form:label='Red' form:value='r'/></form:listbox>"
        "<form:combobox><form:item form:label='Blue'/></form:combobox>"
    )
    content = members_of(odt(body))["content.xml"]
    content = content.replace("<office:text>", "<office:text xmlns:form='f'>")
    assert open_document(archive({"content.xml": content}), "odt").texts == ("Send",)


def test_charts_and_properties_of_opendocument_have_texts_and_ranges_stay() -> None:
    parts = {
        "Object 1/content.xml": (
            "<c xmlns:chart='c' xmlns:table='t' xmlns:text='x' xmlns:svg='s' xmlns:office='o'>"
            "<chart:title><text:p>{}</text:p></chart:title><table:table-cell office:value-type="
            "'string'><text:p>{}</text:p><svg:desc>Sales.A1:Sales.A2</svg:desc></table:table-cell>"
            "</c>"
        ),
        "meta.xml": (
            "<m xmlns:dc='dc' xmlns:meta='m'><dc:title>{}</dc:title><dc:subject>{}</dc:subject>"
            "<dc:description>{}</dc:description><meta:keyword>{}</meta:keyword>"
            "<dc:creator>An author</dc:creator><meta:generator>A program</meta:generator></m>"
        ),
    }
    texts = ["By region", "East", "A report", "Cats", "Of cats.", "cat"]
    content = members_of(odt("<text:p/>"))["content.xml"]

    def made(said: list[str]) -> dict[str, str]:
        written = "\0".join(parts.values()).format(*said).split("\0")
        return {"content.xml": content, **dict(zip(parts, written, strict=True))}

    for kind in ("odt", "ods", "odp"):
        document = open_document(archive(made(texts)), kind)
        assert list(document.texts) == texts
        capitals = [text.upper() for text in texts]
        assert members_of(document.rebuild(capitals)) == made(capitals)
