"""Libraries: a file of each format, read into the objects of its own library and written again.

Owns which library a format has here and how it writes what it read. None is asked to change
anything. Libraries under the GPL (translate-toolkit) and the AGPL (ebooklib) are no dependencies of
this project, so what is XML in their formats is read and written by lxml, as in both of them.
"""

import csv
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import docx
import openpyxl
import polib
import pptx
import srt
import webvtt
from lxml import etree, html
from odfdo import Document as OpenDocument

Again = Callable[[bytes], bytes]
"""From a file to what a library writes after reading it."""


def _with_docx(data: bytes) -> bytes:
    output = io.BytesIO()
    docx.Document(io.BytesIO(data)).save(output)
    return output.getvalue()


def _with_pptx(data: bytes) -> bytes:
    output = io.BytesIO()
    pptx.Presentation(io.BytesIO(data)).save(output)
    return output.getvalue()


def _with_openpyxl(data: bytes) -> bytes:
    output = io.BytesIO()
    openpyxl.load_workbook(io.BytesIO(data), rich_text=True).save(output)
    return output.getvalue()


def _with_odfdo(data: bytes) -> bytes:
    output = io.BytesIO()
    document = OpenDocument(io.BytesIO(data))
    # A library that reads nothing loses nothing: these are the parts that have texts.
    for part in (document.content, document.styles):
        part.root  # noqa: B018  # parsed when it is asked for
    document.save(output)
    return output.getvalue()


def _with_lxml(data: bytes) -> bytes:
    tree = etree.fromstring(data).getroottree()
    written: bytes = etree.tostring(tree, encoding="utf-8", xml_declaration=True)
    return written


def _with_lxml_html(data: bytes) -> bytes:
    tree = html.fromstring(data.decode()).getroottree()
    written: bytes = html.tostring(tree, encoding="utf-8", doctype=tree.docinfo.doctype or None)
    return written


def _pages_with_lxml(data: bytes) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(output, "w") as new:
        for name in old.namelist():
            is_page = name.endswith((".xhtml", ".opf", ".ncx"))
            new.writestr(name, _with_lxml(old.read(name)) if is_page else old.read(name))
    return output.getvalue()


def _with_polib(data: bytes) -> bytes:
    # From a file: a text that is a file's name is taken for that file.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "read.po"
        path.write_bytes(data)
        return str(polib.pofile(str(path))).encode()


def _with_srt(data: bytes) -> bytes:
    written: str = srt.compose(srt.parse(data.decode("utf-8-sig")), reindex=False)
    return written.encode()


def _with_webvtt(data: bytes) -> bytes:
    return webvtt.from_string(data.decode("utf-8-sig")).content.encode()


def _with_json(data: bytes) -> bytes:
    return json.dumps(json.loads(data), ensure_ascii=False, indent=2).encode()


def _with_csv(data: bytes) -> bytes:
    text, output = data.decode("utf-8-sig"), io.StringIO(newline="")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=";")
    csv.writer(output, delimiter=";").writerows(rows)
    return output.getvalue().encode()


LIBRARIES: Mapping[str, tuple[str, Again]] = {
    "docx": ("python-docx", _with_docx),
    "pptx": ("python-pptx", _with_pptx),
    "xlsx": ("openpyxl", _with_openpyxl),
    "odt": ("odfdo", _with_odfdo),
    "ods": ("odfdo", _with_odfdo),
    "odp": ("odfdo", _with_odfdo),
    "epub": ("lxml", _pages_with_lxml),
    "html": ("lxml", _with_lxml_html),
    "xliff": ("lxml", _with_lxml),
    "po": ("polib", _with_polib),
    "srt": ("srt", _with_srt),
    "vtt": ("webvtt-py", _with_webvtt),
    "json": ("json", _with_json),
    "csv": ("csv", _with_csv),
}
"""The library of every format, by name, and what it writes."""
