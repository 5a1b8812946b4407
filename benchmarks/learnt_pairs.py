"""Which pairs of a test set a checkpoint has read in training.

Owns how pairs are compared (letters and digits alone, so that case and punctuation make no other
sentence) and where a checkpoint's text lies: `PAIR/train/CORPUS` below the data folder, for the
corpora that its manifest credits. Text that was made for it, such as a back-translation, is not
there and is not compared.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from model.errors import DataError
from model.text.languages.tags import LanguagePair, primary_language
from model.train.data.filtering import sentence_key
from model.train.data.parallel import find_text, iterate_parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntPairs:
    """Keys of all pairs that were read.

    Attributes:
        corpora: Names of those that were found.
        keys: Of their pairs, source first.
    """

    corpora: tuple[str, ...] = ()
    keys: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)

    def are_learnt(self, sources: Sequence[str], references: Sequence[str]) -> list[bool]:
        """Whether each pair of a set was read."""
        return [key in self.keys for key in map(_key, zip(sources, references, strict=True))]


def read_learnt_pairs(data: Path, corpora: Iterable[str], pair: LanguagePair) -> LearntPairs:
    """All pairs of some corpora, in one direction.

    Args:
        data: Holds the folders of language pairs.
        corpora: Names; what `data` does not have is left out.
        pair: The direction.

    Raises:
        DataError: The sides of a corpus have different numbers of lines, or cannot be read.
    """
    tags = (primary_language(pair.source), primary_language(pair.target))
    found, keys = [], set[tuple[str, str]]()
    for corpus in dict.fromkeys(corpora):
        for folder in (data / "-".join(tags) / "train", data / "-".join(reversed(tags)) / "train"):
            try:
                source, target = (find_text(folder, corpus, tag) for tag in tags)
            except DataError:
                continue
            found.append(corpus)
            keys.update(map(_key, iterate_parallel(source, target, may_be_blank=True)))
    return LearntPairs(corpora=tuple(found), keys=frozenset(keys - {("", "")}))


def _key(pair: tuple[str, str]) -> tuple[str, str]:
    source, target = map(sentence_key, pair)
    return source, target
