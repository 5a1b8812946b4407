"""`python -m benchmarks.terms DATA`: how terms of a glossary come through networks, way by way.

Takes sentences of dev sets with a word whose translation their references have, which is found by
how often two words are in the same pairs, and wants that translation of it, in six ways: left to
the network; held to it by the search; the same with twice the beam; carried by a stand-in; split
around it; and as library and server do, one after another. Prints, for each direction, how many
terms are there, chrF and BLEU against the references, and writes
benchmarks/results/terms-<time>.json. DATA holds `PAIR/dev/CORPUS.LANGUAGE`.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from sacrebleu import corpus_bleu, corpus_chrf

from benchmarks.corpora import dev_pairs
from benchmarks.over_checkpoints import measure_all
from model.config import SearchConfig
from model.loading import load_for_decoding
from model.offline.translator import Translator
from model.text.constraints.control import Control
from model.text.constraints.glossary import Entry, Glossary, uses_of
from model.text.drafts.segments import PreparedText, Segment
from model.text.languages.tags import LanguagePair, primary_language

_WORD = re.compile(r"[^\W\d_]{5,}")
_WIDE = re.compile(r"[\u4e00-\u9fff]+")
_MIN_PAIRS, _MAX_SHARE, _MIN_DICE = 4, 0.02, 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Termed:
    """A sentence with a term.

    Attributes:
        source: It.
        reference: Its translation.
        glossary: What the term has to be translated as.
    """

    source: str
    reference: str
    glossary: Glossary


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one way made of the sentences of one direction.

    Attributes:
        pair: The direction.
        way: How terms were wanted.
        num_terms: How many there were.
        hits: Share of them that are in the translation.
        chrf: Of all sentences, against the references.
        bleu: Likewise.
    """

    pair: str
    way: str
    num_terms: int
    hits: float
    chrf: float
    bleu: float


def words_of(text: str, language: str) -> set[str]:
    """The words of a sentence that may be terms; of Chinese all stretches of two to four signs."""
    if language != "zh":
        return set(_WORD.findall(text))
    return {
        run[start : start + length]
        for run in _WIDE.findall(text)
        for length in (2, 3, 4)
        for start in range(len(run) - length + 1)
    }


def translations(
    pairs: Sequence[tuple[str, str]], source: str, target: str
) -> Mapping[str, tuple[str, float]]:
    """For each word the one that is most often where it is, with their Dice coefficient."""
    words = [(words_of(own, source), words_of(other, target)) for own, other in pairs]
    counts = [Counter(word for one in words for word in one[side]) for side in (0, 1)]
    kept = [
        {w for w, n in one.items() if _MIN_PAIRS <= n <= _MAX_SHARE * len(pairs)} for one in counts
    ]
    both = Counter(pair for own, other in words for pair in product(own & kept[0], other & kept[1]))
    best: dict[str, tuple[str, float]] = {}
    for (own, other), number in both.items():
        dice = 2 * number / (counts[0][own] + counts[1][other])
        if dice > best.get(own, ("", _MIN_DICE))[1]:
            best[own] = (other, dice)
    return best


def termed_sentences(
    pairs: Sequence[tuple[str, str]], source: str, target: str, *, limit: int
) -> list[Termed]:
    """Sentences with a word that once is in them, and its translation once in their reference."""
    known = translations(pairs, source, target)
    found: list[Termed] = []
    for own, other in pairs:
        entries = [
            Entry(source=word, target=known[word][0])
            for word in sorted(words_of(own, source) & known.keys())
            if own.count(word) == 1 == other.count(known[word][0])
        ]
        if entries and len(found) < limit:
            glossary = Glossary(entries[:2])
            found.append(Termed(source=own, reference=other, glossary=glossary))
    return found


class Ways:
    """Ways of one checkpoint, each from sentences to translations.

    Args:
        translator: Of the checkpoint.
        pair: Its direction.
    """

    def __init__(self, translator: Translator, pair: LanguagePair) -> None:
        self._translator = translator
        self._pair = pair
        self.each: Mapping[str, Callable[[Sequence[Termed]], list[str]]] = {
            "left alone": self._left_alone,
            "constrained": self._constrained,
            "constrained, beam 8": lambda texts: self._constrained(texts, beam_size=8),
            "carried": self._carried,
            "copied": self._copied,
            "all": self._all,
        }

    def _left_alone(self, texts: Sequence[Termed]) -> list[str]:
        found = self._translator.translate([one.source for one in texts], self._pair)
        return [translation.text for translation in found]

    def _constrained(self, texts: Sequence[Termed], *, beam_size: int = 4) -> list[str]:
        prepared = [self._prepared(one.source, one.glossary) for one in texts]
        held = [
            replace(one, segments=tuple(replace(s, is_held=True) for s in one.segments))
            for one in prepared
        ]
        return self._found(held, SearchConfig(beam_size=beam_size))

    def _carried(self, texts: Sequence[Termed]) -> list[str]:
        return self._found([self._prepared(t.source, t.glossary.first_hop()) for t in texts])

    def _copied(self, texts: Sequence[Termed]) -> list[str]:
        return self._found([self._split(one) for one in texts])

    def _all(self, texts: Sequence[Termed]) -> list[str]:
        found = []
        for one in texts:
            control = Control(glossary=one.glossary)
            found += self._translator.translate([one.source], self._pair, control=control)
        return [translation.text for translation in found]

    def _prepared(self, text: str, glossary: Glossary | None) -> PreparedText:
        return self._translator.pipeline.prepare(text, self._pair, Control(glossary=glossary))

    def _split(self, one: Termed) -> PreparedText:
        parts: list[PreparedText] = []
        done = 0
        for term in one.glossary.find(one.source, []):
            parts.append(self._prepared(one.source[done : term.start], None))
            copy = Segment(text=one.source[term.start : term.end], source_ids=(), copy=term.target)
            parts.append(PreparedText(pair=self._pair, segments=(copy,), separators=("", "")))
            done = term.end
        parts.append(self._prepared(one.source[done:], None))
        separators = [""]
        for part in parts:
            separators[-1] += part.separators[0]
            separators += part.separators[1:]
        segments = tuple(segment for part in parts for segment in part.segments)
        return PreparedText(pair=self._pair, segments=segments, separators=tuple(separators))

    def _found(
        self, prepared: Sequence[PreparedText], search: SearchConfig | None = None
    ) -> list[str]:
        translator, search = self._translator, search or SearchConfig()
        requests = [translator.requests(text, self._pair, search) for text in prepared]
        found = iter(translator.search([one for own in requests for one in own]))
        return [
            translator.pipeline.finish(text, [next(found)[0] for _ in text.network_segments]).text
            for text in prepared
        ]


def measure(directory: Path, data: Path, num_sentences: int) -> Iterator[Figures]:
    """Figures of every way, of one checkpoint.

    Args:
        directory: The checkpoint.
        data: Where `PAIR/dev/` is.
        num_sentences: How many sentences of its direction.
    """
    checkpoint = load_for_decoding(directory)
    pair = checkpoint.manifest.pairs[0]
    source, target = primary_language(pair.source), primary_language(pair.target)
    folder = data / (f"en-{target}" if source == "en" else f"en-{source}") / "dev"
    pairs = list(dev_pairs(folder, source, target))
    random.Random(1).shuffle(pairs)
    texts = termed_sentences(pairs, source, target, limit=num_sentences)
    references = [[one.reference for one in texts]]
    tokenize = "zh" if target == "zh" else "13a"
    for way, translated in Ways(Translator(checkpoint), pair).each.items():
        outputs = translated(texts)
        uses = [
            use.is_hit
            for one, text in zip(texts, outputs, strict=True)
            for use in uses_of(one.glossary.find(one.source, []), one.source, text)
        ]
        yield Figures(
            pair=f"{source}-{target}",
            way=way,
            num_terms=len(uses),
            hits=round(sum(uses) / max(len(uses), 1), 4),
            chrf=round(corpus_chrf(outputs, references).score, 1),
            bleu=round(corpus_bleu(outputs, references, tokenize=tokenize).score, 1),
        )


def table(figures: Sequence[Figures]) -> str:
    """Hits, chrF and BLEU by direction and way, in Markdown."""
    ways = list(dict.fromkeys(one.way for one in figures))
    lines = [f"| direction | {' | '.join(ways)} |", f"|---|{'---:|' * len(ways)}"]
    for pair in dict.fromkeys(one.pair for one in figures):
        own = [one for one in figures if one.pair == pair]
        cells = [f"{100 * one.hits:.1f}% {one.chrf:.1f} {one.bleu:.1f}" for one in own]
        lines.append(f"| {pair} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, write, print."""
    measure_all("terms", (__doc__ or "").splitlines()[0], measure, table)


if __name__ == "__main__":
    main()
