"""Lines of a keys file as they are written, valid TOML or not.

Owns where each name begins, and what is usually wrong in a line that TOML refuses: it names a
place, and no cause that helps. What the keys are is `service.access.keys`.
"""

import re

NAME_PATTERN = "[A-Za-z0-9_-]{1,64}"

_VALUE = re.compile(rf"""\s*(["']?)({NAME_PATTERN})\1\s*=""")
_HEADER = re.compile(rf"""\s*\[\s*(["']?)({NAME_PATTERN})\1\s*\]""")
_JOINED = re.compile(rf"""\}}\s*(["']?)({NAME_PATTERN})\1\s*=""")
_LINE = re.compile(r"\(at line (\d+), column \d+\)")


def lines_by_name(text: str) -> dict[str, list[int]]:
    """The lines, from 1, in which the key of each name begins; several of a name that comes twice.

    Args:
        text: Of a keys file.
    """
    found: dict[str, list[int]] = {}
    start = _VALUE
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if header := _HEADER.match(line):
            start = _HEADER  # lines with = are its fields from here on
        if begun := header or start.match(line):
            found.setdefault(begun[2], []).append(number)
    return found


def cause(text: str, problem: str) -> str:
    """The cause of a problem that TOML has with a text, quoting names alone; empty if not known.

    Args:
        text: Of a keys file.
        problem: The message of `tomllib`; it can quote the line.
    """
    lines = text.split("\n")
    if place := _LINE.search(problem):
        number = int(place[1])
    elif "end of document" in problem:
        number = len(text.rstrip().split("\n"))
    else:
        return ""
    line = lines[number - 1] if number <= len(lines) else ""
    begun, joined = _VALUE.match(line), _JOINED.search(line)
    if begun and joined:
        return (
            f"line {number} has two keys, {begun[2]} and {joined[2]}: each needs a line of its own"
        )
    for name, places in lines_by_name(text).items():
        if number in places[1:]:
            earlier = places[places.index(number) - 1]
            return (
                f"lines {earlier} and {number} both have the name {name}: a new key takes the place"
                " of the old one's line, or has another name"
            )
    return ""
