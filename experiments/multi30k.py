"""Multi30k in the form that published scores use, and scores in that form and as people read it.

    python experiments/multi30k.py text DATA OUTPUT

reads `DATA/en-de/{train,dev,test}/multi30k*` and writes `OUTPUT/multi30k/…`: lower case, normalised
and tokenised (Moses), for `dragoman train experiments/multi30k-en-de-tiny.yaml --data OUTPUT`.

    python experiments/multi30k.py score DATA CHECKPOINT… [--tokenised] [--beam-size 5]

translates val and the test sets and prints three BLEU scores of the same translations: of the text
as it was written (sacrebleu 13a, cased), of that in lower case, and "lc.norm.tok", the figure of
Wu et al. 2021 ("Good for Misconceived Reasons"). `--tokenised` is for checkpoints trained on what
`text` writes: they read tokens, and what they write is detokenised before the first two scores.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

from commands import one_line_errors
from model.config import SearchConfig
from model.loading import load_for_decoding
from model.offline.evaluate import score
from model.offline.translator import Translator
from model.train.data.parallel import find_text, read_lines

CORPORA = {
    "train": ("multi30k",),
    "dev": ("multi30k-val",),
    "test": (
        "multi30k-test-2016-flickr",
        "multi30k-test-2017-flickr",
        "multi30k-test-2017-mscoco",
    ),
}
LANGUAGES = ("en", "de")


class MosesLine:
    """What Multi30k's own scripts do to a line: lower case, punctuation, tokens."""

    def __init__(self, language: str) -> None:
        self._normalizer = MosesPunctNormalizer(language)
        self._tokenizer = MosesTokenizer(language)

    def __call__(self, line: str) -> str:
        """Tokens of `line`, one space between them, nothing escaped."""
        normalised = self._normalizer.normalize(line.lower())
        return str(self._tokenizer.tokenize(normalised, return_str=True, escape=False))


class PlainLine:
    """The way back, but for the capitals: tokens to text."""

    def __init__(self, language: str) -> None:
        self._detokenizer = MosesDetokenizer(language)

    def __call__(self, line: str) -> str:
        """A sentence as people write it."""
        return str(self._detokenizer.detokenize(line.split(), unescape=False))


def main() -> None:
    """Prepare, or score."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    text = commands.add_parser("text", help="write every corpus, both sides")
    text.add_argument("data", type=Path, help="folder that holds en-de/")
    text.add_argument("output", type=Path, help="gets multi30k/{train,dev,test}/")
    text.set_defaults(run=write_text)
    scores = commands.add_parser("score", help="print BLEU in three forms")
    scores.add_argument("data", type=Path, help="folder that holds en-de/")
    scores.add_argument("checkpoints", type=Path, nargs="+", help="checkpoint directories")
    scores.add_argument("--tokenised", action="store_true", help="they read what `text` writes")
    scores.add_argument("--beam-size", type=int, default=5)
    scores.set_defaults(run=print_scores)
    arguments = parser.parse_args()
    run: Callable[[argparse.Namespace], None] = arguments.run
    with one_line_errors():
        run(arguments)


def write_text(arguments: argparse.Namespace) -> None:
    """Write every corpus, both sides."""
    for split, names in CORPORA.items():
        folder = arguments.output / "multi30k" / split
        for name in names:
            for language in LANGUAGES:
                clean = MosesLine(language)
                lines = read_original(arguments.data, split, name, language)
                text = "".join(f"{clean(line)}\n" for line in lines)
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{name}.{language}").write_text(text, encoding="utf-8", newline="\n")


def print_scores(arguments: argparse.Namespace) -> None:
    """A row for every set of every checkpoint."""
    print("| checkpoint | set | 13a, cased | 13a, lower case | lc.norm.tok |")
    print("| --- | --- | --: | --: | --: |")
    search = SearchConfig(beam_size=arguments.beam_size)
    for directory in arguments.checkpoints:
        checkpoint = load_for_decoding(directory)
        translator = Translator(checkpoint, max_rows=128)
        pair = checkpoint.manifest.pairs[0]
        for split in ("dev", "test"):
            for name in CORPORA[split]:
                sources, references = (
                    read_original(arguments.data, split, name, language)
                    for language in (pair.source, pair.target)
                )
                if arguments.tokenised:
                    sources = [*map(MosesLine(pair.source), sources)]
                found = [one.text for one in translator.translate(sources, pair, search)]
                tokens = MosesLine(pair.target)
                hypotheses = [*map(PlainLine(pair.target), found)] if arguments.tokenised else found
                tokenised = found if arguments.tokenised else [*map(tokens, found)]
                values = (
                    *two_scores(hypotheses, references),
                    bleu(tokenised, [*map(tokens, references)], "none"),
                )
                cells = " | ".join(f"{value:.2f}" for value in values)
                print(f"| {checkpoint.manifest.name} | {name} | {cells} |", flush=True)


def two_scores(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, float]:
    """BLEU of text as people write it: with its capitals, and without."""
    lower = bleu([*map(str.lower, hypotheses)], [*map(str.lower, references)], "13a")
    return bleu(hypotheses, references, "13a"), lower


def bleu(hypotheses: Sequence[str], references: Sequence[str], tokenizer: str) -> float:
    """0 to 100."""
    return score(hypotheses, references, tokenizer=tokenizer).bleu.value


def read_original(data: Path, split: str, name: str, language: str) -> list[str]:
    """One side of a corpus as it was published."""
    return list(read_lines(find_text(data / "en-de" / split, name, language)))


if __name__ == "__main__":
    main()
