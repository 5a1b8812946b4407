"""Every place where a person can put text, in files that LibreOffice made and reads again.

A flat document has a phrase in each place. LibreOffice makes an archive of it, the phrases that are
found there are put in capitals, and LibreOffice makes a flat document again. Which places are
translated, docs/documents.md tells.
"""

import re
from pathlib import Path

import pytest

from model.documents.formats import open_document
from support.libreoffice import SOFFICE, converted

pytestmark = [
    pytest.mark.office,
    pytest.mark.timeout(600),
    pytest.mark.skipif(SOFFICE is None, reason="LibreOffice is not installed"),
]

SUPPORT = Path(__file__).parents[2] / "support"
PHRASE = re.compile(
    r"[>\"]([a-z]+ (?:words|title|description|subject|hint|name|comment|keyword))\b"
)
BETWEEN_KEYWORDS = re.compile(r"</meta:keyword>\s*<meta:keyword>")
"""What it makes of the spaces in a property of Word's."""
LOST_BY_LIBREOFFICE = {
    "docx": {"picture title"},
    "odt": set[str](),
    "pptx": {f"{what} {said}" for what in ("frame", "group") for said in ("title", "description")}
    | {"picture title"},
    "odp": set[str](),
    "xlsx": {"picture title", "shape title", "shape description"},
    "ods": set[str](),
}
"""What it does not write into, or does not read from, a format, whoever translates."""
STAYS = {
    "docx": {"input hint", "deleted words"},
    "odt": {"input hint", "deleted words"},
    "pptx": set[str](),
    "odp": set[str](),
    "xlsx": {"error title", "error words", "help title", "help words", "sheet name"},
    "ods": {"sheet name"},
}


@pytest.mark.parametrize(
    ("ending", "flat"),
    [("docx", "fodt"), ("odt", "fodt"), ("pptx", "fodp"), ("odp", "fodp"), ("xlsx", "fods"),
     ("ods", "fods")],
)  # fmt: skip
def test_every_place_is_translated_or_listed(tmp_path: Path, ending: str, flat: str) -> None:
    source = SUPPORT / f"places.{flat}"
    phrases = set(PHRASE.findall(source.read_text(encoding="utf-8")))
    made = converted(source, ending, tmp_path / "made")
    document = open_document(made.read_bytes(), ending)
    made.write_bytes(document.rebuild([text.upper() for text in document.texts]))
    text = converted(made, flat, tmp_path / "again").read_text(encoding="utf-8")
    text = BETWEEN_KEYWORDS.sub(" ", text)
    translated = {one for one in phrases if one.upper() in text}
    left = {one for one in phrases - translated if one in text}
    assert left == STAYS[ending]
    assert phrases - translated - left == LOST_BY_LIBREOFFICE[ending]
