"""Types of the parts of Office Open XML: which have text, and what sets the text of some apart.

Owns these lists. How text is read in a part is `model.documents.archives.office_reader`'s.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Differences of the three formats.

    Attributes:
        main: Types of a part without which it is not of the kind.
        parts: Types of all parts with text.
    """

    main: re.Pattern[str]
    parts: re.Pattern[str]


_OPEN = r"application/vnd\.openxmlformats-officedocument\."
_OWN = r"application/vnd\.ms-"
TITLED = re.compile(r"application/vnd\.openxmlformats-package\.core-properties\+xml")
CHART = re.compile(rf"{_OPEN}drawingml\.chart\+xml")
NEW_CHART = re.compile(rf"{_OWN}office\.chartex\+xml")
"""Charts since 2016, as waterfalls and trees are."""
_DRAWN = (
    rf"{CHART.pattern}|{NEW_CHART.pattern}|{_OPEN}drawingml\.(?:diagramData|chartshapes)\+xml"
    rf"|{_OWN}office\.drawingml\.diagramDrawing\+xml|{TITLED.pattern}"
)
MASTER = re.compile(rf"{_OPEN}presentationml\.slide(?:Master|Layout)\+xml")
_WORD = rf"(?:{_OPEN}wordprocessingml|{_OWN}word)\.[A-Za-z.]+\.main\+xml"
_POWER_POINT = rf"(?:{_OPEN}presentationml|{_OWN}powerpoint)\.[A-Za-z.]+\.main\+xml"
_EXCEL = rf"(?:{_OPEN}spreadsheetml|{_OWN}excel)\.[A-Za-z.]+\.main\+xml"
THREADS = re.compile(rf"{_OWN}excel\.threadedcomments\+xml")
SHEET = re.compile(rf"{_OPEN}spreadsheetml\.worksheet\+xml")
TABLE = re.compile(rf"{_OPEN}spreadsheetml\.table\+xml")
PIVOT_CACHE = re.compile(rf"{_OPEN}spreadsheetml\.pivotCacheDefinition\+xml")
"""What a pivot table has read of its cells."""
FORMATS = {
    "docx": Format(
        main=re.compile(_WORD),
        parts=re.compile(
            rf"{_WORD}|{_DRAWN}"
            rf"|{_OPEN}wordprocessingml\.(?:header|footer|footnotes|endnotes|comments)\+xml"
        ),
    ),
    "pptx": Format(
        main=re.compile(_POWER_POINT),
        parts=re.compile(
            rf"{_DRAWN}|{_OPEN}presentationml\.(?:slide|notesSlide|comments)\+xml"
            rf"|{MASTER.pattern}|{_OWN}powerpoint\.comments\+xml"
        ),
    ),
    "xlsx": Format(
        main=re.compile(_EXCEL),
        parts=re.compile(
            rf"{SHEET.pattern}|{_DRAWN}|{_OPEN}drawing\+xml"
            rf"|{_OPEN}spreadsheetml\.(?:chartsheet|sharedStrings|comments)\+xml|{THREADS.pattern}"
        ),
    ),
}
KEEPS_SPACE = re.compile(rf"{_WORD}|{_OPEN}(?:wordprocessingml|spreadsheetml)\..+")
"""Parts whose text has to say that white space at its ends is meant; drawings must not."""
WORKBOOK = re.compile(rf"{_OPEN}spreadsheetml\..+")
"""Parts that write characters which XML has not as _x0007_."""
HAS_BARE_TEXT = re.compile(rf"{_OPEN}presentationml\.comments\+xml|{THREADS.pattern}")
"""Parts whose `text` elements have no runs."""
CELLS = re.compile(rf"{SHEET.pattern}|{_OPEN}spreadsheetml\.sharedStrings\+xml")
"""Parts with texts of cells."""
