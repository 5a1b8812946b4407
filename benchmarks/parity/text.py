"""Lines that every family translates: real ones where there are some, else the bundled sentences.

Owns their choice; no line of real text is written anywhere.
"""

from collections.abc import Sequence
from pathlib import Path

SENTENCES = Path(__file__).resolve().parents[1] / "sentences.en"
REAL_TEXT = ("en-zh/dev/3am-captions.en", "en-zh/dev/docs-heldout.en")


def read_lines(data: str | None, count: int) -> list[str]:
    """So many lines, half of each corpus of real text.

    Args:
        data: What DRAGOMAN_DATA says.
        count: How many.
    """
    paths = [Path(data) / name for name in REAL_TEXT] if data else [SENTENCES]
    found: list[str] = []
    for number, path in enumerate(paths):
        wanted = (count - len(found)) // (len(paths) - number)
        lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
        found += varied(lines, wanted)
    return found


def varied(lines: Sequence[str], count: int) -> list[str]:
    """So many lines; those of the second time begin at their second word, and so on."""
    found = []
    for number in range(count):
        words = lines[number % len(lines)].split(" ")
        first = number // len(lines) % len(words)
        found.append(" ".join([*words[first:], *words[:first]]))
    return found


def told_text(data: str | None) -> list[str]:
    """Names of the files, for the results."""
    return list(REAL_TEXT) if data else [SENTENCES.name]
