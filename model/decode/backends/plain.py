"""The backend without caches: the plain network over whole targets at every step.

Owns its running sentences and the order of work within a step. It runs every `ModelConfig` that
`model.nn` runs, at O(t²) a step: slow, for networks that no other backend runs, and an oracle of
those that do. The choice among hypotheses is `beam_search`, when to stop is `scoring`.
"""

import time
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from model.config import SearchConfig, SpecialTokens
from model.decode import beam_search
from model.decode.attention import FloatArray
from model.decode.constraints import forced_token, outside_mask, restrict, suppressed_mask
from model.decode.forced_attention import forced_attention
from model.decode.lexical import LexicalStep, automata_of
from model.decode.sampling import row_sampling, sample
from model.decode.scoring import hypothesis_score, running_bound, stop_threshold
from model.decode.timing import StepPart, Stopwatch
from model.decode.token_checks import check_tokens
from model.nn.masks import lengths_mask
from model.nn.transformer import Transformer
from model.phrases import num_missed
from model.request import DecodeRequest, FinishedSentence, Hypothesis, SessionLimits
from model.shortlist import Shortlist, tokens_of_request

_MAX_ROWS_AT_ONCE = 32
"""Rows that go through the decoder together: attention weights take memory by rows · T²."""


@dataclass(slots=True, kw_only=True)
class _Sentence:
    """One running sentence of K beams whose next input is target token t.

    Attributes:
        slot_id: The session's name for it.
        request: What was asked.
        encoded: (S, D) encoder output.
        tokens: (K, t) int64, target tokens so far, the prefix included.
        log_probs: (K, t − 1) log probability of each of them but the first.
        sources: (K, t − 1) int64, the source position most attended to when it was chosen.
        scores: (K,) sums of log probabilities; -inf marks a beam without hypothesis.
        phrases: (2, K) int64, how far each beam has come with its phrases: nodes, and those met.
        finished: Kept hypotheses, best first, at most K.
    """

    slot_id: int
    request: DecodeRequest
    encoded: Tensor
    tokens: Tensor
    log_probs: Tensor
    sources: Tensor
    scores: Tensor
    phrases: Tensor
    finished: list[Hypothesis] = field(default_factory=list)

    @property
    def search(self) -> SearchConfig:
        """How this sentence is searched."""
        return self.request.search

    @property
    def length(self) -> int:
        """Target tokens so far, t."""
        return self.tokens.shape[1]

    @property
    def num_generated(self) -> int:
        """Tokens chosen so far; negative within the prefix."""
        return self.length - len(self.request.prefix_ids)

    def keep(self, hypothesis: Hypothesis) -> None:
        """Add a finished hypothesis if it is among the K best."""
        insort(self.finished, hypothesis, key=lambda kept: (kept.num_missed, -kept.score))
        del self.finished[self.search.beam_size :]


class PlainBackend:
    """Running sentences over a `Transformer` as it is."""

    def __init__(
        self,
        transformer: Transformer,
        *,
        tokens: SpecialTokens,
        limits: SessionLimits,
        shortlist: Shortlist | None = None,
    ) -> None:
        """Allocate nothing: there are no caches.

        Args:
            transformer: In evaluation mode; its weights must not change afterwards.
            tokens: The vocabulary's special tokens.
            limits: What the session lets run at once.
            shortlist: What every sentence may choose by its source tokens; None: all tokens.
        """
        weight = transformer.target_embedding.weight
        self._transformer = transformer
        self._tokens = tokens
        self._shortlist = shortlist
        self._limits = limits
        self._device = weight.device
        self._score_dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
        self._suppressed = self._ids(tokens.suppressed_ids) if tokens.suppressed_ids else None
        self._sentences: dict[int, _Sentence] = {}
        self._num_encoded_tokens = 0
        self._watch = Stopwatch(time.perf_counter)

    def _ids(self, values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self._device)

    @torch.inference_mode()
    def admit(self, slot_ids: Sequence[int], requests: Sequence[DecodeRequest]) -> None:
        """Encode sentences as one padded batch; see `Backend.admit`."""
        check_tokens(requests, vocab_size=self._transformer.config.output_size, tokens=self._tokens)
        lengths = [len(request.source_ids) for request in requests]
        pad_id = self._transformer.config.pad_id
        padded = pad_sequence(
            [self._ids(request.source_ids) for request in requests],
            batch_first=True,
            padding_value=pad_id,
        )
        encoded = self._transformer.encode(padded, lengths_mask(self._ids(lengths), max(lengths)))
        for slot_id, request, output in zip(slot_ids, requests, encoded, strict=True):
            own = output[: len(request.source_ids)].clone()
            self._sentences[slot_id] = self._start(slot_id, request, own)
        self._num_encoded_tokens += padded.numel()

    def _start(self, slot_id: int, request: DecodeRequest, encoded: Tensor) -> _Sentence:
        beam_size = request.search.beam_size
        scores = torch.full((beam_size,), -torch.inf, dtype=self._score_dtype, device=self._device)
        scores[: request.search.num_starts] = 0.0
        return _Sentence(
            slot_id=slot_id,
            request=request,
            encoded=encoded,
            tokens=self._ids([request.prefix_ids[0]] * beam_size).unsqueeze(1),
            log_probs=scores.new_zeros(beam_size, 0),
            sources=self._ids([]).expand(beam_size, 0),
            scores=scores,
            phrases=self._ids([0] * beam_size).expand(2, -1),
        )

    @torch.inference_mode()
    def release(self, slot_id: int) -> None:
        """Drop a running sentence."""
        del self._sentences[slot_id]

    def attention(self, request: DecodeRequest, token_ids: Sequence[int]) -> FloatArray:
        """Weights (T, S) by a pass of the plain network; see `Backend.attention`."""
        return forced_attention(self._transformer, request, token_ids)

    def num_encoded_tokens(self) -> int:
        """Source tokens encoded so far: each batch is as wide as its longest source."""
        return self._num_encoded_tokens

    def step_seconds(self) -> dict[StepPart, float]:
        """Seconds so far: the whole network's as "output", the rest as "search"."""
        return dict(self._watch.seconds)

    def check_integrity(self) -> None:
        """Assert that every sentence has as many beams as it asked for, all equally long."""
        assert len(self._sentences) <= self._limits.max_slots
        for slot_id, sentence in self._sentences.items():
            assert sentence.slot_id == slot_id
            past = (sentence.search.beam_size, sentence.length - 1)
            assert sentence.log_probs.shape == sentence.sources.shape == past
            assert sentence.scores.shape == past[:1]

    @torch.inference_mode()
    def step(self) -> list[FinishedSentence]:
        """Extend every running hypothesis by one token; finished sentences leave."""
        self._watch.start()
        sentences = list(self._sentences.values())
        groups = self._groups(sentences)
        logits, sources = self._run_network(sentences)
        self._watch.lap("output")
        lexical = self._lexical(sentences)
        continuations = beam_search.row_continuations(
            restrict(logits.to(self._score_dtype), self._outside(sentences)),
            groups.max_candidates,
            self._suppressed,
            self._mask(sentences),
            words=None if lexical is None else lexical.automata.words_of(groups),
        )
        forced = self._forced_tokens(sentences)
        continuations = beam_search.force(self._drawn(continuations, sentences), forced)
        in_prefix = self._ids([sentence.num_generated < 0 for sentence in sentences]) > 0
        scores, eos_id = torch.cat([one.scores for one in sentences]), self._tokens.eos_id
        candidates = beam_search.best_candidates(scores, continuations, groups)
        if lexical is not None:
            candidates = lexical.candidates(
                candidates, scores, continuations, groups, forced=forced, eos_id=eos_id
            )
        decision = beam_search.decide(candidates, groups, eos_id=eos_id, endless=in_prefix)
        self._collect(sentences, candidates, decision)
        self._extend(sentences, decision, sources)
        if lexical is not None:
            states = torch.stack(lexical.after(decision, groups, in_prefix=in_prefix))
            beams = groups.widths.tolist()
            for sentence, own in zip(sentences, torch.split(states, beams, dim=1), strict=True):
                sentence.phrases = own
        finished = self._leave(sentences, decision)
        self._watch.lap("search")
        return finished

    def _mask(self, sentences: Sequence[_Sentence]) -> Tensor | None:
        """(R, V) bool, what single rows may not choose; None where no sentence asks for it."""
        by_row = [
            sentence.request.suppressed_ids
            for sentence in sentences
            for _ in range(sentence.search.beam_size)
        ]
        if not any(by_row):
            return None
        size = self._transformer.config.output_size
        return suppressed_mask(by_row, vocab_size=size, device=self._device)

    def _lexical(self, sentences: Sequence[_Sentence]) -> LexicalStep | None:
        """What phrases do in the step; None where no sentence has any."""
        if not any(sentence.request.phrases for sentence in sentences):
            return None
        nodes, met = torch.cat([sentence.phrases for sentence in sentences], dim=1)
        automata = automata_of([one.request.phrases for one in sentences], self._device)
        return LexicalStep(automata=automata, nodes=nodes, met=met)

    def _outside(self, sentences: Sequence[_Sentence]) -> Tensor | None:
        """(R, V) bool, what is not in the list of a row; None without a shortlist."""
        if self._shortlist is None:
            return None
        size = self._transformer.config.output_size
        by_row = [
            tokens_of_request(self._shortlist, sentence.request, self._tokens, vocab_size=size)
            for sentence in sentences
            for _ in range(sentence.search.beam_size)
        ]
        return outside_mask(by_row, vocab_size=size).to(self._device)

    def _groups(self, sentences: Sequence[_Sentence]) -> beam_search.RowGroups:
        """Rows of each sentence: its beams, behind those of the sentences before it."""
        widths = self._ids([sentence.search.beam_size for sentence in sentences])
        num_candidates = [sentence.search.candidates for sentence in sentences]
        width = int(widths.max())
        live = lengths_mask(widths, width)
        first = (widths.cumsum(0) - widths).unsqueeze(1)
        return beam_search.RowGroups(
            rows=(first + torch.arange(width, device=self._device)) * live,
            live=live,
            position=live.flatten().nonzero().squeeze(1),
            widths=widths,
            num_candidates=self._ids(num_candidates),
            max_candidates=max(num_candidates),
        )

    def _run_network(self, sentences: Sequence[_Sentence]) -> tuple[Tensor, Tensor]:
        """Run the decoder over everything so far.

        Returns:
            (R, V) logits of the next token, and (R,) int64, the source position that each row
            attended to most in the last layer; zeros if no sentence asks for alignments.
        """
        widths = self._ids([sentence.search.beam_size for sentence in sentences])
        lengths = self._ids([sentence.length for sentence in sentences])
        source_lengths = self._ids([len(sentence.encoded) for sentence in sentences])
        is_real = lengths_mask(lengths, int(lengths.max())).repeat_interleave(widths, dim=0)
        targets = torch.full_like(is_real, self._transformer.config.pad_id, dtype=torch.int64)
        targets[is_real] = torch.cat([sentence.tokens.flatten() for sentence in sentences])
        encoded = pad_sequence([sentence.encoded for sentence in sentences], batch_first=True)
        source_mask = lengths_mask(source_lengths, int(source_lengths.max()))
        owners = torch.arange(len(sentences), device=self._device).repeat_interleave(widths)
        with_alignment = any(sentence.search.with_alignment for sentence in sentences)
        hidden, sources = [], []
        for start in range(0, len(targets), _MAX_ROWS_AT_ONCE):
            rows = slice(start, start + _MAX_ROWS_AT_ONCE)
            own_hidden, own_sources = self._last_position(
                targets[rows],
                lengths[owners[rows]] - 1,
                encoded[owners[rows]],
                source_mask[owners[rows]],
                with_alignment=with_alignment,
            )
            hidden.append(own_hidden)
            sources.append(own_sources)
        return self._transformer.project(torch.cat(hidden)), torch.cat(sources)

    def _last_position(
        self,
        targets: Tensor,
        last: Tensor,
        encoded: Tensor,
        source_mask: Tensor,
        *,
        with_alignment: bool,
    ) -> tuple[Tensor, Tensor]:
        """(R, T), (R,), (R, S, D), (R, S) → decoder output (R, D), most attended source (R,)."""
        maps: list[Tensor] | None = [] if with_alignment else None
        hidden = self._transformer.decoder(
            self._transformer.embed_target(targets), encoded, source_mask, cross_maps=maps
        )
        rows = torch.arange(len(targets), device=self._device)
        if not maps:
            return hidden[rows, last], torch.zeros_like(last)
        return hidden[rows, last], maps[-1][rows, :, last].mean(dim=1).argmax(dim=-1)

    def _forced_tokens(self, sentences: Sequence[_Sentence]) -> Tensor:
        """(R,) int64: the only token each row may add, or −1 where it is free."""
        forced = []
        for sentence in sentences:
            token = forced_token(sentence.request, self._tokens, sentence.num_generated)
            forced += [-1 if token is None else token] * sentence.search.beam_size
        return self._ids(forced)

    def _drawn(
        self, continuations: beam_search.RowContinuations, sentences: Sequence[_Sentence]
    ) -> beam_search.RowContinuations:
        """The continuations, drawn for the rows of sentences that are sampled."""
        rows = [(one.search, beam) for one in sentences for beam in range(one.search.beam_size)]
        sampling = row_sampling(rows, self._device)
        if sampling is None:
            return continuations
        steps = [[one.num_generated] * one.search.beam_size for one in sentences]
        return sample(continuations, sampling, self._ids(list(chain.from_iterable(steps))))

    def _collect(
        self,
        sentences: Sequence[_Sentence],
        candidates: beam_search.Candidates,
        decision: beam_search.Decision,
    ) -> None:
        """Keep the hypotheses that just ended."""
        ended = decision.ends.nonzero()
        at = ended.unbind(1)
        for index, beam, log_prob_sum, log_prob in zip(
            ended[:, 0].tolist(),
            candidates.beams[at].tolist(),
            candidates.scores[at].tolist(),
            candidates.log_probs[at].tolist(),
            strict=True,
        ):
            sentence = sentences[index]
            length = sentence.num_generated + 1
            score = hypothesis_score(log_prob_sum, length, sentence.search.length_penalty)
            sentence.keep(_hypothesis(sentence, beam, score, log_prob))

    @staticmethod
    def _extend(
        sentences: Sequence[_Sentence], decision: beam_search.Decision, sources: Tensor
    ) -> None:
        """Give every beam its parent's past and what it adds."""
        first = 0
        for sentence in sentences:
            rows = slice(first, first + sentence.search.beam_size)
            parents = decision.parents[rows]
            beams = parents - first
            for name, added in (
                ("tokens", decision.tokens[rows]),
                ("log_probs", decision.log_probs[rows]),
                ("sources", sources[parents]),
            ):
                past = getattr(sentence, name)[beams]
                setattr(sentence, name, torch.cat((past, added.unsqueeze(1)), dim=1))
            sentence.scores = decision.scores[rows]
            first = rows.stop

    def _leave(
        self, sentences: Sequence[_Sentence], decision: beam_search.Decision
    ) -> list[FinishedSentence]:
        """Release the sentences whose running hypotheses cannot matter any more."""
        finished = []
        for sentence, best in zip(sentences, decision.best.tolist(), strict=True):
            search, num_generated = sentence.search, sentence.num_generated
            if num_generated < 1:
                continue
            threshold = stop_threshold(search, [kept.score for kept in sentence.finished])
            if running_bound(search, best, num_generated) <= threshold:
                self.release(sentence.slot_id)
                wanted = tuple(sentence.finished[: search.num_hypotheses])
                finished.append(FinishedSentence(slot_id=sentence.slot_id, hypotheses=wanted))
        return finished


def _hypothesis(sentence: _Sentence, beam: int, score: float, log_prob: float) -> Hypothesis:
    """What one beam has generated, and the EOS that ends it."""
    prefix = len(sentence.request.prefix_ids)
    alignment = None
    if sentence.search.with_alignment:
        alignment = tuple(sentence.sources[beam, prefix - 1 :].tolist())
    token_ids = tuple(sentence.tokens[beam, prefix:].tolist())
    return Hypothesis(
        token_ids=token_ids,
        score=score,
        token_log_probs=(*sentence.log_probs[beam, prefix - 1 :].tolist(), log_prob),
        is_truncated=sentence.num_generated == sentence.search.max_length - 1,
        alignment=alignment,
        num_missed=num_missed(sentence.request.phrases, token_ids),
    )
