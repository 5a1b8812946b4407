"""Real text for every rival: lines to token ids, answers to text and BLEU.

Owns where the text comes from: the folder that DRAGOMAN_DATA names, or the bundled sentences,
which have no references. Everything that touches text happens here, once, outside all clocks.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU

from benchmarks.peers.work import Work, rounded_cap
from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.text.drafts.segments import PreparedText
from model.text.pipeline import TextPipeline, target_cap

SENTENCES = Path(__file__).resolve().parents[1] / "sentences.en"
DATA_VARIABLE = "DRAGOMAN_DATA"
CORPORA = ("3am-captions", "docs-heldout")
_BLEU_TOKENIZER = "zh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Source lines and, if there are any, their references.

    Attributes:
        name: Where they come from.
    """

    name: str
    sources: tuple[str, ...]
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What a rival found for a segment, as the text pipeline reads it."""

    token_ids: Sequence[int]
    score: float = 0.0
    is_truncated: bool = False
    alignment: None = None


def read_lines(max_lines: int) -> Lines:
    """English lines, as many of each corpus; Chinese references where DRAGOMAN_DATA is set."""
    folder = os.environ.get(DATA_VARIABLE)
    if folder is None:
        lines = SENTENCES.read_text(encoding="utf-8").splitlines()[:max_lines]
        return Lines(name="bundled sentences", sources=tuple(lines))
    dev = Path(folder) / "en-zh" / "dev"

    def read(language: str) -> tuple[str, ...]:
        paths = [dev / f"{corpus}.{language}" for corpus in CORPORA]
        texts = [path.read_text(encoding="utf-8").split("\n") for path in paths]
        return tuple(line for lines in texts for line in lines[: max_lines // len(CORPORA)])

    return Lines(
        name=" and ".join(f"dev/{corpus}" for corpus in CORPORA),
        sources=read("en"),
        references=read("zh"),
    )


class TextTask:
    """Lines as segments of token ids, and back."""

    def __init__(self, checkpoint: Path, lines: Lines) -> None:
        self._manifest = read_manifest(checkpoint)
        self._pair = self._manifest.pairs[0]
        self._pipeline = TextPipeline(
            load_tokenizer(checkpoint, self._manifest), self._manifest.limits
        )
        self._lines = lines
        self._prepared = [self._pipeline.prepare(line, self._pair) for line in lines.sources]

    def work(self, beam_size: int) -> Work:
        """All segments in the order of the text; caps are ours, rounded up for everybody."""
        limits = self._manifest.limits
        sources = [
            segment.source_ids for text in self._prepared for segment in text.network_segments
        ]
        caps = [target_cap(len(source), limits) for source in sources]
        return Work(
            sources=tuple(sources),
            max_lengths=tuple(rounded_cap(cap, limits.max_target_length) for cap in caps),
            beam_size=beam_size,
            is_forced=False,
        )

    def bleu(self, targets: Sequence[Sequence[int]]) -> dict[str, object] | None:
        """Score and signature of detokenised answers; None without references."""
        if not self._lines.references:
            return None
        metric = BLEU(tokenize=_BLEU_TOKENIZER)
        score = metric.corpus_score(self._texts(targets), [list(self._lines.references)])
        return {"score": round(score.score, 3), "signature": str(metric.get_signature())}

    def _texts(self, targets: Sequence[Sequence[int]]) -> list[str]:
        answers = iter(targets)
        return [self._finished(text, answers) for text in self._prepared]

    def _finished(self, text: PreparedText, answers: Iterator[Sequence[int]]) -> str:
        outputs = [_Answer(token_ids=next(answers)) for _ in text.network_segments]
        return self._pipeline.finish(text, outputs).text
