"""`python -m benchmarks.parity.pieces FAMILY FOLDER`: a network of a released size on many lines.

The comparison of `benchmarks.parity` with transformers, batch by batch, in a folder that keeps what
is done: `--seconds` ends it between two batches, and the same command goes on. The reference
answers everything before ours is loaded, so one of them is in memory at a time. Targets are short,
since random weights never end a sentence. When all is done, `--export-tokens` has the network
exported, and on so many tokens, of lines of all lengths, compares the exports with it, and its int8
with CTranslate2's own.

When all lines are done it prints the table's line, writes
benchmarks/results/parity-families-<time>.json and leaves with 1 if the network is not its
reference; with 75 if there is more to do. PYTHONPATH must hold `tests`.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch
from transformers.utils import logging

from benchmarks.machine import describe_command, describe_machine
from benchmarks.parity.__main__ import described
from benchmarks.parity.answers import Answers, add_answers, asked, reference_of
from benchmarks.parity.exported import compare_exports
from benchmarks.parity.families import FULL, REDUCED, Family
from benchmarks.parity.figures import COLUMNS, HEAD, Distance, Figures, merged, restored
from benchmarks.parity.subject import STORED, Sample, batches, convert_as, first_pair, opened
from benchmarks.parity.text import read_lines, text_facts
from benchmarks.results_file import RESULTS, write_result
from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.manifest import Manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.errors import ConfigError
from model.offline.translator import Translator

MORE_TO_DO = 75
"""The exit status of a piece that is not the last one (EX_TEMPFAIL)."""
MAX_LOGITS = 2**22
"""Of one position of a batch: sixteen sentences of a vocabulary of 256,000."""


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.parity.pieces", description=(__doc__ or "").splitlines()[0]
    )
    families = [family.name for family in (*FULL, *REDUCED) if family.reference == "transformers"]
    parser.add_argument("family", choices=families, help="of the table of benchmarks.parity")
    parser.add_argument("folder", type=Path, help="keeps network and answers; delete it afterwards")
    parser.add_argument("--sentences", type=int, default=500, help="how many (%(default)s)")
    parser.add_argument(
        "--max-target", type=int, default=10, help="tokens of a target at most (%(default)s)"
    )
    parser.add_argument(
        "--export-tokens",
        type=int,
        default=0,
        help="compare exports on so many (%(default)s: none)",
    )
    parser.add_argument("--seconds", type=float, help="begin no batch after so long")
    parser.add_argument(
        "--so-far",
        action="store_true",
        help="ask no more: judge what the reference has answered; short lines go first",
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args(words)
    if arguments.sentences < 1 or arguments.max_target < 2:
        parser.error("at least one sentence is needed, and targets of 2 tokens, EOS among them")
    return arguments


class Work:
    """A folder with a network, the answers of its reference and what was compared.

    Args:
        folder: Where; made if need be.
        family: Of the network.
        lines: What is asked.
        max_target: Tokens of a target at most.
        has_time: Whether another batch may begin.
        export_tokens: Tokens of targets that exports are compared on; with 0 there are none.
    """

    def __init__(
        self,
        folder: Path,
        family: Family,
        lines: Sequence[str],
        *,
        max_target: int,
        has_time: Callable[[], bool],
        export_tokens: int = 0,
    ) -> None:
        self._folder = folder
        self._family = family
        self._lines = lines
        self._max_target = max_target
        self._has_time = has_time
        self._export_tokens = export_tokens

    def go_on(self) -> bool:
        """Do what there is time for; whether all is done."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._check_same()
        return self._prepare() and self._ask() and self._compare() and self._export()

    def compare_answered(self) -> bool:
        """Compare batches that have answers; False if there are none, or there was no time."""
        self._check_same()
        has_answers = any(self._folder.glob("*.answers"))
        has_figures = any(self._folder.glob("[0-9]*.figures.json"))
        return (self._compare() if has_answers else has_figures) and self._export()

    def figures(self) -> Figures:
        """Of all batches that are done."""
        paths = sorted(self._folder.glob("[0-9]*.figures.json"))
        if self._export_tokens:
            paths.append(self._folder / f"exports-{self._export_tokens}.figures.json")
        return merged([restored(json.loads(path.read_text(encoding="utf-8"))) for path in paths])

    def _check_same(self) -> None:
        """Return if whatever is in the folder is of the same lines and settings.

        Raises:
            ConfigError: It is of others.
        """
        digest = hashlib.sha256("\n".join(self._lines).encode()).hexdigest()
        asked = json.dumps([self._family.name, self._max_target, digest])
        path = self._folder / "asked.json"
        if not path.exists():
            path.write_text(asked, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != asked:
            raise ConfigError(
                f"{self._folder} was begun with another family, other lines or lengths"
            )

    @property
    def _source(self) -> Path:
        (path,) = (self._folder / "source").iterdir()
        return path

    def _prepare(self) -> bool:
        """Write the network, and convert it twice."""
        if not (self._folder / "source").exists():
            partial = self._folder / "source.partial"
            partial.mkdir()
            self._family.write(partial)
            partial.rename(self._folder / "source")
        for compute in STORED:
            if not self._has_time():
                return False
            if not (self._folder / compute).exists():
                convert_as(compute, self._family, self._source, self._folder)
        return True

    def _samples(self) -> tuple[Manifest, list[Sample]]:
        directory = self._folder / "float32"
        manifest = read_manifest(directory)
        found = batches(
            load_tokenizer(directory, manifest),
            manifest,
            first_pair(self._family, manifest),
            self._lines,
            max_target=self._max_target,
            max_logits=MAX_LOGITS,
        )
        return manifest, list(found)

    def _left(self, samples: Sequence[Sample], ending: str) -> list[tuple[int, Sample]]:
        """Batches without a file of this kind, nor of what is made of it."""
        endings = {ending, "figures.json"}
        return [
            (number, sample)
            for number, sample in enumerate(samples)
            if not any((self._folder / f"{number:04}.{one}").exists() for one in endings)
        ]

    def _ask(self) -> bool:
        manifest, samples = self._samples()
        left = self._left(samples, "answers")
        if not left:
            return True
        if not self._has_time():
            return False
        theirs = reference_of(self._source)
        for number, sample in left:
            if not self._has_time():
                return False
            answers = asked(theirs, manifest.tokens, sample, max_length=self._max_target)
            answers.save(self._folder / f"{number:04}.answers")
        return True

    def _compare(self) -> bool:
        """Compare every batch that has answers."""
        left = [
            (number, sample)
            for number, sample in self._left(self._samples()[1], "figures.json")
            if (self._folder / f"{number:04}.answers").exists()
        ]
        if not left:
            return True
        if not self._has_time():
            return False
        subject = opened(self._family, self._source, self._folder)
        translator = Translator(subject.checkpoint)
        for number, sample in left:
            if not self._has_time():
                return False
            path = self._folder / f"{number:04}.answers"
            figures = Figures(
                family=self._family.name,
                reference=self._family.reference,
                num_sentences=len(sample.sources),
            )
            logits = add_answers(
                subject,
                translator,
                sample,
                Answers.load(path),
                figures,
                max_length=self._max_target,
            )
            float32 = sample.of_targets(logits.log_softmax(dim=-1))
            figures.int8.add_lists(subject.int8_log_probs(sample), float32)
            self._keep(figures, f"{number:04}")
            path.unlink()
        return True

    def _export(self) -> bool:
        """Compare exports on a part of the lines, all at once; the reference is not asked."""
        name = f"exports-{self._export_tokens}"
        if not self._export_tokens or (self._folder / f"{name}.figures.json").exists():
            return True
        if not self._has_time():
            return False
        samples = spread(self._samples()[1], self._export_tokens)
        subject = opened(self._family, self._source, self._folder)
        figures = Figures(family=self._family.name, reference=self._family.reference)
        with tempfile.TemporaryDirectory(prefix="exports-", dir=self._folder) as folder:
            compare_exports(subject, samples, figures, Path(folder))
        figures.int8_beside = Distance()
        for sample in samples:
            ours, float32 = subject.int8_log_probs(sample), subject.log_probs(sample)
            figures.int8_beside.add_lists(ours, float32)
        self._keep(figures, name)
        return True

    def _keep(self, figures: Figures, name: str) -> None:
        """Write figures to a file, which appears whole."""
        done = self._folder / f"{name}.figures.json"
        partial = done.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(figures)), encoding="utf-8")
        partial.rename(done)


def spread(samples: Sequence[Sample], num_tokens: int) -> list[Sample]:
    """As few batches as have so many target tokens, of all lengths; all, if they have fewer."""
    for count in range(1, len(samples)):
        chosen = [samples[number * len(samples) // count] for number in range(count)]
        if sum(len(target) for sample in chosen for target in sample.targets) >= num_tokens:
            return chosen
    return list(samples)


def main(words: Sequence[str]) -> int:
    """Go on; print, write and judge when all is done."""
    arguments = parse_arguments(words)
    started, clock = datetime.now(UTC), time.monotonic()
    data = os.environ.get("DRAGOMAN_DATA")
    family = next(one for one in (*FULL, *REDUCED) if one.name == arguments.family)
    limit = arguments.seconds
    work = Work(
        arguments.folder,
        family,
        read_lines(data, arguments.sentences),
        max_target=arguments.max_target,
        has_time=lambda: limit is None or time.monotonic() - clock < limit,
        export_tokens=arguments.export_tokens,
    )
    is_done = work.compare_answered() if arguments.so_far else work.go_on()
    if not is_done:
        print(f"{family.name}: there is more to do; the same command goes on")
        return MORE_TO_DO
    figures = work.figures()
    print(COLUMNS.format(*HEAD))
    print(figures.row())
    result = {
        "benchmark": "parity-families",
        "command": describe_command("benchmarks.parity.pieces", words),
        "started": started.isoformat(timespec="seconds"),
        "max_target": arguments.max_target,
        "export_tokens": arguments.export_tokens,
        "machine": describe_machine(),
        "references": {name: version(name) for name in ("transformers", "ctranslate2")},
        "text": text_facts(data),
        "rows": [described(figures, time.monotonic() - clock)],
    }
    path = write_result(arguments.results, "parity-families", started, result)
    print(path)
    return 0 if figures.is_parity else 1


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    sys.exit(main(sys.argv[1:]))
