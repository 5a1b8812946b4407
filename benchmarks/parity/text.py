"""Lines that every family translates: real ones where there are some, else the bundled sentences.

Owns their choice; no line of real text is written anywhere.
"""

import gzip
from collections.abc import Iterator, Mapping, Sequence
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


def first_lines(data: str | None, counts: Mapping[str, int], *, language: str) -> list[str]:
    """The first lines of corpora of en-zh/dev; without real text, as many of the bundled, varied.

    Args:
        data: What DRAGOMAN_DATA says.
        counts: Lines of each corpus.
        language: Of the lines, if there is real text; the bundled sentences are English.
    """
    if not data:
        bundled = SENTENCES.read_text(encoding="utf-8").splitlines()
        return varied(bundled, sum(counts.values()))
    folder = Path(data) / "en-zh" / "dev"
    return [
        line
        for corpus, count in counts.items()
        for line in (folder / f"{corpus}.{language}").read_text("utf-8").splitlines()[:count]
    ]


def text_facts(data: str | None) -> list[str]:
    """Names of the files, for the results."""
    return list(REAL_TEXT) if data else [SENTENCES.name]


def spread_lines(
    data: str | None, count: int, *, split: str, languages: Sequence[str]
) -> list[str]:
    """Lines of all corpora of a split, as many of each as there are, up to `count` together.

    None is there twice: corpora of several pairs may share a side.

    Args:
        data: What DRAGOMAN_DATA says; without it, the bundled sentences are varied.
        count: How many.
        split: "train", "dev" or "test".
        languages: Ends of files' names, such as "de".
    """
    if not data:
        return varied(SENTENCES.read_text(encoding="utf-8").splitlines(), count)
    paths = sorted(
        path
        for path in Path(data).glob(f"*/{split}/*")
        if path.name.removesuffix(".gz").rpartition(".")[2] in languages
    )
    found: dict[str, None] = {}
    for number, path in enumerate(paths):
        wanted = len(found) + (count - len(found)) // (len(paths) - number)
        for line in _lines(path):
            if len(found) == wanted:
                break
            found[line] = None
    return list(found)


def _lines(path: Path) -> Iterator[str]:
    """Lines that are not empty, without spaces around them."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as file:
        yield from filter(None, (line.strip() for line in file))
