"""Multi30k in the form that published scores use: lower case, normalised, tokenised (Moses).

    python experiments/multi30k.py DATA OUTPUT

reads `DATA/en-de/{train,dev,test}/multi30k*` and writes `OUTPUT/multi30k/…` for
`dragoman train experiments/multi30k-en-de-tiny.yaml --data OUTPUT`. BLEU over these files, with
`--tokenize none`, is the "lc.norm.tok" figure of Wu et al. 2021 ("Good for Misconceived Reasons").
"""

import argparse
from pathlib import Path

from sacremoses import MosesPunctNormalizer, MosesTokenizer

from model.train.data import find_text, read_lines

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


def main() -> None:
    """Write every corpus, both sides."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path, help="folder that holds en-de/")
    parser.add_argument("output", type=Path, help="gets multi30k/{train,dev,test}/")
    arguments = parser.parse_args()
    for split, names in CORPORA.items():
        folder = arguments.output / "multi30k" / split
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            for language in LANGUAGES:
                clean = MosesLine(language)
                lines = read_lines(find_text(arguments.data / "en-de" / split, name, language))
                text = "".join(f"{clean(line)}\n" for line in lines)
                (folder / f"{name}.{language}").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
