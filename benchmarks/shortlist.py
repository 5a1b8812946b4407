"""`python -m benchmarks.shortlist CHECKPOINT SOURCE REFERENCE`: a lexical shortlist, both ways.

CHECKPOINT has a shortlist (`dragoman shortlist` makes a copy of any that has one). SOURCE and
REFERENCE are aligned lines. With it and without take turns, another one first each round: the whole
file, then its first lines one at a time, greedy and beam 4, after a round that is not timed. Prints
speeds and BLEU, and writes benchmarks/results/shortlist-<time>.json with every round.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import torch

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from model.checkpoint.description.config_file import read_manifest
from model.config import SearchConfig
from model.loading import Runnable, load_for_decoding
from model.offline.evaluate import default_tokenizer, score
from model.offline.translator import Translator
from model.text.languages.tags import LanguagePair
from model.train.data.parallel import iterate_parallel

BEAM_SIZES = (1, 4)
WAYS = ("all tokens", "shortlist")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One piece of work, both ways.

    Attributes:
        beam_size: Beams.
        work: "file", or "one at a time".
        num_lines: Lines of it.
        seconds: Of every round, by the way.
        bleu: By the way; of the file only.
    """

    beam_size: int
    work: str
    num_lines: int
    seconds: Mapping[str, Sequence[float]]
    bleu: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """How many times as fast the shortlist is: the median of the rounds."""
        pairs = zip(*(self.seconds[way] for way in WAYS), strict=True)
        quotients: list[float] = [plain / listed for plain, listed in pairs]
        return statistics.median(quotients)


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What is translated.

    Attributes:
        pair: Its languages.
        sources: Lines.
        references: Their translations.
        num_single: How many of them are translated one at a time.
    """

    pair: LanguagePair
    sources: Sequence[str]
    references: Sequence[str]
    num_single: int


def measured(translators: Mapping[str, Translator], texts: Texts, num_rounds: int) -> list[Row]:
    """Both kinds of work with every beam size."""
    rows = []
    for beam_size in BEAM_SIZES:
        search = SearchConfig(beam_size=beam_size)

        def all_at_once(way: str, search: SearchConfig = search) -> list[str]:
            found = translators[way].translate(texts.sources, texts.pair, search)
            return [translation.text for translation in found]

        def one_at_a_time(way: str, search: SearchConfig = search) -> list[str]:
            return [
                translators[way].translate([line], texts.pair, search)[0].text
                for line in texts.sources[: texts.num_single]
            ]

        for work, do in (("file", all_at_once), ("one at a time", one_at_a_time)):
            outputs, seconds = _rounds(do, num_rounds)
            num_lines = len(texts.sources) if work == "file" else texts.num_single
            bleu = _bleu(outputs, texts) if work == "file" else {}
            rows.append(
                Row(beam_size=beam_size, work=work, num_lines=num_lines, seconds=seconds, bleu=bleu)
            )
    return rows


def _rounds(
    do: Callable[[str], list[str]], num_rounds: int
) -> tuple[dict[str, list[str]], dict[str, list[float]]]:
    """What each way makes, and its seconds round by round; the first round warms up."""
    outputs = {way: do(way) for way in WAYS}
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(num_rounds):
        for way in WAYS if number % 2 else WAYS[::-1]:
            started = time.perf_counter()
            do(way)
            seconds[way].append(time.perf_counter() - started)
    return outputs, seconds


def _bleu(outputs: Mapping[str, list[str]], texts: Texts) -> dict[str, float]:
    tokenizer = default_tokenizer(texts.pair.target)
    return {
        way: score(lines, texts.references, tokenizer=tokenizer).bleu.value
        for way, lines in outputs.items()
    }


def mean_list_size(runnable: Runnable, texts: Texts) -> float:
    """Target tokens that a line chooses from, on average."""
    assert runnable.shortlist is not None
    size, tokenizer = runnable.manifest.network.output_size, runnable.tokenizer
    lists = (
        runnable.shortlist.tokens(tokenizer.encode(line, texts.pair), (), vocab_size=size)
        for line in texts.sources
    )
    return statistics.mean(map(len, lists))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the results."""
    parser = argparse.ArgumentParser(description="a lexical shortlist, with and without")
    parser.add_argument("checkpoint", type=Path, help="a checkpoint with a shortlist")
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--singles", type=int, default=100, help="lines translated one at a time")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    pair = read_manifest(options.checkpoint).pairs[0]
    lines = list(iterate_parallel(options.source, options.reference))
    sources, references = zip(*lines, strict=True)
    num_single = min(options.singles, len(lines))
    texts = Texts(pair=pair, sources=sources, references=references, num_single=num_single)
    plain, listed = (
        load_for_decoding(
            options.checkpoint, num_threads=options.threads, with_shortlist=with_shortlist
        )
        for with_shortlist in (False, True)
    )
    translators = dict(zip(WAYS, (Translator(plain), Translator(listed)), strict=True))
    rows = measured(translators, texts, options.rounds)
    size = mean_list_size(listed, texts)
    _print(rows, size, listed)
    now = datetime.now(UTC)
    report = {
        "command": describe_command("benchmarks.shortlist", sys.argv[1:]),
        "time": now.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "checkpoint": listed.manifest.name,
        "compute_type": listed.compute_type,
        "threads": options.threads,
        "vocabulary": listed.manifest.network.output_size,
        "mean_list_size": size,
        "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
    }
    write_result(options.results, "shortlist", now, report)
    return 0


def _print(rows: Sequence[Row], size: float, listed: Runnable) -> None:
    vocabulary = listed.manifest.network.output_size
    print(
        f"{listed.manifest.name}, {listed.compute_type}: {size:.0f} of {vocabulary} tokens a line"
    )
    print(
        "| beam | work | lines | all tokens, lines/s | shortlist, lines/s | times | BLEU | BLEU |"
    )
    print("|--:|:--|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        speeds = [row.num_lines / statistics.median(row.seconds[way]) for way in WAYS]
        bleu = [f"{row.bleu[way]:.2f}" if row.bleu else "" for way in WAYS]
        cells = [row.beam_size, row.work, row.num_lines, *(f"{speed:.1f}" for speed in speeds)]
        print("| " + " | ".join(map(str, [*cells, f"{row.ratio:.2f}", *bleu])) + " |")


if __name__ == "__main__":
    sys.exit(main())
