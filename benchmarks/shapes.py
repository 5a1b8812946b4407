"""`python -m benchmarks.shapes SOURCE REFERENCE CHECKPOINT…`: quality against decoding speed.

Every checkpoint translates the same text, a file at once and its first sentences one by one; they
take turns within each round, and the medians of the rounds count. Prints a table and writes
benchmarks/results/shapes-<time>.json.
"""

import argparse
import math
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from model.config import SearchConfig
from model.loading import load_for_decoding
from model.offline.evaluate import default_tokenizer, score
from model.offline.translator import Translator
from model.train.data.parallel import read_lines

NUM_SINGLE = 50
"""Sentences that are also translated one by one."""


@dataclass(slots=True, kw_only=True)
class Shape:
    """What was measured of one checkpoint.

    Attributes:
        name: Of the checkpoint.
        num_encoder_layers: Of its network.
        num_decoder_layers: Of its network.
        d_model: Of its network.
        num_parameters: Of its network.
        compute_type: Arithmetic it was decoded in.
        bleu: Of the whole file.
        bleu_signature: sacrebleu's.
        sentences_per_second: The whole file at once, a round.
        milliseconds_per_sentence: One by one, a round.
    """

    name: str
    num_encoder_layers: int
    num_decoder_layers: int
    d_model: int
    num_parameters: int
    compute_type: str
    bleu: float = 0.0
    bleu_signature: str = ""
    sentences_per_second: list[float] = field(default_factory=list)
    milliseconds_per_sentence: list[float] = field(default_factory=list)


class Contestant:
    """A loaded checkpoint.

    Args:
        directory: The checkpoint.
        search: How it is searched.
        num_threads: Threads of its network.
    """

    def __init__(self, directory: Path, search: SearchConfig, *, num_threads: int) -> None:
        self._checkpoint = load_for_decoding(directory, num_threads=num_threads)
        self._translator = Translator(self._checkpoint, max_rows=128)
        self._search = search
        manifest = self._checkpoint.manifest
        network = manifest.network
        self.shape = Shape(
            name=manifest.name,
            num_encoder_layers=network.num_encoder_layers,
            num_decoder_layers=network.num_decoder_layers,
            d_model=network.d_model,
            num_parameters=sum(math.prod(one.shape) for one in manifest.tensors.values()),
            compute_type=self._checkpoint.compute_type,
        )

    def score(self, sources: Sequence[str], references: Sequence[str], tokenizer: str) -> None:
        """Translate everything once and note BLEU; the first run, so it is not timed."""
        found = score(self._translate(sources), references, tokenizer=tokenizer).bleu
        self.shape.bleu, self.shape.bleu_signature = round(found.value, 2), found.signature

    def run(self, sources: Sequence[str]) -> None:
        """One round."""
        started = time.perf_counter()
        self._translate(sources)
        middle = time.perf_counter()
        for source in sources[:NUM_SINGLE]:
            self._translate([source])
        ended = time.perf_counter()
        num_single = len(sources[:NUM_SINGLE])
        self.shape.sentences_per_second.append(round(len(sources) / (middle - started), 2))
        self.shape.milliseconds_per_sentence.append(round(1e3 * (ended - middle) / num_single, 3))

    @property
    def target(self) -> str:
        """Language of its first pair's target."""
        return self._checkpoint.manifest.pairs[0].target

    def _translate(self, sources: Sequence[str]) -> list[str]:
        pair = self._checkpoint.manifest.pairs[0]
        return [found.text for found in self._translator.translate(sources, pair, self._search)]


def main() -> None:
    """Score, take turns, write, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, help="UTF-8 text, one sentence a line, or .gz")
    parser.add_argument("reference", type=Path, help="its translation, line by line")
    parser.add_argument("checkpoints", type=Path, nargs="+", help="checkpoint directories")
    parser.add_argument("--tokenize", help="sacrebleu's tokenizer (by the target language)")
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    started = datetime.now(UTC)
    sources, references = read_lines(arguments.source), read_lines(arguments.reference)
    search = SearchConfig(beam_size=arguments.beam_size)
    contestants = [
        Contestant(directory, search, num_threads=arguments.threads)
        for directory in arguments.checkpoints
    ]
    for contestant in contestants:
        tokenizer = arguments.tokenize or default_tokenizer(contestant.target)
        contestant.score(sources, references, tokenizer)
    for number in range(arguments.rounds):
        first = number % len(contestants)
        for contestant in contestants[first:] + contestants[:first]:
            contestant.run(sources)
    shapes = [contestant.shape for contestant in contestants]
    result = {
        "benchmark": "shapes",
        "command": describe_command("benchmarks.shapes", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "text": arguments.source.name,
        "num_sentences": len(sources),
        "beam_size": arguments.beam_size,
        "num_threads": arguments.threads,
        "shapes": [asdict(shape) for shape in shapes],
    }
    path = write_result(arguments.results, "shapes", started, result)
    print(table(shapes))
    print(f"\n{path}")


def table(shapes: Sequence[Shape]) -> str:
    """The medians, in Markdown."""
    lines = [
        "| checkpoint | encoder + decoder, width | parameters | BLEU | sentences/s | one, ms |",
        "| --- | --- | --: | --: | --: | --: |",
    ]
    for one in shapes:
        cells = [
            one.name,
            f"{one.num_encoder_layers} + {one.num_decoder_layers}, {one.d_model}",
            f"{one.num_parameters / 1e6:.1f} M",
            f"{one.bleu:.1f}",
            f"{statistics.median(one.sentences_per_second):.0f}",
            f"{statistics.median(one.milliseconds_per_sentence):.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
