"""`python -m benchmarks.marks DATA`: how marks come through the bundled networks, way by way.

Takes real sentences, corpora in turn: of all dev sets, strings of interfaces out of two training
corpora, as no dev set has any, and sentences of mails, of which there is no corpus at all: those of
mails.tsv were written for this. Where a word or number stands once in the source and once
in its reference a mark or a number takes its place in both; where there are too few such sentences,
others have one before or behind them. They are translated in five ways: as they are; with
stand-ins; with the mark left out and placed by the alignment; split around the mark; and as library
and server do, which is stand-ins, others, and a split at last. Prints, for each direction by kind
of mark and by corpus, how many sentences kept theirs, how many kept them or were flagged, and chrF
against the references, and writes benchmarks/results/marks-<time>.json. DATA holds
`PAIR/dev/CORPUS.LANGUAGE` and `PAIR/train/CORPUS.LANGUAGE.gz`.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sacrebleu import corpus_chrf

from benchmarks.corpora import dev_corpora, in_turn, interfaces, mails
from benchmarks.digits import has_number
from benchmarks.over_checkpoints import measure_all
from model.config import SearchConfig
from model.loading import load_for_decoding
from model.offline.translator import Translator
from model.text.drafts.segments import PreparedText, Segment
from model.text.drafts.tries import STAND_INS
from model.text.languages.tags import LanguagePair, primary_language
from model.text.marks.carrying import carry
from model.text.marks.finding import Mark, find_marks
from model.text.subwords.tokenizer import Tokenizer

KINDS: Mapping[str, Sequence[str]] = {
    "placeholder": ("{name}", "%s", "%1$s", "%(user)s", "${value}", "{{ item }}", ":name", "{0}"),
    "address": ("https://example.org/a?b=c&d=1", "jo.doe@example.org", "192.168.0.17", "www.x.org"),
    "path or code": ("/usr/local/bin", "config.yaml", "`git push`", "--force", "C:\\Temp\\a.txt"),
    "tags around": ("<b>{}</b>", "<0>{}</0>", '<a href="x">{}</a>', "**{}**"),
    "emoji behind": ("{} 😀", "{} 👩‍🚀", "{} ❤️"),
    "number": (
        "3,500 kg",
        "12.75 %",
        "2026-03-14",
        "17:45",
        "48",
        "1.25 GB",
        "90 km/h",
        "1,000",
        "$2,000.00",
        "1,000,000",
        "10:00",
    ),
    "times": ("00:01.000 --> 00:04.000", "[12:30:05]", "01:02:03,450"),
}
UNITS: Mapping[str, Sequence[str]] = {
    "kg": ("公斤", "千克"),
    "%": ("％", "per cent", "percent", "Prozent"),
    "GB": ("千兆",),
    "km/h": ("公里", "千米", "kph", "km/std"),
    "$": ("美元", "Dollar", "dollar"),
}
"""What else a unit may be in a translation."""
BESIDE: Mapping[str, str] = {
    "placeholder": "{mark}: {sentence}",
    "address": "{sentence} ({mark})",
    "path or code": "{mark}: {sentence}",
    "tags around": "{mark}",
    "emoji behind": "{mark}",
    "number": "{sentence} ({mark})",
    "times": "{mark} {sentence}",
}
"""Where the mark of a sentence stands that shares no word with its reference."""
ANY = "any"
_WORD = re.compile(r"(?<![\w.@/-])(?:[A-Z][a-z]{2,}|\d{4,})(?![\w.@/-])")
# In Chinese any word of Latin letters was copied.
_CHINESE = re.compile("[\u3400-\u9fff]")
_LATIN_WORD = re.compile(r"(?a:(?<![\w.@/-])(?:[A-Za-z]{3,}|\d{2,})(?![\w.@/-]))")
_NUMBER = re.compile(r"\d(?:[\d.,:-]*\d)?")
_MAX_CHARACTERS = 140  # of the English side: so that any mark's bytes still fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A sentence with a mark.

    Attributes:
        corpus: Whose sentence it is.
        kind: One of `KINDS`.
        mark: The mark, with {} for what stands inside of it.
        source: It.
        reference: Its translation, with the same mark.
        is_beside: The mark stands before or behind all of it.
    """

    corpus: str
    kind: str
    mark: str
    source: str
    reference: str
    is_beside: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """A translation, and whether a check of its own said that something is wrong with it."""

    text: str
    is_flagged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one way made of the sentences of one direction and kind, or corpus.

    Attributes:
        pair: The direction.
        kind: Of the marks, or "any".
        corpus: Of the sentences, or "any".
        way: How they were carried.
        num_sentences: How many there were.
        num_beside: How many of them have their mark before or behind the whole sentence.
        kept: Share of them with the same marks as their source.
        kept_or_flagged: Share of them that kept theirs or are flagged.
        chrf: Of all, against the references.
    """

    pair: str
    kind: str
    corpus: str
    way: str
    num_sentences: int
    num_beside: int
    kept: float
    kept_or_flagged: float
    chrf: float


def marked_sentences(
    pairs: Sequence[tuple[str, str, str]], *, english: int, limit: int
) -> list[Marked]:
    """Sentences with a mark, those first where it takes a word's place, kinds in turn.

    Args:
        pairs: Sources, references and names of their corpora.
        english: Which of the first two is English: 0 or 1.
        limit: How many sentences.
    """
    chance = random.Random(1)
    marked: list[Marked] = []
    others: list[tuple[str, str, str]] = []
    for pair in pairs:
        sides = pair[:2]
        if len(sides[english]) > _MAX_CHARACTERS or any(map(find_marks, sides)):
            continue
        words = shared_words(sides[english], sides[1 - english])
        if words and len(marked) < limit:
            marked.append(_marked(pair, len(marked), chance, chance.choice(words)))
        elif not words:
            others.append(pair)
    for pair in others[: limit - len(marked)]:
        marked.append(_marked(pair, len(marked), chance))
    return marked


def shared_words(english: str, other: str) -> list[str]:
    """Words and numbers that stand once in a sentence and once in its translation."""
    word = _LATIN_WORD if _CHINESE.search(other) else _WORD
    common = set(word.findall(english)) & set(word.findall(other))
    return sorted(one for one in common if english.count(one) == other.count(one) == 1)


def _marked(
    pair: tuple[str, str, str], number: int, chance: random.Random, word: str | None = None
) -> Marked:
    """A sentence with the mark of its turn: in a word's place or around it, or beside it all."""
    kind = list(KINDS)[number % len(KINDS)]
    template = chance.choice(KINDS[kind])

    def with_mark(sentence: str) -> str:
        if word is not None:
            return sentence.replace(word, template.replace("{}", word))
        mark = template.replace("{}", sentence)
        return BESIDE[kind].replace("{mark}", mark).replace("{sentence}", sentence)

    source, reference, corpus = with_mark(pair[0]), with_mark(pair[1]), pair[2]
    return Marked(
        corpus=corpus,
        kind=kind,
        mark=template,
        source=source,
        reference=reference,
        is_beside=word is None,
    )


def is_kept(marked: Marked, translation: str) -> bool:
    """Whether the mark that was put in is in the translation, as often as in the source.

    It is known here which mark that is: the rules that find marks, and flag, have no say. Of a
    number its amount and its unit are asked for, in the notations of any language.
    """
    number = _NUMBER.search(marked.mark)
    if marked.kind != "number" or number is None:
        parts = [part for part in marked.mark.split("{}") if part.strip()]
        return all(
            translation.count(part.strip()) == marked.source.count(part.strip()) for part in parts
        )
    unit = marked.mark.replace(number[0], "").strip()
    has_unit = not unit or any(one in translation for one in (unit, *UNITS[unit]))
    return has_unit and has_number(number[0], marked.source, translation)


class Ways:
    """Ways of one checkpoint, each from texts to what became of them.

    Args:
        translator: Of the checkpoint.
        tokenizer: Of the checkpoint.
        pair: Its direction.
        search: How it is searched.
    """

    def __init__(
        self,
        translator: Translator,
        tokenizer: Tokenizer,
        pair: LanguagePair,
        search: SearchConfig,
    ) -> None:
        self._translator = translator
        self._tokenizer = tokenizer
        self._pair = pair
        self._search = search
        self.each: Mapping[str, Callable[[Sequence[str]], list[Outcome]]] = {
            "as it is": self._as_it_is,
            "stand-ins": self._stand_ins,
            "by alignment": self._by_alignment,
            "split": self._split,
            "all": self._all,
        }

    def _as_it_is(self, texts: Sequence[str]) -> list[Outcome]:
        return self._found([[Segment(text=text, source_ids=self._ids(text))] for text in texts])

    def _stand_ins(self, texts: Sequence[str]) -> list[Outcome]:
        return self._found([[self._carried(text, find_marks(text))] for text in texts])

    def _by_alignment(self, texts: Sequence[str]) -> list[Outcome]:
        loose = [[replace(mark, kind="tag") for mark in find_marks(text)] for text in texts]
        return self._found([[self._carried(*one)] for one in zip(texts, loose, strict=True)])

    def _split(self, texts: Sequence[str]) -> list[Outcome]:
        return self._found([list(self._pieces(text)) for text in texts])

    def _all(self, texts: Sequence[str]) -> list[Outcome]:
        translations = self._translator.translate(texts, self._pair, self._search)
        return [Outcome(one.text, one.num_flagged > 0) for one in translations]

    def _ids(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, self._pair))

    def _carried(self, text: str, marks: Sequence[Mark]) -> Segment:
        carried = carry(text, marks, STAND_INS)
        assert carried is not None
        return Segment(text=text, source_ids=self._ids(carried.shown), carried=carried)

    def _pieces(self, text: str) -> Iterator[Segment]:
        done = 0
        for mark in find_marks(text):
            yield from self._piece(text[done : mark.start])
            yield Segment(text=text[mark.start : mark.end], source_ids=())
            done = mark.end
        yield from self._piece(text[done:])

    def _piece(self, text: str) -> Iterator[Segment]:
        has_letters = any(map(str.isalpha, text))
        blank = len(text) - len(text.lstrip())
        yield Segment(text=text[:blank], source_ids=())
        yield Segment(text=text.strip(), source_ids=self._ids(text.strip()) if has_letters else ())
        yield Segment(text=text[len(text.rstrip()) :] if text.strip() else "", source_ids=())

    def _found(self, texts: Sequence[Sequence[Segment]]) -> list[Outcome]:
        prepared = [
            PreparedText(
                pair=self._pair, segments=tuple(segments), separators=("",) * (len(segments) + 1)
            )
            for segments in texts
        ]
        translator, pair = self._translator, self._pair
        pipeline = translator.pipeline
        requests = [translator.requests(text, pair, self._search) for text in prepared]
        found = iter(translator.search([one for own in requests for one in own]))
        return [
            Outcome(pipeline.finish(text, [next(found)[0] for _ in text.network_segments]).text)
            for text in prepared
        ]


def measure(directory: Path, data: Path, num_sentences: int) -> Iterator[Figures]:
    """Figures of every kind of mark and every way, of each direction of a checkpoint.

    Args:
        directory: The checkpoint.
        data: Where `PAIR/dev/` is.
        num_sentences: How many sentences of each direction.
    """
    checkpoint = load_for_decoding(directory)
    for pair in checkpoint.manifest.pairs:
        source, target = primary_language(pair.source), primary_language(pair.target)
        english = 0 if source == "en" else 1
        folder = data / (f"en-{target}" if english == 0 else f"en-{source}")
        pairs = in_turn(
            [
                *dev_corpora(folder / "dev", source, target),
                *interfaces(folder / "train", source, target),
                *mails(source, target),
            ]
        )
        marked = marked_sentences(pairs, english=english, limit=num_sentences)
        ways = Ways(Translator(checkpoint), checkpoint.tokenizer, pair, SearchConfig())
        for way, translated in ways.each.items():
            yield from figures_of(f"{source}-{target}", way, marked, translated)


def figures_of(
    pair: str,
    way: str,
    marked: Sequence[Marked],
    translated: Callable[[Sequence[str]], list[Outcome]],
) -> Iterator[Figures]:
    """Figures of one way: kind by kind, then corpus by corpus."""
    outcomes = list(zip(marked, translated([one.source for one in marked]), strict=True))
    for kind in KINDS:
        yield _figures(pair, way, [o for o in outcomes if o[0].kind == kind], kind=kind)
    for corpus in dict.fromkeys(one.corpus for one in marked):
        own = [o for o in outcomes if o[0].corpus == corpus]
        yield _figures(pair, way, own, corpus=corpus)


def _figures(
    pair: str,
    way: str,
    own: Sequence[tuple[Marked, Outcome]],
    *,
    kind: str = ANY,
    corpus: str = ANY,
) -> Figures:
    kept = [is_kept(one, outcome.text) for one, outcome in own]
    told = [is_it or outcome.is_flagged for is_it, (_, outcome) in zip(kept, own, strict=True)]
    references = [[one.reference for one, _ in own]]
    return Figures(
        pair=pair,
        kind=kind,
        corpus=corpus,
        way=way,
        num_sentences=len(own),
        num_beside=sum(one.is_beside for one, _ in own),
        kept=round(sum(kept) / max(len(own), 1), 4),
        kept_or_flagged=round(sum(told) / max(len(own), 1), 4),
        chrf=round(corpus_chrf([outcome.text for _, outcome in own], references).score, 1),
    )


def table(figures: Sequence[Figures]) -> str:
    """Shares of sentences that kept their marks, or did or are flagged, and chrF, in Markdown."""
    ways = list(dict.fromkeys(one.way for one in figures))
    head = f"| direction, marks or text, sentences | {' | '.join(ways)} |"
    lines = [head, f"|---|{'---:|' * len(ways)}"]
    for pair, what in dict.fromkeys((one.pair, _what(one)) for one in figures):
        own = [one for one in figures if (one.pair, _what(one)) == (pair, what)]
        cells = [
            f"{100 * one.kept:.1f}% {100 * one.kept_or_flagged:.1f}% {one.chrf:.1f}" for one in own
        ]
        lines.append(f"| {pair}, {what}, {own[0].num_sentences} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _what(figures: Figures) -> str:
    return figures.kind if figures.corpus == ANY else figures.corpus


def main() -> None:
    """Measure, write, print."""
    measure_all("marks", (__doc__ or "").splitlines()[0], measure, table)


if __name__ == "__main__":
    main()
