"""Cells of a workbook: which hold a text, and which stay."""

import pytest

from model.documents.formats import open_document
from model.documents.notation.limits import DocumentLimits
from model.text.marks.inline_codes import ANY_CODE
from support.made_documents import archive, members_of, xlsx

SHEET = '<worksheet><sheetData><row r="1">{}<c r="Z1"><v>7</v></c></row></sheetData></worksheet>'


def test_a_string_that_is_the_value_of_a_cell_is_a_text_unless_a_formula_gives_it() -> None:
    cells = (
        '<c r="A1" t="str"><v>{}</v></c><c r="B1" t="str"><f>A1</f><v>computed</v></c>'
        '<c r="C1" t="str"><f/><v>shared</v></c><c r="D1" t="s"><v>0</v></c>'
        '<c r="E1" t="e"><v>#VALUE</v></c><c t="str" r="F1"><v> {} </v></c>'
    )
    sheet = SHEET.format(cells)
    made = xlsx("", sheets=[sheet.format("Open the file.", "A &amp; b")])
    document = open_document(made, "xlsx")
    assert document.texts == ("Open the file.", "A & b")
    rebuilt = members_of(document.rebuild(["Datei <x>", "c"]))["xl/worksheets/sheet1.xml"]
    assert rebuilt == sheet.format("Datei &lt;x&gt;", "c")
    assert members_of(document.rebuild(document.texts)) == members_of(made)


def test_a_sheet_whose_strings_formulas_give_is_not_parsed() -> None:
    cells = '<c r="A1" t="str"><f>B1</f><v>computed</v></c>' * 100
    made = xlsx("<si><t>A cat</t></si>", sheets=[SHEET.format(cells)])
    document = open_document(made, "xlsx", limits=DocumentLimits(max_events=100))
    assert document.texts == ("A cat",)


def test_names_of_columns_stay_with_spaces_around_them_and_in_several_runs() -> None:
    strings = (
        "<si><t>Total </t></si><si><r><t>Rich </t></r><r><rPr><b/></rPr><t>Name</t></r></si>"
        "<si><t>Totals</t></si><si><t> Year</t></si>"
    ).replace("<t>", '<t xml:space="preserve">')
    columns = "".join(f"<tableColumn name='{name}'/>" for name in ("Total ", "Rich Name", "Year"))
    made = xlsx(strings, columns)
    document = open_document(made, "xlsx")
    assert document.texts == ("Totals",)
    rebuilt = members_of(document.rebuild(["Summen"]))["xl/sharedStrings.xml"]
    assert rebuilt == members_of(made)["xl/sharedStrings.xml"].replace("Totals", "Summen")


def with_pivot_cache(made: bytes, definition: str) -> bytes:
    """A workbook with one part more, of what a pivot table has read."""
    name = "xl/pivotCache/pivotCacheDefinition1.xml"
    members = members_of(made)
    override = (
        f"<Override PartName='/{name}' ContentType='application/vnd.openxmlformats-officedocument."
        "spreadsheetml.pivotCacheDefinition+xml'/></Types>"
    )
    members["[Content_Types].xml"] = members["[Content_Types].xml"].replace("</Types>", override)
    return archive({**members, name: definition})


def test_header_cells_that_a_pivot_table_reads_stay() -> None:
    strings = "".join(
        f"<si><t>{text}</t></si>"
        for text in ("Region", "Sales\namount", "A &amp; b > c", "Regions", "Total ")
    ).replace("<t>", '<t xml:space="preserve">')
    definition = (
        "<x:pivotCacheDefinition xmlns:x='x' refreshOnLoad='1'><x:cacheFields>"
        "<x:cacheField name='Region' numFmtId='0'><x:sharedItems><x:s v='East'/></x:sharedItems>"
        "</x:cacheField><x:cacheField numFmtId='0'\n name=\"Sales_x000A_amount\"/>"
        '<x:cacheField name="A &amp;&#32;b > c"/><x:cacheField name="Total "/></x:cacheFields>'
        "</x:pivotCacheDefinition>"
    )
    made = with_pivot_cache(xlsx(strings), definition)
    document = open_document(made, "xlsx")
    assert document.texts == ("Regions",)
    rebuilt = members_of(document.rebuild(["Gebiete"]))
    before = members_of(made)
    before["xl/sharedStrings.xml"] = before["xl/sharedStrings.xml"].replace("Regions", "Gebiete")
    assert rebuilt == before


def test_a_cache_of_many_values_is_not_parsed() -> None:
    items = "<s v='a'/>" * 300
    definition = f"<d><cacheField name='Region'><sharedItems>{items}</sharedItems></cacheField></d>"
    made = with_pivot_cache(xlsx("<si><t>Region</t></si><si><t>A cat</t></si>"), definition)
    document = open_document(made, "xlsx", limits=DocumentLimits(max_events=100))
    assert document.texts == ("A cat",)


@pytest.mark.parametrize(
    ("translation", "written"),
    [("x" * 40_000, "x" * 32_766), ("x" + "𝒙" * 20_000, "x" + "𝒙" * 16_382)],
)
def test_a_cell_is_cut_at_what_excel_reads(translation: str, written: str) -> None:
    document = open_document(xlsx("<si><t>a cat </t></si>"), "xlsx")
    rebuilt = members_of(document.rebuild([translation]))["xl/sharedStrings.xml"]
    assert f'<si><t xml:space="preserve">{written} </t></si>' in rebuilt


def test_a_cell_that_is_cut_keeps_its_runs_whole() -> None:
    runs = "<r><t>{} </t></r><r><rPr><b/></rPr><t>{}</t></r>".replace(
        "<t>", '<t xml:space="preserve">'
    )
    document = open_document(xlsx(f"<si>{runs.format('a long', 'cat')}</si>"), "xlsx")
    opening, closing = ANY_CODE.findall(document.texts[0])
    translation = f"{'x' * 32_700} {opening}{'y' * 100}{closing}"
    rebuilt = members_of(document.rebuild([translation]))["xl/sharedStrings.xml"]
    assert f"<si>{runs.format('x' * 32_700, 'y' * 66)}</si>" in rebuilt
