"""Corpora that benchmarks take their sentences from, one of each in turn.

Owns what is read of a folder of data: all dev sets that have two languages, strings of interfaces
out of training text, and the sentences of mails.tsv, in an order that is the same at every run.
"""

import random
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

from model.train.data.parallel import read_lines

INTERFACES = ("aosp-apps", "thunderbird")
MAILS = Path(__file__).with_name("mails.tsv")
"""The same sentences in each of its columns' languages."""
Corpus = list[tuple[str, str, str]]
"""Sources, references, and the name of where they are from."""


def dev_pairs(folder: Path, source: str, target: str) -> list[tuple[str, str]]:
    """Sources and references of all corpora of a folder that have both languages."""
    return [(text, reference) for text, reference, _ in named_pairs(folder, source, target)]


def named_pairs(folder: Path, source: str, target: str) -> list[tuple[str, str, str]]:
    """Sources, references and corpora of a folder that has both languages, corpora in turn."""
    return in_turn(dev_corpora(folder, source, target))


def in_turn(corpora: Sequence[Corpus]) -> list[tuple[str, str, str]]:
    """Sentences of several corpora, one of each after the other."""
    return [pair for turn in zip_longest(*corpora) for pair in turn if pair is not None]


def dev_corpora(folder: Path, source: str, target: str) -> list[Corpus]:
    """All corpora of a folder that have both languages, their sentences in some order."""
    return [
        _corpus(path, path.with_suffix(f".{target}"), path.stem)
        for path in sorted(folder.glob(f"*.{source}"))
        if path.with_suffix(f".{target}").exists()
    ]


def interfaces(folder: Path, source: str, target: str) -> list[Corpus]:
    """Strings of interfaces, of a folder of training text."""
    sides = [
        (folder / f"{name}.{source}.gz", folder / f"{name}.{target}.gz", name)
        for name in INTERFACES
    ]
    return [_corpus(*one) for one in sides if one[0].exists() and one[1].exists()]


def mails(source: str, target: str) -> list[Corpus]:
    """Sentences of mails, if both languages are among theirs."""
    languages, *rows = (line.split("\t") for line in MAILS.read_text("utf-8").splitlines())
    if not {source, target} <= set(languages):
        return []
    sides = [languages.index(language) for language in (source, target)]
    return [_shuffled([(row[sides[0]], row[sides[1]]) for row in rows], "mails")]


def _corpus(source: Path, target: Path, name: str) -> Corpus:
    return _shuffled(zip(read_lines(source), read_lines(target), strict=True), name)


def _shuffled(pairs: Iterable[tuple[str, str]], name: str) -> Corpus:
    corpus = [(*pair, name) for pair in pairs]
    random.Random(1).shuffle(corpus)
    return corpus
