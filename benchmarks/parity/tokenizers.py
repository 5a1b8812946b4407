"""`python -m benchmarks.parity.tokenizers`: are our ids those of every family's own tokenizer?

Pieces of every family's kind are learned from real lines, and its files are converted. Then 10,000
other lines, in several languages, are encoded by us and by the family's own tokenizer, and what
that one makes of as many targets is decoded by both. Prints a table and writes
benchmarks/results/parity-tokenizers-<time>.json; leaves with 1 if a line differs.

A tie is a line that SentencePiece may cut in two ways of one likelihood, which its own code and the
tokenizers library break differently. Skipped are lines that hold a token of the reference, such as
`</s>`: it takes them for tokens, and we for text. Spaces around a decoded text do not count.

Text: the folder that DRAGOMAN_DATA names (pieces from its training text, lines from test sets),
else the bundled sentences, varied. No line of it is printed or written. Generators are the tests':
PYTHONPATH must hold `tests`.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from transformers.utils import logging

from benchmarks.machine import describe_command, describe_machine
from benchmarks.parity.text import spread_lines
from benchmarks.parity.tokenizer_families import (
    TOKENIZERS,
    Ids,
    Learned,
    Reference,
    TokenizerFamily,
)
from benchmarks.results_file import RESULTS, write_result

OTHERS = ("de", "es", "fr", "ja", "zh")
_COLUMNS = "{:20} {:25} {:>7} {:>9} {:>6} {:>9} {:>8} {:>8}"
_HEAD = ("family", "reference", "lines", "encoded", "ties", "decoded", "skipped", "differ")
_TIE = 1e-3
_NUM_LEARNED = 10_000
"""Lines that pieces are learned from, of English and of the others each."""
_MAX_NAMED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Lines.

    Attributes:
        training: What pieces are learned from.
        sources: What is encoded.
        targets: What is decoded, once the reference has encoded it.
    """

    training: Sequence[str]
    sources: Sequence[str]
    targets: Sequence[str]

    @classmethod
    def read(cls, data: str | None, count: int, *, is_moses: bool) -> "Text":
        """So many sources and targets; for Moses' rules, in English and German alone.

        Args:
            data: What DRAGOMAN_DATA says.
            count: How many.
            is_moses: Whether words are cut by the rules of one language a side.
        """
        others = ("de",) if is_moses else OTHERS
        held_out = spread_lines(data, count, split="test", languages=("en",))
        targets = spread_lines(data, count, split="test", languages=others)
        half = [] if is_moses else targets[: count // 2]
        training = [
            *spread_lines(data, _NUM_LEARNED, split="train", languages=("en",)),
            *spread_lines(data, _NUM_LEARNED, split="train", languages=others),
        ]
        return cls(
            training=training,
            sources=_repeated([*half, *held_out], count),
            targets=_repeated(targets, count),
        )


def _repeated(lines: Sequence[str], count: int) -> list[str]:
    """The first so many, from the start again where there are fewer."""
    return [lines[number % len(lines)] for number in range(count)]


@dataclass(slots=True)
class Agreement:
    """A family's line of the table.

    Attributes:
        num_lines: Sources, and targets likewise.
        num_encoded: Sources with the reference's ids.
        num_ties: Sources cut in another way of the same likelihood.
        num_decoded: Targets with the reference's text.
        num_skipped: Sources and targets that were not compared.
        differences: Where the first others are: "source 12".
        num_differing: How many they are.
    """

    family: str
    reference: str
    num_lines: int
    num_encoded: int = 0
    num_ties: int = 0
    num_decoded: int = 0
    num_skipped: int = 0
    num_differing: int = 0
    differences: list[str] = field(default_factory=list)

    def differ(self, place: str) -> None:
        """Count a line that is neither equal nor a tie."""
        self.num_differing += 1
        if len(self.differences) < _MAX_NAMED:
            self.differences.append(place)

    def row(self) -> str:
        """A line of the table."""
        return _COLUMNS.format(
            *(self.family, self.reference, self.num_lines, self.num_encoded, self.num_ties),
            *(self.num_decoded, self.num_skipped, self.num_differing),
        )


def compared(family: TokenizerFamily, text: Text) -> Agreement:
    """A family's line; its files are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="dragoman-tokenizers-") as folder:
        source = family.write(Path(folder), Learned(lines=text.training))
        reference = family.open(source)
        tokenizer, pair = family.ours(source, Path(folder) / "ours")
        found = Agreement(
            family=family.name, reference=family.reference, num_lines=len(text.sources)
        )
        names, first = tokenizer.source_pieces(), reference.num_before
        cleaned = reference.cleaned(text.sources)
        for number, (line, clean) in enumerate(zip(text.sources, cleaned, strict=True)):
            if reference.skips(line):
                found.num_skipped += 1
                continue
            ours, theirs = tokenizer.encode(line, pair)[first:], reference.encode(clean)[first:]
            if list(ours) == list(theirs):
                found.num_encoded += 1
            elif _is_tie(reference, names, ours, theirs):
                found.num_ties += 1
            else:
                found.differ(f"source {number}")
        for number, line in enumerate(text.targets):
            if reference.skips(line):
                found.num_skipped += 1
                continue
            ids = reference.encode_target(line)
            if tokenizer.decode(ids).strip() == reference.decode(ids).strip():
                found.num_decoded += 1
            else:
                found.differ(f"target {number}")
    return found


def _is_tie(reference: Reference, names: dict[int, str], ours: Ids, theirs: Ids) -> bool:
    """Whether both are the same text, which SentencePiece scores alike in both ways."""
    pieces = reference.pieces
    if pieces is None:
        return False

    def score(ids: Ids) -> float:
        known = (pieces.piece_to_id(names[index]) for index in ids if index in names)
        return float(sum(map(pieces.get_score, known)))

    def spelled(ids: Ids) -> str:
        return "".join(names.get(index, f"<{index}>") for index in ids)

    return spelled(ours) == spelled(theirs) and abs(score(ours) - score(theirs)) < _TIE


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.parity.tokenizers",
        description=(__doc__ or "").splitlines()[0],
    )
    parser.add_argument("--lines", type=int, default=10_000, help="of each family (%(default)s)")
    names = [family.name for family in TOKENIZERS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="FAMILY")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args(words)
    if arguments.lines < 1:
        parser.error("at least one line is needed")
    return arguments


def main(words: Sequence[str]) -> int:
    """Compare, print, write, judge."""
    arguments = parse_arguments(words)
    started, clock = datetime.now(UTC), time.monotonic()
    data = os.environ.get("DRAGOMAN_DATA")
    texts = {
        is_moses: Text.read(data, arguments.lines, is_moses=is_moses) for is_moses in (False, True)
    }
    print(_COLUMNS.format(*_HEAD))
    rows = []
    for family in TOKENIZERS:
        if arguments.only is None or family.name in arguments.only:
            rows.append(compared(family, texts[family.is_moses]))
            print(rows[-1].row(), flush=True)
    result = {
        "benchmark": "parity-tokenizers",
        "command": describe_command("benchmarks.parity.tokenizers", words),
        "started": started.isoformat(timespec="seconds"),
        "wall_seconds": round(time.monotonic() - clock, 1),
        "machine": describe_machine(),
        "references": {name: version(name) for name in ("transformers", "sentencepiece")},
        "text": "real lines of test sets" if data else "bundled sentences, varied",
        "rows": [asdict(row) for row in rows],
    }
    path = write_result(arguments.results, "parity-tokenizers", started, result)
    num_failed = sum(row.num_differing > 0 for row in rows)
    print(f"\n{len(rows) - num_failed} of {len(rows)} tokenizers are their references'\n{path}")
    return 1 if num_failed else 0


if __name__ == "__main__":
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    sys.exit(main(sys.argv[1:]))
