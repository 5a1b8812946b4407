"""Outputs of the reference programs for the same sentences, and our distance from them.

Owns a comparison a reference: transformers shows everything, CTranslate2 the log-probabilities of
given tokens and its hypotheses, Marian what it wrote down when the fixtures were made.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import ctranslate2

from benchmarks.parity.answers import add_answers, asked, count, reference_of
from benchmarks.parity.families import Reference
from benchmarks.parity.figures import Distance, Figures
from benchmarks.parity.subject import MAX_TARGET, Sample, Subject
from model.config import SpecialTokens
from model.offline.translator import Translator
from model.request import DecodeRequest, Hypothesis
from support.huggingface import Comparison, Generated
from support.marian_oracle import MarianHypothesis, expected, marian_search, word_scores

BEAM = 4
NUM_SCORED = 2
"""Of Marian's n-best lists: whose words are compared one by one."""


def compare_transformers(subject: Subject, samples: Sequence[Sample], figures: Figures) -> None:
    """Encoder output, logits, all four hypotheses of every sentence, and the greedy one."""
    theirs, translator = reference_of(subject.source), Translator(subject.checkpoint)
    for sample in samples:
        answers = asked(theirs, subject.checkpoint.manifest.tokens, sample)
        add_answers(subject, translator, sample, answers, figures)


def compare_ctranslate2(subject: Subject, samples: Sequence[Sample], figures: Figures) -> None:
    """Log-probabilities of given tokens, the best hypotheses, and the engine's own int8."""
    engine, int8 = (
        Engine.of(subject, compute_type=compute_type) for compute_type in ("float32", "int8")
    )
    figures.reference_int8, comparison = Distance(), Comparison()
    translator = Translator(_unsuppressed(subject).checkpoint)
    for sample in samples:
        theirs = engine.log_probs(sample)
        figures.logits.add_lists(subject.log_probs(sample), theirs)
        figures.reference_int8.add_lists(int8.log_probs(sample), theirs)
        requests = sample.requests()
        for mine, other in zip(
            translator.search(requests), engine.best(sample, requests), strict=True
        ):
            # At the cap we force an end and count it, and the engine does neither.
            if not mine[0].is_truncated and len(other.token_ids) < MAX_TARGET - 1:
                comparison.add("", mine[:1], [other])
    count(figures, comparison)


def _unsuppressed(subject: Subject) -> Subject:
    """The engine leaves suppressed tokens out before the softmax, we after it: none are."""
    manifest = subject.checkpoint.manifest
    manifest = replace(manifest, tokens=replace(manifest.tokens, suppressed_ids=()))
    return replace(subject, checkpoint=replace(subject.checkpoint, manifest=manifest))


class Engine:
    """CTranslate2 on a directory, asked in our token ids."""

    def __init__(
        self,
        directory: Path,
        *,
        source: Mapping[int, str],
        target: Mapping[int, str],
        tokens: SpecialTokens,
        compute_type: str = "float32",
        adds_source_eos: bool = False,
    ) -> None:
        self._translator = ctranslate2.Translator(
            str(directory), compute_type=compute_type, intra_threads=1
        )
        self._source, self._target, self._tokens = source, target, tokens
        self._ids = {piece: index for index, piece in target.items()}
        self._adds_source_eos = adds_source_eos

    @classmethod
    def of(cls, subject: Subject, *, compute_type: str) -> "Engine":
        """On the directory that was converted."""
        tokenizer, tokens = subject.checkpoint.tokenizer, subject.checkpoint.manifest.tokens
        return cls(
            subject.engine,
            source=tokenizer.source_pieces(),
            target=tokenizer.target_pieces(),
            tokens=tokens,
            compute_type=compute_type,
        )

    def log_probs(self, sample: Sample) -> list[list[float]]:
        """Of every target token, EOS included; language tags are fed, and not looked at."""
        tags = sample.prefix[1:]
        targets = [[self._target[i] for i in (*tags, *ids[:-1])] for ids in sample.targets]
        results = self._translator.score_batch(self._sources(sample), targets)
        return [list(result.log_probs[len(tags) :]) for result in results]

    def best(self, sample: Sample, requests: Sequence[DecodeRequest]) -> list[Generated]:
        """The best hypothesis of every sentence."""
        search = requests[0].search
        results = self._translator.translate_batch(
            self._sources(sample),
            beam_size=search.beam_size,
            length_penalty=search.length_penalty,
            return_scores=True,
            min_decoding_length=0,
            max_decoding_length=search.max_length - 1,
        )
        return [
            Generated(
                tuple(self._ids.get(piece, self._tokens.unk_id) for piece in result.hypotheses[0]),
                result.scores[0],
            )
            for result in results
        ]

    def _sources(self, sample: Sample) -> list[list[str]]:
        end = self._tokens.eos_id
        return [
            [self._source.get(index, "</s>" if index == end else "<unk>") for index in ids]
            for ids in (ids[:-1] if self._adds_source_eos else ids for ids in sample.sources)
        ]


def compare_marian(subject: Subject, _samples: Sequence[Sample], figures: Figures) -> None:
    """Marian's n-best lists: log-probability of every word, and its own search on our network.

    Fixtures with one hypothesis a sentence have scores of given translations.
    """
    fixture = subject.source.parent.name if subject.source.is_file() else subject.source.name
    checkpoint, comparison = subject.checkpoint, Comparison()
    lists = expected(fixture)
    for text, hypotheses in lists:
        source = checkpoint.tokenizer.encode(text, subject.pair)
        targets = [target_ids(subject, hypothesis) for hypothesis in hypotheses]
        start = checkpoint.manifest.tokens.start_id
        for target, hypothesis in list(zip(targets, hypotheses, strict=True))[:NUM_SCORED]:
            ours = word_scores(checkpoint.transformer, start, source, target)
            figures.logits.add_lists([ours], [hypothesis.word_scores])
        if len(hypotheses) == BEAM:
            compare_search(subject, source, targets, hypotheses, comparison)
    figures.num_sentences = len(lists)
    figures.is_searched = comparison.num_sentences > 0
    count(figures, comparison)
    if fixture == "int8":
        _add_marians_int8(subject, figures)


def target_ids(subject: Subject, hypothesis: MarianHypothesis) -> list[int]:
    """Ids of a line of Marian's, with EOS unless the cap cut it."""
    names = subject.checkpoint.tokenizer.target_pieces()
    ids = {piece: index for index, piece in names.items()}
    tokens = subject.checkpoint.manifest.tokens
    found = [ids.get(piece, tokens.unk_id) for piece in hypothesis.pieces]
    is_whole = len(hypothesis.word_scores) == len(found) + 1
    return [*found, tokens.eos_id] if is_whole else found


def compare_search(
    subject: Subject,
    source: list[int],
    targets: Sequence[Sequence[int]],
    hypotheses: Sequence[MarianHypothesis],
    comparison: Comparison,
) -> None:
    """Marian narrows its beam by every hypothesis that ends: its own search, written plainly."""
    manifest = subject.checkpoint.manifest
    found = marian_search(subject.checkpoint.transformer, manifest, source, beam_size=BEAM)
    end = manifest.tokens.eos_id
    ours = [
        Hypothesis(token_ids=tuple(ids), score=score, token_log_probs=(), is_truncated=False)
        for ids, score in found
    ]
    theirs = [
        Generated(tuple(index for index in ids if index != end), hypothesis.score)
        for ids, hypothesis in zip(targets, hypotheses, strict=True)
    ]
    comparison.add("", ours, theirs)


def _add_marians_int8(subject: Subject, figures: Figures) -> None:
    """Of hypotheses that Marian found in float32 and in int8, word by word: its own, and ours."""
    theirs, ours = Distance(), Distance()
    both = zip(expected("int8"), expected("int8", "intgemm8"), strict=True)
    for (text, float32), (_, int8) in both:
        known = {hypothesis.pieces: hypothesis.word_scores for hypothesis in float32}
        for hypothesis in int8:
            if hypothesis.pieces in known:
                theirs.add_lists([hypothesis.word_scores], [known[hypothesis.pieces]])
                source = subject.checkpoint.tokenizer.encode(text, subject.pair)
                given = subject.given([source], [target_ids(subject, hypothesis)])
                ours.add_lists(subject.int8_log_probs(given), subject.log_probs(given))
    figures.int8_beside, figures.reference_int8 = ours, theirs


COMPARISONS: Mapping[Reference, Callable[[Subject, Sequence[Sample], Figures], None]] = {
    "transformers": compare_transformers,
    "ctranslate2": compare_ctranslate2,
    "marian": compare_marian,
}
