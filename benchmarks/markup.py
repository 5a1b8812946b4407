"""`python -m benchmarks.markup DATA`: where inline tags come out, way by way.

Takes real sentences of dev sets, puts one or two words of each into elements (`<b>`, `<i>`, `<a>`)
and translates that in five ways: as it is, tags and all; split at the tags; with tags in the order
of the source and placed by position; with tags in that order, each placed by the alignment; and as
library and server do, where elements are placed whole and may change places. A tag is right if the
translation of its word is in its element, and little else: what translates a word is told by how
often two words stand in sentences that translate each other (Dice's coefficient), which no network
has a part in. Prints, for each direction and way, how many tags are right of those whose word's
translation was written, how many sentences kept their elements, and chrF without the tags; writes
benchmarks/results/markup-<time>.json. DATA holds `PAIR/dev/CORPUS.LANGUAGE`.
"""

import html
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from sacrebleu import corpus_chrf

from benchmarks.corpora import dev_pairs
from benchmarks.over_checkpoints import measure_all
from model.config import SearchConfig
from model.decode.session import Hypothesis
from model.documents.markup.html import html_template
from model.loading import load_for_decoding
from model.offline.translator import Translator
from model.text.drafts.segments import PreparedText, Segment
from model.text.languages.tags import LanguagePair, primary_language
from model.text.marks.finding import find_marks
from model.text.marks.inline_codes import ANY_CODE, class_of, code
from model.text.subwords.tokenizer import Tokenizer

ELEMENTS = (("<b>", "</b>"), ("<i>", "</i>"), ('<a href="x">', "</a>"))
_TAG = re.compile(r"<[^<>]*>")
_WORD = re.compile(r"\w+")
_WIDE = re.compile("[\u4e00-\u9fff]")
_MIN_DICE = 0.5
_MIN_COUNT = 4
_MAX_SHARE = 0.02  # of the sentences that have a word; others are too common to be sure of
_MAX_CHARACTERS = 140


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """A sentence with elements.

    Attributes:
        source: With its tags.
        reference: A translation, without any.
        words: What translates the word in each element.
    """

    source: str
    reference: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one way made of the sentences of one direction.

    Attributes:
        pair: The direction.
        way: How tags were carried.
        num_tags: Elements whose word's translation is written once.
        right: Share of them that it is in, with little else.
        whole: Share of sentences with each element once, well nested.
        chrf: Of all, without tags, against the references.
    """

    pair: str
    way: str
    num_tags: int
    right: float
    whole: float
    chrf: float


def words_of(text: str, language: str) -> list[str]:
    """The words of a text; of Chinese all pairs of neighbouring characters."""
    if language != "zh":
        return _WORD.findall(text)
    return [
        text[place : place + 2]
        for place in range(len(text) - 1)
        if _WIDE.match(text[place]) and _WIDE.match(text[place + 1])
    ]


def lexicon(pairs: Sequence[tuple[str, str]], source: str, target: str) -> dict[str, str]:
    """What translates a word, for words of which that is sure."""
    sides = [(set(words_of(a, source)), set(words_of(b, target))) for a, b in pairs]
    counts = [Counter(word for side in sides for word in side[n]) for n in (0, 1)]
    most = _MAX_SHARE * len(pairs)
    together: dict[str, Counter[str]] = {
        word: Counter() for word, count in counts[0].items() if _MIN_COUNT <= count <= most
    }
    for own, others in sides:
        for word in own & together.keys():
            together[word].update(others)
    best: dict[str, str] = {}
    for word, beside in together.items():
        shares = {w: 2 * n / (counts[0][word] + counts[1][w]) for w, n in beside.items()}
        other = max(shares, key=lambda w: shares[w], default="")
        if other and shares[other] >= _MIN_DICE:
            best[word] = other
    return best


def tagged_sentences(
    pairs: Sequence[tuple[str, str]], known: Mapping[str, str], language: str, *, limit: int
) -> Iterator[Tagged]:
    """Sentences with one or two words in elements.

    Args:
        pairs: Sources and references.
        known: What translates a word.
        language: Of the sources.
        limit: How many sentences.
    """
    chance = random.Random(1)
    number = 0
    for source, reference in pairs:
        words = [w for w in dict.fromkeys(words_of(source, language)) if w in known]
        words = [w for w in words if source.count(w) == 1]
        if not words or len(source) > _MAX_CHARACTERS or find_marks(source) or "<" in source:
            continue
        if number == limit:
            return
        chosen = chance.sample(words, min(len(words), chance.randint(1, 2)))
        chosen.sort(key=source.find)
        if len(chosen) == 2 and source.find(chosen[0]) + len(chosen[0]) > source.find(chosen[1]):
            chosen = chosen[:1]
        tagged = html.escape(source, quote=False)
        for word, (begin, end) in zip(chosen, chance.sample(ELEMENTS, len(chosen)), strict=True):
            tagged = tagged.replace(word, f"{begin}{word}{end}")
        yield Tagged(
            source=tagged, reference=reference, words=tuple(known[word] for word in chosen)
        )
        number += 1


def elements_of(text: str) -> list[tuple[str, str]] | None:
    """Start tags and what is in their elements; None if elements do not nest."""
    opened: list[tuple[str, int]] = []
    found: list[tuple[str, str]] = []
    for tag in _TAG.finditer(text):
        name = tag[0].strip("</>").split()[0] if tag[0].strip("</>") else ""
        if not tag[0].startswith("</"):
            opened.append((tag[0], tag.end()))
        elif not opened or opened[-1][0].strip("<>").split()[0] != name:
            return None
        else:
            begin, start = opened.pop()
            found.append((begin, without_tags(text[start : tag.start()])))
    return None if opened else found


def without_tags(text: str) -> str:
    """What a text says."""
    return html.unescape(_TAG.sub("", text))


def is_right(word: str, content: str) -> bool:
    """Whether a word is in an element, and little else."""
    return word in content and len(content) <= 2 * len(word) + 8


class Ways:
    """Ways of one checkpoint, each from sentences with tags to their translations.

    Args:
        translator: Of the checkpoint.
        tokenizer: Of the checkpoint.
        pair: Its direction.
    """

    def __init__(self, translator: Translator, tokenizer: Tokenizer, pair: LanguagePair) -> None:
        self._translator = translator
        self._tokenizer = tokenizer
        self._pair = pair
        self.each: Mapping[str, Callable[[Sequence[str]], list[str]]] = {
            "as it is": self._as_it_is,
            "split": self._split,
            "by position": self._by_position,
            "in order": self._in_order,
            "elements": self._elements,
        }

    def _as_it_is(self, texts: Sequence[str]) -> list[str]:
        prepared = [_whole(text, self._tokenizer, self._pair) for text in texts]
        return self._once(prepared, lambda found, _: found)

    def _split(self, texts: Sequence[str]) -> list[str]:
        parts = [re.split(f"({_TAG.pattern})", text) for text in texts]
        plain = [html.unescape(part) for own in parts for part in own[::2]]
        found = iter(self._translated(plain))
        return [
            "".join(
                part if place % 2 else html.escape(next(found), quote=False)
                for place, part in enumerate(own)
            )
            for own in parts
        ]

    def _by_position(self, texts: Sequence[str]) -> list[str]:
        def translated(plain: Sequence[str]) -> list[str]:
            prepare = self._translator.pipeline.prepare
            return self._once([prepare(text, self._pair) for text in plain], _linear)

        return _through_templates(texts, translated)

    def _in_order(self, texts: Sequence[str]) -> list[str]:
        def translated(plain: Sequence[str]) -> list[str]:
            kept = [ANY_CODE.sub(_standing, text) for text in plain]
            found = self._translated(kept)
            return [_STANDING.sub(_moving, text) for text in found]

        return _through_templates(texts, translated)

    def _elements(self, texts: Sequence[str]) -> list[str]:
        return _through_templates(texts, self._translated)

    def _translated(self, texts: Sequence[str]) -> list[str]:
        found = self._translator.translate(texts, self._pair, SearchConfig())
        return [translation.text for translation in found]

    def _once(
        self,
        prepared: Sequence[PreparedText],
        changed: Callable[[Hypothesis, Segment], Hypothesis],
    ) -> list[str]:
        """Translations after one round, each hypothesis changed before it is read."""
        translator, search = self._translator, SearchConfig()
        requests = [translator.requests(text, self._pair, search) for text in prepared]
        ranked = iter(translator.search([one for own in requests for one in own]))
        return [
            translator.pipeline.finish(
                text, [changed(next(ranked)[0], segment) for segment in text.network_segments]
            ).text
            for text in prepared
        ]


def _whole(text: str, tokenizer: Tokenizer, pair: LanguagePair) -> PreparedText:
    segment = Segment(text=text, source_ids=tuple(tokenizer.encode(text, pair)))
    return PreparedText(pair=pair, segments=(segment,), separators=("", ""))


def _linear(found: Hypothesis, segment: Segment) -> Hypothesis:
    """As if every target token attended to where it stands."""
    share = len(segment.source_ids) / max(len(found.token_ids), 1)
    places = tuple(int(place * share) for place in range(len(found.token_ids)))
    return msgspec.structs.replace(found, alignment=places)


def _through_templates(
    texts: Sequence[str], translated: Callable[[Sequence[str]], list[str]]
) -> list[str]:
    """Pages whose texts, with inline codes, are translated together."""
    templates = [html_template(text) for text in texts]
    found = iter(translated([text for template in templates for text in template.texts]))
    return [template.rebuilt([next(found) for _ in template.texts]) for template in templates]


_NUM_CLOSING = 1_000
_STANDING = re.compile(f"[{code('lone', 0)}-{code('lone', 2 * _NUM_CLOSING - 1)}]")


def _standing(found: re.Match[str]) -> str:
    """A code that changes places with no other, instead of one that may."""
    is_closing = class_of(found[0]) == "closing"
    number = ord(found[0]) - ord(code("closing" if is_closing else "opening", 0))
    return code("lone", number + _NUM_CLOSING * is_closing)


def _moving(found: re.Match[str]) -> str:
    """The way back."""
    is_closing, number = divmod(ord(found[0]) - ord(code("lone", 0)), _NUM_CLOSING)
    return code("closing" if is_closing else "opening", number)


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
    known = lexicon(pairs, source, target)
    longest = checkpoint.manifest.limits.max_source_length
    tagged = [  # whole sentences, for the way that cuts none
        one
        for one in tagged_sentences(pairs, known, source, limit=num_sentences)
        if len(checkpoint.tokenizer.encode(one.source, pair)) <= longest
    ]
    ways = Ways(Translator(checkpoint), checkpoint.tokenizer, pair)
    for way, translated in ways.each.items():
        translations = translated([one.source for one in tagged])
        yield figures_of(tagged, translations, f"{source}-{target}", way)


def figures_of(
    tagged: Sequence[Tagged], translations: Sequence[str], pair: str, way: str
) -> Figures:
    """How many tags are where they belong."""
    is_right_of: list[bool] = []
    num_whole = 0
    for one, translation in zip(tagged, translations, strict=True):
        elements = elements_of(translation)
        tags = [tag for tag in _TAG.findall(one.source) if not tag.startswith("</")]
        is_whole = elements is not None and sorted(tag for tag, _ in elements) == sorted(tags)
        num_whole += is_whole
        content = dict(elements or ())
        for tag, word in zip(tags, one.words, strict=True):
            if without_tags(translation).count(word) == 1:
                is_right_of.append(is_whole and is_right(word, content[tag]))
    references = [[one.reference for one in tagged]]
    return Figures(
        pair=pair,
        way=way,
        num_tags=len(is_right_of),
        right=round(sum(is_right_of) / max(len(is_right_of), 1), 4),
        whole=round(num_whole / max(len(tagged), 1), 4),
        chrf=round(corpus_chrf(list(map(without_tags, translations)), references).score, 1),
    )


def table(figures: Sequence[Figures]) -> str:
    """Tags at the right word, whole sentences and chrF, by direction and way, in Markdown."""
    lines = ["| direction, way | tags | right | whole | chrF |", "|---|---:|---:|---:|---:|"]
    for one in figures:
        shares = f"{100 * one.right:.1f}% | {100 * one.whole:.1f}%"
        lines.append(f"| {one.pair}, {one.way} | {one.num_tags} | {shares} | {one.chrf:.1f} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, write, print."""
    measure_all("markup", (__doc__ or "").splitlines()[0], measure, table)


if __name__ == "__main__":
    main()
