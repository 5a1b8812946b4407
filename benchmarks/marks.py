"""`python -m benchmarks.marks DATA`: how marks come through the bundled networks, way by way.

Takes real sentences of dev sets with a word or number that stands once in the source and once in
its reference, puts a mark in its place in both, and translates that in five ways: as it is; with
stand-ins; with the mark left out and placed by the alignment; split around the mark; and as library
and server do, which is stand-ins, others, and a split at last. Prints, for each direction and kind
of mark, how many sentences kept their marks and chrF against the references, and writes
benchmarks/results/marks-<time>.json. DATA holds `PAIR/dev/CORPUS.LANGUAGE`.
"""

import argparse
import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sacrebleu import corpus_chrf

from benchmarks.machine import describe_command, describe_machine
from model.config import SearchConfig
from model.loading import load_for_decoding
from model.offline.translator import Translator
from model.text.carrying import carry
from model.text.language import LanguagePair, primary_language
from model.text.marks import Mark, find_marks
from model.text.segments import PreparedText, Segment
from model.text.tokenizer import Tokenizer
from model.text.tries import STAND_INS
from model.train.data.parallel import read_lines

ROOT = Path(__file__).resolve().parents[1]
KINDS: Mapping[str, Sequence[str]] = {
    "placeholder": ("{name}", "%s", "%1$s", "%(user)s", "${value}", "{{ item }}", ":name", "{0}"),
    "address": ("https://example.org/a?b=c&d=1", "jo.doe@example.org", "192.168.0.17", "www.x.org"),
    "path or code": ("/usr/local/bin", "config.yaml", "`git push`", "--force", "C:\\Temp\\a.txt"),
    "tags around": ("<b>{}</b>", "<0>{}</0>", '<a href="x">{}</a>', "**{}**"),
    "emoji behind": ("{} 😀", "{} 👩‍🚀", "{} ❤️"),
}
_WORD = re.compile(r"(?<![\w.@/-])(?:[A-Z][a-z]{2,}|\d{4,})(?![\w.@/-])")
_MAX_CHARACTERS = 140  # of the English side: so that any mark's bytes still fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A sentence with a mark.

    Attributes:
        kind: One of `KINDS`.
        source: It.
        reference: Its translation, with the same mark.
    """

    kind: str
    source: str
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one way made of the sentences of one direction and kind.

    Attributes:
        pair: The direction.
        kind: Of the marks.
        way: How they were carried.
        num_sentences: How many there were.
        kept: Share of them with the same marks as their source.
        chrf: Of all, against the references.
    """

    pair: str
    kind: str
    way: str
    num_sentences: int
    kept: float
    chrf: float


def marked_sentences(
    pairs: Sequence[tuple[str, str]], *, english: int, limit: int
) -> Iterator[Marked]:
    """Sentences with a mark instead of, or around, a word that source and reference share.

    Args:
        pairs: Sources and references.
        english: Which of the two is English: 0 or 1.
        limit: How many sentences.
    """
    chance = random.Random(1)
    kinds = list(KINDS)
    number = 0
    for pair in pairs:
        words = [w for w in _WORD.findall(pair[english]) if all(s.count(w) == 1 for s in pair)]
        if not words or len(pair[english]) > _MAX_CHARACTERS or any(map(find_marks, pair)):
            continue
        if number == limit:
            return
        kind = kinds[number % len(kinds)]
        template, word = chance.choice(KINDS[kind]), chance.choice(words)
        is_around = kind in ("tags around", "emoji behind")
        mark = template.replace("{}", word) if is_around else template
        source, reference = (side.replace(word, mark) for side in pair)
        yield Marked(kind=kind, source=source, reference=reference)
        number += 1


def is_kept(source: str, translation: str) -> bool:
    """Whether every mark of the source is in the translation, and as often."""
    marks = {source[mark.start : mark.end] for mark in find_marks(source)}
    return all(source.count(mark) == translation.count(mark) for mark in marks)


class Ways:
    """Ways of one checkpoint, each from texts to translations.

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
        self.each: Mapping[str, Callable[[Sequence[str]], list[str]]] = {
            "as it is": self._as_it_is,
            "stand-ins": self._stand_ins,
            "by alignment": self._by_alignment,
            "split": self._split,
            "all": self._all,
        }

    def _as_it_is(self, texts: Sequence[str]) -> list[str]:
        return self._found([[Segment(text=text, source_ids=self._ids(text))] for text in texts])

    def _stand_ins(self, texts: Sequence[str]) -> list[str]:
        return self._found([[self._carried(text, find_marks(text))] for text in texts])

    def _by_alignment(self, texts: Sequence[str]) -> list[str]:
        loose = [[replace(mark, kind="tag") for mark in find_marks(text)] for text in texts]
        return self._found([[self._carried(*one)] for one in zip(texts, loose, strict=True)])

    def _split(self, texts: Sequence[str]) -> list[str]:
        return self._found([list(self._pieces(text)) for text in texts])

    def _all(self, texts: Sequence[str]) -> list[str]:
        translations = self._translator.translate(texts, self._pair, self._search)
        return [translation.text for translation in translations]

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

    def _found(self, texts: Sequence[Sequence[Segment]]) -> list[str]:
        prepared = [
            PreparedText(
                pair=self._pair, segments=tuple(segments), separators=("",) * (len(segments) + 1)
            )
            for segments in texts
        ]
        translator, pair = self._translator, self._pair
        requests = [translator.requests(text, pair, self._search) for text in prepared]
        found = iter(translator.search([one for own in requests for one in own]))
        return [
            translator.pipeline.finish(text, [next(found)[0] for _ in text.network_segments]).text
            for text in prepared
        ]


def measure(directory: Path, data: Path, num_sentences: int) -> Iterator[Figures]:
    """Figures of every kind of mark and every way, of one checkpoint.

    Args:
        directory: The checkpoint.
        data: Where `PAIR/dev/` is.
        num_sentences: How many sentences of its direction.
    """
    checkpoint = load_for_decoding(directory)
    pair = checkpoint.manifest.pairs[0]
    source, target = primary_language(pair.source), primary_language(pair.target)
    english = 0 if source == "en" else 1
    folder = data / (f"en-{target}" if english == 0 else f"en-{source}") / "dev"
    pairs = list(dev_pairs(folder, source, target))
    random.Random(1).shuffle(pairs)
    marked = list(marked_sentences(pairs, english=english, limit=num_sentences))
    search = SearchConfig()
    ways = Ways(Translator(checkpoint), checkpoint.tokenizer, pair, search)
    for way, translated in ways.each.items():
        texts = translated([one.source for one in marked])
        for kind in KINDS:
            own = [(one, text) for one, text in zip(marked, texts, strict=True) if one.kind == kind]
            kept = [is_kept(one.source, text) for one, text in own]
            references = [[one.reference for one, _ in own]]
            yield Figures(
                pair=f"{source}-{target}",
                kind=kind,
                way=way,
                num_sentences=len(own),
                kept=round(sum(kept) / max(len(own), 1), 4),
                chrf=round(corpus_chrf([text for _, text in own], references).score, 1),
            )


def dev_pairs(folder: Path, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Sources and references of all corpora of a folder that have both languages."""
    for path in sorted(folder.glob(f"*.{source}")):
        other = path.with_suffix(f".{target}")
        if other.exists():
            yield from zip(read_lines(path), read_lines(other), strict=True)


def table(figures: Sequence[Figures]) -> str:
    """Share of sentences that kept their marks, and chrF, by kind and way, in Markdown."""
    ways = list(dict.fromkeys(one.way for one in figures))
    lines = [f"| direction, marks | {' | '.join(ways)} |", f"|---|{'---:|' * len(ways)}"]
    for pair, kind in dict.fromkeys((one.pair, one.kind) for one in figures):
        own = [one for one in figures if (one.pair, one.kind) == (pair, kind)]
        cells = [f"{100 * one.kept:.1f}% {one.chrf:.1f}" for one in own]
        lines.append(f"| {pair}, {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder that holds en-de/ and en-zh/")
    parser.add_argument("--checkpoints", type=Path, default=ROOT / "checkpoints")
    parser.add_argument("--sentences", type=int, default=300, help="a direction (%(default)s)")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    arguments = parser.parse_args()
    started = datetime.now(UTC)
    directories = sorted(path.parent for path in arguments.checkpoints.glob("*/config.json"))
    figures: list[Figures] = []
    for directory in directories:
        figures += measure(directory, arguments.data, arguments.sentences)
        print(f"{directory.name}: done", file=sys.stderr)
    result = {
        "benchmark": "marks",
        "command": describe_command("benchmarks.marks", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "rows": [asdict(one) for one in figures],
    }
    arguments.results.mkdir(parents=True, exist_ok=True)
    path = arguments.results / f"marks-{started:%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"\n{table(figures)}\n\n{path}")


if __name__ == "__main__":
    main()
