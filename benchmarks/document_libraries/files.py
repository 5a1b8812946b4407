"""Files to compare: made by the formats' own libraries, by LibreOffice, by GNU gettext, by hand.

Owns where files come from. Of LibreOffice there are the templates that come with it, which people
made in it, and what it makes of these and of the libraries' files in its other formats; of gettext
the catalogues of programs that are installed.
"""

import io
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docx
import pptx
import xlsxwriter
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

_TEMPLATES = Path("/usr/lib/libreoffice/share/template")
_CATALOGUES = Path("/usr/share/locale/de/LC_MESSAGES")
_BY_TEMPLATE = {".ott": "odt", ".otp": "odp"}
_MADE_OF = {"odt": ("docx", "epub"), "odp": ("pptx",), "docx": ("odt",), "xlsx": ("ods", "xlsx")}
_TIMEOUT_S = 300
_HERE = Path(__file__).parent / "samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file.

    Attributes:
        kind: Its kind.
        maker: What made it.
        data: Its bytes.
        name: What it is called, of a catalogue.
    """

    kind: str
    maker: str
    data: bytes
    name: str = ""


def files(folder: Path, *, most: int) -> Iterator[File]:
    """All files, with so many of each maker at most; LibreOffice's need `soffice`.

    Args:
        folder: Empty, for what programs write.
        most: Templates of either kind, and catalogues.
    """
    for path in sorted(_HERE.iterdir()):
        data = path.read_bytes()
        yield File(kind=path.suffix[1:], maker="by hand", data=data, name=path.name)
    made = [
        File(kind="docx", maker="python-docx", data=text_document()),
        File(kind="pptx", maker="python-pptx", data=presentation()),
        File(kind="xlsx", maker="XlsxWriter", data=workbook()),
    ]
    yield from made
    yield from _catalogues(most)
    if shutil.which("soffice") is not None:
        yield from _of_libreoffice(folder, made, most)


def text_document() -> bytes:
    """A document with styles, a list, a table, a header and a comment."""
    made = docx.Document()
    made.add_heading("A report", level=1)
    paragraph = made.add_paragraph("The quick ")
    paragraph.add_run("brown").bold = True
    run = paragraph.add_run(" fox.\tTabbed\nand broken.")
    made.add_comment(run, text="Is it?", author="An author", initials="aa")
    made.add_paragraph("One", style="List Bullet")
    made.add_paragraph("Two", style="List Number")
    made.add_table(2, 2).cell(0, 0).text = "A cell"
    made.sections[0].header.paragraphs[0].text = "Over every page"
    return _saved(made)


def presentation() -> bytes:
    """A slide with a group, a table, a chart and notes."""
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[5])
    slide.shapes.title.text = "A title"
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "In a group"
    table = slide.shapes.add_table(2, 2, 0, 0, Inches(2), Inches(2)).table
    table.cell(0, 0).text = "A cell"
    data: Any = CategoryChartData()  # type: ignore[no-untyped-call]  # of a library without types
    data.categories = ["East", "West"]
    data.add_series("Sales", (1, 2))
    size = (Inches(1), Inches(1), Inches(3), Inches(3))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *size, data)
    slide.notes_slide.notes_text_frame.text = "To be said"
    return _saved(made)


def workbook() -> bytes:
    """A sheet with rich text, a chart, a text box, sparklines, rules and a comment."""
    output = io.BytesIO()
    with xlsxwriter.Workbook(output, {"in_memory": True}) as book:
        sheet, bold = book.add_worksheet("Sales"), book.add_format({"bold": True})
        sheet.write_row(0, 0, ["Region", "Sales"], bold)
        for row, (region, number) in enumerate([("East", 3), ("West", 5), ("North", 2)], start=1):
            sheet.write_row(row, 0, [region, number])
        sheet.write_formula("B5", "=SUM(B2:B4)", None, 10)
        sheet.write_rich_string("D1", "a ", bold, "bold", " word")
        sheet.write_comment("A1", "A comment")
        sheet.conditional_format("B2:B4", {"type": "data_bar"})
        sheet.data_validation("A2:A4", {"validate": "list", "source": ["East", "West"]})
        sheet.add_sparkline("C2", {"range": "Sales!B2:B4"})
        chart = book.add_chart({"type": "column"})
        chart.add_series({"values": "=Sales!$B$2:$B$4"})
        chart.set_title({"name": "By region"})
        sheet.insert_chart("E2", chart)
        sheet.insert_textbox("E20", "In a box")
    return output.getvalue()


def _saved(made: "docx.document.Document | pptx.presentation.Presentation") -> bytes:
    output = io.BytesIO()
    made.save(output)
    return output.getvalue()


def _catalogues(most: int) -> Iterator[File]:
    command = shutil.which("msgunfmt")
    found = sorted(_CATALOGUES.glob("*.mo"), key=lambda path: path.stat().st_size)
    for path in found[:most] if command else []:
        made = subprocess.run(
            [command or "", str(path)], check=True, capture_output=True, timeout=_TIMEOUT_S
        )
        yield File(kind="po", maker="GNU gettext", data=made.stdout, name=path.stem)


def _of_libreoffice(folder: Path, made: Sequence[File], most: int) -> Iterator[File]:
    sources: dict[str, list[Path]] = {}
    for ending, kind in _BY_TEMPLATE.items():
        for number, path in enumerate(sorted(_TEMPLATES.rglob(f"*{ending}"))[:most]):
            yield File(kind=kind, maker="LibreOffice", data=path.read_bytes())
            sources.setdefault(kind, []).append(folder / f"template-{number}.{kind}")
            sources[kind][-1].write_bytes(path.read_bytes())
    for file in made:
        path = folder / f"made.{file.kind}"
        path.write_bytes(file.data)
        sources.setdefault(file.kind, []).append(path)
    for kind, wanted in _MADE_OF.items():
        for target in wanted:
            converted = folder / f"{kind}-{target}"
            yield from _converted(sources.get(kind, []), target, converted)


def _converted(sources: Sequence[Path], target: str, folder: Path) -> Iterator[File]:
    """What LibreOffice makes of files, all in one run."""
    if not sources:
        return
    profile = folder.parent / "profile"
    subprocess.run(
        [
            *("soffice", f"-env:UserInstallation={profile.as_uri()}", "--headless"),
            *("--convert-to", target, "--outdir", str(folder), *map(str, sources)),
        ],
        check=True,
        capture_output=True,
        timeout=_TIMEOUT_S,
    )
    for path in sorted(folder.glob(f"*.{target}")):
        yield File(kind=target, maker="LibreOffice", data=path.read_bytes())
