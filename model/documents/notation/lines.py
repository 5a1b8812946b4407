"""Lines of a text with their ends: CR LF, LF or a CR alone, as the formats of plain text know them.

Owns nothing else. `str.splitlines` ends lines at more characters, which inside of a subtitle or a
paragraph of Markdown end none.
"""

import re

_LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")


def lines_of(text: str) -> list[str]:
    """The lines of a text; joined, they are the text."""
    return _LINE.findall(text)
