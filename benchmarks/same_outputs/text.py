"""Text of the comparison: which lines of which files go through both checkouts.

Owns the choice of corpora and of their lines; no sentence of them is written anywhere.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

SENTENCES = Path(__file__).resolve().parents[1] / "sentences.en"
REAL_LINES = 500
"""Of each corpus: 2,000 of each language."""
REAL_TEXT: Mapping[str, Sequence[str]] = {
    "en": (
        "en-zh/dev/docs-heldout",
        "en-zh/dev/newstest2017",
        "en-zh/test/flores101-devtest",
        "en-zh/test/tatoeba-test-v2021-08-07",
    ),
    "zh": (
        "en-zh/dev/docs-heldout",
        "zh-en/test/newstest2019",
        "en-zh/test/flores101-devtest",
        "en-zh/test/tatoeba-test-v2021-08-07",
    ),
    "de": (
        "en-de/dev/docs-heldout",
        "de-en/test/newstest2019",
        "en-de/test/flores101-devtest",
        "en-de/test/tatoeba-test-v2021-08-07",
    ),
}
"""Corpora by language, as `PAIR/SPLIT/CORPUS` below the folder that DRAGOMAN_DATA names."""


def chosen_files(files: Sequence[Path], data: str | None) -> dict[Path, int | None]:
    """Files to read, and how many lines of each; None for all.

    Args:
        files: Named by the caller; they come first.
        data: What DRAGOMAN_DATA says; it comes before the bundled English sentences.
    """
    if files:
        return dict.fromkeys(files)
    if not data:
        return {SENTENCES: None}
    return {
        Path(data) / f"{corpus}.{language}": REAL_LINES
        for language, corpora in REAL_TEXT.items()
        for corpus in corpora
    }


def shown_name(path: Path) -> str:
    """A file as a results file names it: a known corpus below its folder, else its name alone."""
    below = "/".join(path.parts[-3:])
    is_known = any(below.rpartition(".")[0] in corpora for corpora in REAL_TEXT.values())
    return below if is_known else path.name


def spread(lines: Sequence[str], count: int | None) -> list[str]:
    """So many of the lines, at even distances; all of them for None."""
    if count is None or count >= len(lines):
        return list(lines)
    return [lines[number * len(lines) // count] for number in range(count)]


def read_text(files: Mapping[Path, int | None], limit: int | None) -> dict[str, list[str]]:
    """Lines that are not blank, by the files' suffixes.

    Args:
        files: What `chosen_files` returns.
        limit: Lines of each language at most.
    """
    found: dict[str, list[str]] = {}
    for path, count in files.items():
        lines = path.read_text(encoding="utf-8").split("\n")
        own = spread([line for line in lines if line.strip()], count)
        found.setdefault(path.suffix.removeprefix("."), []).extend(own)
    return {language: spread(lines, limit) for language, lines in found.items()}
