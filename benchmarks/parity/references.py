"""What the references say of the same sentences, and how far we are from it.

Owns a comparison a reference: transformers shows everything, CTranslate2 the log-probabilities of
given tokens and its hypotheses, Marian what it wrote down when the fixtures were made.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import ctranslate2
import torch
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel

from benchmarks.parity.families import Reference
from benchmarks.parity.figures import Distance, Figures
from benchmarks.parity.subject import GREEDY, MAX_TARGET, Sample, Subject
from model.config import SpecialTokens
from model.offline.translator import Translator
from model.request import DecodeRequest, Hypothesis
from support.huggingface import TIE, Comparison, Generated, generate, generate_greedily
from support.marian_oracle import MarianHypothesis, expected, marian_search, word_scores

BEAM = 4
NUM_SCORED = 2
"""Of Marian's n-best lists: whose words are compared one by one."""


def compare_transformers(subject: Subject, samples: Sequence[Sample], figures: Figures) -> None:
    """Encoder output, logits, all four hypotheses of every sentence, and the greedy one."""
    theirs = AutoModelForSeq2SeqLM.from_pretrained(subject.source, dtype=torch.float32).eval()
    figures.encoder = Distance()
    translator, comparison = Translator(subject.checkpoint), Comparison()
    for sample in samples:
        _add_network(subject, sample, theirs, figures.encoder, figures.logits)
        requests = subject.requests(sample)
        ours = translator.search(requests)
        others = generate(theirs, subject.checkpoint.manifest.tokens, requests)
        for mine, other in zip(ours, others, strict=True):
            comparison.add("", mine, other)
        _add_greedy(subject, sample, translator, theirs, figures)
    count(figures, comparison)


def _add_greedy(
    subject: Subject,
    sample: Sample,
    translator: Translator,
    theirs: PreTrainedModel,
    figures: Figures,
) -> None:
    """Compare the hypotheses of greedy searches, of which transformers tells no scores."""
    requests = subject.requests(sample, GREEDY)
    others = generate_greedily(theirs, subject.checkpoint.manifest.tokens, requests)
    searched = translator.search(requests)
    for source, mine, other in zip(sample.sources, searched, others, strict=True):
        ours = mine[0].token_ids
        if ours == other:
            figures.greedy_equal += 1
        elif _is_tie(subject, sample, source, ours, other):
            figures.greedy_ties += 1
        else:
            figures.greedy_differing += 1


@torch.inference_mode()
def _is_tie(
    subject: Subject,
    sample: Sample,
    source: list[int],
    ours: Sequence[int],
    theirs: Sequence[int],
) -> bool:
    """Whether two greedy hypotheses part where both tokens are as likely, within 1e-4."""
    end = subject.checkpoint.manifest.tokens.eos_id
    both = [*ours, end], [*theirs, end]
    place = next(i for i, pair in enumerate(zip(*both, strict=False)) if pair[0] != pair[1])
    fed = torch.tensor([[*sample.prefix, *ours[:place]]])
    logits = subject.checkpoint.transformer(torch.tensor([source]), fed)[0, -1]
    return float((logits[both[0][place]] - logits[both[1][place]]).abs()) <= TIE


@torch.inference_mode()
def _add_network(
    subject: Subject, sample: Sample, theirs: PreTrainedModel, encoder: Distance, logits: Distance
) -> None:
    """Compare what is no padding."""
    is_real = sample.is_real
    output = theirs(
        input_ids=sample.source,
        attention_mask=is_real.long(),
        decoder_input_ids=sample.fed,
        use_cache=False,
    )
    memory, found = subject.network(sample)
    encoder.add(memory[is_real], output.encoder_last_hidden_state[is_real])
    logits.add(found, output.logits)


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
        requests = subject.requests(sample)
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
        figures.reference_int8 = _marians_int8()


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


def _marians_int8() -> Distance:
    """Word by word, of the hypotheses that Marian found in float32 and in int8."""
    distance = Distance()
    both = zip(expected("int8"), expected("int8", "intgemm8"), strict=True)
    for (_, float32), (_, int8) in both:
        known = {hypothesis.pieces: hypothesis.word_scores for hypothesis in float32}
        for hypothesis in int8:
            if hypothesis.pieces in known:
                distance.add_lists([hypothesis.word_scores], [known[hypothesis.pieces]])
    return distance


def count(figures: Figures, comparison: Comparison) -> None:
    """What a comparison of hypotheses came to, as figures."""
    figures.num_ties, figures.num_differing = len(comparison.ties), len(comparison.differences)
    figures.num_equal = comparison.num_hypotheses - figures.num_ties - figures.num_differing


COMPARISONS: Mapping[Reference, Callable[[Subject, Sequence[Sample], Figures], None]] = {
    "transformers": compare_transformers,
    "ctranslate2": compare_ctranslate2,
    "marian": compare_marian,
}
