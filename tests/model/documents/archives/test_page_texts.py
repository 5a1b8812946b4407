"""What a workbook prints over and under its pages: ours finds, and writes, what openpyxl reads."""

import io
import string
from collections.abc import Iterator
from random import Random

import openpyxl
import pytest

from model.documents.formats import open_document
from model.documents.notation.limits import DocumentLimits
from model.errors import DocumentError
from model.text.marks.inline_codes import without_codes
from support.library_texts import NUM_DOCUMENTS
from support.made_documents import members_of, xlsx

LINES = ("oddHeader", "oddFooter", "evenHeader", "firstFooter")
SHEET = (
    '<worksheet><sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData>'
    "<headerFooter><oddHeader>{}</oddHeader></headerFooter></worksheet>"
)


def with_lines(chance: Random) -> bytes:
    """A workbook with words in the parts of its lines, some in letters of their own."""
    made = openpyxl.Workbook()
    made.active["A1"] = 7
    for name in LINES:
        line = getattr(made.active, name)
        for part in (line.left, line.center, line.right):
            if chance.random() < 0.7:
                letters = string.ascii_letters + " éß猫<>'_.-"
                part.text = "w" + "".join(chance.choice(letters) for _ in range(9)) + "w"
                part.size, part.font = chance.choice([(12, "Arial,Bold"), (None, None)])
                part.color = chance.choice(["AA00FF", None])
    output = io.BytesIO()
    made.save(output)
    return output.getvalue()


def read(data: bytes) -> Iterator[tuple[object, ...]]:
    """What openpyxl reads in every part, and in which letters."""
    sheet = openpyxl.load_workbook(io.BytesIO(data)).active
    for name in LINES:
        line = getattr(sheet, name)
        for part in (line.left, line.center, line.right):
            yield part.text, part.size, part.font, part.color


@pytest.mark.parametrize("seed", range(10 * NUM_DOCUMENTS))
def test_lines_are_what_openpyxl_reads(seed: int) -> None:
    made = with_lines(Random(seed))
    before = list(read(made))
    document = open_document(made, "xlsx")
    texts = [without_codes(text) for text in document.texts]
    assert texts == [text for text, *_ in before if text is not None]
    after = read(document.rebuild([f"{text.upper()} <é>" for text in document.texts]))
    assert list(after) == [
        (None if text is None else f"{str(text).upper()} <é>", *rest) for text, *rest in before
    ]
    assert members_of(document.rebuild(document.texts)) == members_of(made)


def rebuilt(line: str, *translations: str) -> str:
    document = open_document(xlsx("", sheets=[SHEET.format(line)]), "xlsx")
    sheet = members_of(document.rebuild(translations))["xl/worksheets/sheet1.xml"]
    before, after = SHEET.split("{}")
    assert sheet.startswith(before)
    return sheet.removeprefix(before).removesuffix(after)


def texts(line: str) -> list[str]:
    document = open_document(xlsx("", sheets=[SHEET.format(line)]), "xlsx")
    return [without_codes(text) for text in document.texts]


@pytest.mark.parametrize(
    ("line", "found", "translations", "written"),
    [
        ("&amp;LA cat&amp;RPage &amp;P of &amp;N", ["A cat", "Page  of "], None, None),
        ("&amp;C&amp;&quot;Arial,Bold&quot;&amp;12A cat", ["A cat"], ["x"],
         "&amp;C&amp;&quot;Arial,Bold&quot;&amp;12x"),
        ('&amp;"-,Bold"&amp;KFF0000A cat', ["A cat"], ["x"], '&amp;"-,Bold"&amp;KFF0000x'),
        ("A cat &amp;&amp; a dog", ["A cat & a dog"], ["b & c"], "b &amp;&amp; c"),
        ("&amp;12A cat", ["A cat"], ["3 cats"], "&amp;12 3 cats"),
        ("a &lt; b", ["a < b"], ["c > d"], "c &gt; d"),
        ("&amp;A&amp;F &amp;D", [], [], "&amp;A&amp;F &amp;D"),
        ("&#38;LA cat", [], [], "&#38;LA cat"),
        ("A cat\nsees", ["A cat\nsees"], ["a\nb"], "a b"),
    ],
)  # fmt: skip
def test_codes_stay_and_words_between_them_are_texts(
    line: str, found: list[str], translations: list[str] | None, written: str | None
) -> None:
    assert texts(line) == found
    if translations is not None:
        assert rebuilt(line, *translations) == written


def test_a_line_never_gets_longer_than_excel_reads() -> None:
    line = "&amp;LA cat &amp;Bsees&amp;B it&amp;RPage &amp;P"
    document = open_document(xlsx("", sheets=[SHEET.format(line)]), "xlsx")
    written = rebuilt(line, *(f"{text}{'&x' * 300}" for text in document.texts))
    said = written.replace("&amp;", "&")
    assert 100 < len(said) <= 255
    assert said.count("&&") * 2 + 5 == said.count("&")


def test_cells_of_a_sheet_are_not_read_for_its_lines() -> None:
    cells = "<c><v>1</v></c>" * 5_000
    sheet = SHEET.format("A cat").replace("<sheetData>", f"<sheetData>{cells}")
    made = xlsx("", sheets=[sheet])
    document = open_document(made, "xlsx", limits=DocumentLimits(max_events=1_000))
    assert document.texts == ("A cat",)
    result = members_of(document.rebuild(["x"]))["xl/worksheets/sheet1.xml"]
    assert result == sheet.replace("A cat", "x")


def test_a_workbook_that_is_too_large_to_be_read_for_its_lines_keeps_them() -> None:
    sheet = SHEET.format("A cat").replace("<row ", f"{' ' * 2_000}<row ")
    made = xlsx("<si><t>One</t></si>", sheets=[sheet])
    document = open_document(made, "xlsx", limits=DocumentLimits(max_read_bytes=1_000))
    assert document.texts == ("One",)


def test_a_sheet_with_a_prefix_is_read_too() -> None:
    sheet = (
        "<x:worksheet xmlns:x='x'><x:sheetData/><x:hyperlinks><x:hyperlink tooltip='To it'/>"
        "</x:hyperlinks><x:headerFooter><x:oddFooter>A cat</x:oddFooter></x:headerFooter>"
        "</x:worksheet>\n"
    )
    document = open_document(xlsx("", sheets=[sheet]), "xlsx")
    assert document.texts == ("To it", "A cat")
    result = members_of(document.rebuild(["x", "y"]))["xl/worksheets/sheet1.xml"]
    assert result == sheet.replace("To it", "x").replace("A cat", "y")


def test_a_sheet_without_cells_or_with_words_like_lines_in_them_stays() -> None:
    cell = "<c><f>'<oddHeader>'</f></c>".replace("<odd", "&lt;odd")
    for sheet in (
        "<worksheet><headerFooter><oddHeader>A cat</oddHeader></headerFooter></worksheet>",
        f"<worksheet><sheetData>{cell}</sheetData><!-- > --><pageMargins/></worksheet>",
    ):
        made = xlsx("<si><t>One</t></si>", sheets=[sheet])
        document = open_document(made, "xlsx")
        assert document.texts == ("One",)
        assert members_of(document.rebuild(["x"]))["xl/worksheets/sheet1.xml"] == sheet


@pytest.mark.parametrize(
    "rest", ["<!-- made by x -->", " <!-- </x:worksheet> -->\n", "<?made by='x'?>"]
)
def test_a_sheet_that_ends_in_no_element_keeps_its_lines(rest: str) -> None:
    sheet = SHEET.format("A cat") + rest
    document = open_document(xlsx("<si><t>One</t></si>", sheets=[sheet]), "xlsx")
    assert document.texts == ("One",)
    assert members_of(document.rebuild(["x"]))["xl/worksheets/sheet1.xml"] == sheet


def test_words_of_a_line_that_are_called_as_the_cells_are_no_end_of_them() -> None:
    line = "My sheetData report &lt;/sheetData&gt; of sheetData/>"
    assert texts(line) == ["My sheetData report </sheetData> of sheetData/>"]
    assert rebuilt(line, "x") == "x"
    sheet = SHEET.format(line).replace("</sheetData>", "</sheetData\n>")
    document = open_document(xlsx("", sheets=[sheet]), "xlsx")
    assert len(document.texts) == 1


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "repeated", ["</", "</a", "</a ", "<sheetData", "sheetData", "<oddHeader", "<a:", "a:sheetData"]
)
def test_a_sheet_takes_time_as_it_is_long(repeated: str) -> None:
    head = "<worksheet><sheetData/><oddHeader>"
    for tail in ("", "</worksheet>"):
        sheet = head + repeated * 300_000 + tail
        try:
            document = open_document(xlsx("<si><t>One</t></si>", sheets=[sheet]), "xlsx")
        except DocumentError as error:
            assert error.problem  # noqa: PT017  # Expat says what is wrong where it is read
        else:
            assert "One" in document.texts
