"""`python -m benchmarks.loops DATA`: what helps sentences whose translation loops, way by way.

Takes real sentences of dev sets, translates them with the bundled networks, and those that loop
again: searched without n-grams that come twice, for n from 2 to 6; cut; and as library and server
do. Prints, for each direction, how many loop still and chrF against the references, and writes
benchmarks/results/loops-<time>.json. DATA holds `PAIR/dev/CORPUS.LANGUAGE`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs
from sacrebleu import corpus_chrf

from benchmarks.corpora import named_pairs
from benchmarks.over_checkpoints import measure_all
from model.config import SearchConfig
from model.loading import load_for_decoding
from model.offline.translator import Translator
from model.request import DecodeRequest, Hypothesis
from model.text.drafts.checks import has_loop
from model.text.drafts.segments import Segment
from model.text.languages.tags import LanguagePair, primary_language
from model.text.sentences.segmenter import cut_spans
from model.text.subwords.tokenizer import Tokenizer

SIZES = (2, 3, 4, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looped:
    """A sentence whose translation loops."""

    segment: Segment
    request: DecodeRequest
    found: Hypothesis
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one way made of the sentences that loop.

    Attributes:
        pair: The direction.
        way: What was done about them.
        num_sentences: How many sentences were translated at first.
        num_looped: How many of them loop.
        num_left: How many loop still.
        chrf: Of those that looped, against the references.
    """

    pair: str
    way: str
    num_sentences: int
    num_looped: int
    num_left: int
    chrf: float


def measure(directory: Path, data: Path, num_sentences: int) -> Iterator[Figures]:
    """Figures of every way, of each direction of a checkpoint.

    Args:
        directory: The checkpoint.
        data: Where `PAIR/dev/` is.
        num_sentences: How many lines of each direction.
    """
    checkpoint = load_for_decoding(directory)
    translator = Translator(checkpoint)
    for pair in translator.manifest.pairs:
        source, target = primary_language(pair.source), primary_language(pair.target)
        folder = data / (f"en-{target}" if source == "en" else f"en-{source}") / "dev"
        pairs = [(one, other) for one, other, _ in named_pairs(folder, source, target)]
        num, looped = looping(translator, pairs[:num_sentences], pair)
        references = [[one.reference for one in looped]]
        for way, texts, num_left in Ways(translator, checkpoint.tokenizer, pair).each(looped):
            yield Figures(
                pair=f"{source}-{target}",
                way=way,
                num_sentences=num,
                num_looped=len(looped),
                num_left=num_left,
                chrf=round(corpus_chrf(texts, references).score, 1) if looped else 0.0,
            )


def looping(
    translator: Translator, pairs: Sequence[tuple[str, str]], pair: LanguagePair
) -> tuple[int, list[Looped]]:
    """How many lines are one sentence without marks, and which of them loop."""
    alone: list[tuple[Segment, str]] = []
    for source, reference in pairs:
        segments = translator.pipeline.prepare(source, pair).segments
        if len(segments) == 1 and segments[0].source_ids and segments[0].carried is None:
            alone.append((segments[0], reference))
    requests = [translator.request(segment, pair, SearchConfig()) for segment, _ in alone]
    found = translator.search(requests)
    looped = [
        Looped(segment=segment, request=request, found=ranked[0], reference=reference)
        for (segment, reference), request, ranked in zip(alone, requests, found, strict=True)
        if has_loop(ranked[0].token_ids) and not has_loop(segment.source_ids)
    ]
    return len(alone), looped


class Ways:
    """Ways of one direction of a checkpoint, each from sentences that loop to what became of them.

    Args:
        translator: Of the checkpoint.
        tokenizer: Of the checkpoint.
        pair: The direction.
    """

    def __init__(self, translator: Translator, tokenizer: Tokenizer, pair: LanguagePair) -> None:
        self._translator = translator
        self._tokenizer = tokenizer
        self._pair = pair

    def each(self, looped: Sequence[Looped]) -> Iterator[tuple[str, list[str], int]]:
        """Each way's name, its translations, and how many of them loop still."""
        translator = self._translator
        yield "as it is", *self._written([[one.found] for one in looped])
        for size in SIZES:
            found = translator.search([_without_repeats(one.request, size) for one in looped])
            yield f"no {size} twice", *self._written([ranked[:1] for ranked in found])
        yield "cut", *self._written([self._cut(one.segment) for one in looped])
        texts = [one.segment.text for one in looped]
        whole = translator.translate(texts, self._pair, SearchConfig())
        num_left = sum(any("loop" in s.quality.failed for s in one.segments) for one in whole)
        yield "all", [one.text for one in whole], num_left

    def _cut(self, segment: Segment) -> list[Hypothesis]:
        """What is found for the pieces of a sentence that is cut once."""
        translator, pair = self._translator, self._pair
        spans = cut_spans(
            segment.text,
            lambda text: len(self._tokenizer.encode(text, pair)),
            max(2 * len(segment.source_ids) // 3, 2),
        )
        pieces = [translator.pipeline.prepare(segment.text[low:high], pair) for low, high in spans]
        search = SearchConfig()
        requests = [one for piece in pieces for one in translator.requests(piece, pair, search)]
        return [ranked[0] for ranked in translator.search(requests)]

    def _written(self, found: Sequence[Sequence[Hypothesis]]) -> tuple[list[str], int]:
        """The texts of pieces, joined, and how many of them have one that loops."""
        decode = self._tokenizer.decode
        texts = [" ".join(decode(piece.token_ids).strip() for piece in one) for one in found]
        return texts, sum(any(has_loop(piece.token_ids) for piece in one) for one in found)


def _without_repeats(request: DecodeRequest, size: int) -> DecodeRequest:
    return structs.replace(request, search=replace(request.search, no_repeat_ngram=size))


def table(figures: Sequence[Figures]) -> str:
    """Loops that are left and chrF by direction and way, in Markdown."""
    ways = list(dict.fromkeys(one.way for one in figures))
    lines = [f"| direction, loops | {' | '.join(ways)} |", f"|---|{'---:|' * len(ways)}"]
    for pair in dict.fromkeys(one.pair for one in figures):
        own = [one for one in figures if one.pair == pair]
        cells = [f"{one.num_left}, {one.chrf:.1f}" for one in own]
        heading = f"{pair}, {own[0].num_looped} of {own[0].num_sentences}"
        lines.append(f"| {heading} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, write, print."""
    measure_all("loops", (__doc__ or "").splitlines()[0], measure, table)


if __name__ == "__main__":
    main()
