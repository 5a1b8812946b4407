"""`python -m benchmarks.detection DATA`: how often the language of a text is detected.

Detects lines of public test sets among several choices of candidates, with all statistics and with
few, writes benchmarks/results/detection-<time>.json, and prints a table. DATA holds
`PAIR/test/CORPUS.LANGUAGE`, one sentence a line, and phrases.tsv: first phrases that people type,
acceptable renderings separated by `|`, a column a language.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from model.text.languages.detection import TextDetector
from model.text.languages.tags import primary_language
from model.train.data.parallel import find_text, read_lines

FLORES, TATOEBA, PHRASES = "flores101-devtest", "tatoeba-test-v2021-08-07", "phrases.tsv"
CANDIDATES: Mapping[str, Sequence[str]] = {
    "three": ("en", "de", "zh-Hans"),
    "six": ("en", "de", "es", "fr", "ja", "zh-Hans"),
    "twelve Latin": ("en", "de", "es", "fr", "it", "pt", "nl", "sv", "pl", "cs", "tr", "fi"),
}
"""Languages that a text may be in; the bundled ones are three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One set of texts of one language.

    Attributes:
        candidates: A key of `CANDIDATES`.
        is_compact: With few statistics.
        corpus: Where the texts are from.
        language: Of the texts.
        num_texts: How many.
        num_right: Of which the language was found.
        mistaken_for: What the others were taken for.
        confidence: Mean of those that were right.
        wrong_confidence: Mean of the others; None without any.
        cpu_milliseconds: A text.
    """

    candidates: str
    is_compact: bool
    corpus: str
    language: str
    num_texts: int
    num_right: int
    mistaken_for: Mapping[str, int]
    confidence: float
    wrong_confidence: float | None
    cpu_milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What statistics take.

    Attributes:
        candidates: A key of `CANDIDATES`.
        is_compact: With few statistics.
        num_bytes: By how much the process grew, beyond what was read before it.
        cpu_seconds: That reading took.
    """

    candidates: str
    is_compact: bool
    num_bytes: int
    cpu_seconds: float


def main() -> None:
    """Detect, write, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder that holds en-de/, en-zh/ and others")
    parser.add_argument("--limit", type=int, default=2_000, help="lines a set (%(default)s)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    started = datetime.now(UTC)
    machine = describe_machine()
    texts = dict(read_texts(arguments.data, arguments.limit))
    rows, memory = detect_all(texts)
    result = {
        "benchmark": "detection",
        "command": describe_command("benchmarks.detection", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": machine,
        "candidates": CANDIDATES,
        "memory": [asdict(one) for one in memory],
        "rows": [asdict(row) for row in rows],
    }
    path = write_result(arguments.results, "detection", started, result)
    print(table(rows))
    print(f"\n{path}")


def read_texts(data: Path, limit: int) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """The texts of every set that is there, by corpus and language.

    Raises:
        DataError: There is no such set.
    """
    for corpus in (FLORES, TATOEBA):
        for language in ("en", "de", "es", "fr", "ja", "zh"):
            folder = data / ("en-de" if language == "en" else f"en-{language}") / "test"
            yield (corpus, language), read_lines(find_text(folder, corpus, language))[:limit]
    header, *lines = read_lines(data / PHRASES)
    for place, language in enumerate(header.split("\t")):
        phrases = [text for line in lines for text in line.split("\t")[place].split("|")]
        yield (PHRASES, language), phrases


def detect_all(
    texts: Mapping[tuple[str, str], Sequence[str]],
) -> tuple[list[Row], list[Memory]]:
    """Every set among all candidates that its language is one of, and what that took."""
    rows, memory = [], []
    for is_compact in (True, False):  # a few statistics are part of all
        for candidates, tags in CANDIDATES.items():
            before, began = _resident_bytes(), time.process_time()
            detector = TextDetector(tags, is_compact=is_compact)
            detector.read_statistics()
            memory.append(
                Memory(
                    candidates=candidates,
                    is_compact=is_compact,
                    num_bytes=_resident_bytes() - before,
                    cpu_seconds=round(time.process_time() - began, 3),
                )
            )
            asked = Asked(detector=detector, candidates=candidates, is_compact=is_compact)
            by_language = {primary_language(tag): tag for tag in tags}
            rows += [
                asked.row(corpus, language, lines, by_language[language])
                for (corpus, language), lines in texts.items()
                if language in by_language
            ]
    return rows, memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A detector among some candidates.

    Attributes:
        detector: Of them.
        candidates: A key of `CANDIDATES`.
        is_compact: With few statistics.
    """

    detector: TextDetector
    candidates: str
    is_compact: bool

    def row(self, corpus: str, language: str, lines: Sequence[str], tag: str) -> Row:
        """What the detector says of lines whose language has this tag."""
        began = time.process_time()
        found = [self.detector.detect(line) for line in lines]
        seconds = time.process_time() - began
        right = [one.confidence for one in found if one.tag == tag]
        wrong = [one.confidence for one in found if one.tag != tag]
        return Row(
            candidates=self.candidates,
            is_compact=self.is_compact,
            corpus=corpus,
            language=language,
            num_texts=len(lines),
            num_right=len(right),
            mistaken_for=dict(Counter(one.tag for one in found if one.tag != tag)),
            confidence=round(sum(right) / max(1, len(right)), 1),
            wrong_confidence=round(sum(wrong) / len(wrong), 1) if wrong else None,
            cpu_milliseconds=round(1000 * seconds / max(1, len(lines)), 3),
        )


def _resident_bytes() -> int:
    """Of this process; Linux only."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def table(rows: Sequence[Row]) -> str:
    """The share of texts that were right, as Markdown."""
    lines = [
        "| candidates | texts | language | number | all statistics | few |",
        "|---|---|---|---|---|---|",
    ]
    few = {
        (row.candidates, row.corpus, row.language): row.num_right for row in rows if row.is_compact
    }
    for row in rows:
        if not row.is_compact:
            name = (row.candidates, row.corpus, row.language)
            shares = (
                f"{100 * right / row.num_texts:.1f} %" for right in (row.num_right, few[name])
            )
            lines.append(f"| {' | '.join([*name, str(row.num_texts), *shares])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
