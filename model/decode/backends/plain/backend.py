"""The backend without caches: the plain network over whole targets at every step.

Owns the order of work within a step, and who runs. It runs every `ModelConfig` that `model.nn`
runs, at O(t²) a step: slow, for networks that no other backend runs, and an oracle of those that
do. The whole network's time counts as "output", the rest as "search". The choice among hypotheses
is `choice`, when to stop is `finished`.
"""

from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from model.config import SpecialTokens
from model.decode import beam_search
from model.decode.backends.plain.network import next_logits
from model.decode.backends.plain.sentence import RunningSentence
from model.decode.backends.torch_backend import TorchBackend
from model.decode.choice import choose, diversity_of
from model.decode.constraints import forced_token, outside_mask, restrict, suppressed_mask
from model.decode.finished import FinishedHypotheses
from model.decode.lexical import LexicalStep, automata_of
from model.decode.repeats import repeat_mask, united
from model.decode.sampling import row_sampling, sample
from model.decode.scoring import hypothesis_score
from model.decode.token_checks import check_tokens
from model.nn.masks import lengths_mask
from model.nn.transformer import Transformer
from model.request import DecodeRequest, FinishedSentence, SessionLimits
from model.shortlist import Shortlist, tokens_of_request


class PlainBackend(TorchBackend):
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
        super().__init__(transformer, tokens=tokens, limits=limits)
        self._shortlist = shortlist
        self._suppressed = self._ids(tokens.suppressed_ids) if tokens.suppressed_ids else None
        self._sentences: dict[int, RunningSentence] = {}

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

    def _start(self, slot_id: int, request: DecodeRequest, encoded: Tensor) -> RunningSentence:
        beam_size = request.search.beam_size
        scores = torch.full((beam_size,), -torch.inf, dtype=self._score_dtype, device=self._device)
        scores[:: request.search.start_stride] = 0.0
        return RunningSentence(
            slot_id=slot_id,
            request=request,
            encoded=encoded,
            tokens=self._ids([request.prefix_ids[0]] * beam_size).unsqueeze(1),
            log_probs=scores.new_zeros(beam_size, 0),
            sources=self._ids([]).expand(beam_size, 0),
            scores=scores,
            phrases=self._ids([0] * beam_size).expand(2, -1),
            finished=FinishedHypotheses(request.search),
        )

    @torch.inference_mode()
    def release(self, slot_id: int) -> None:
        """Drop a running sentence."""
        del self._sentences[slot_id]

    def written(self, slot_id: int) -> list[int]:
        """Tokens of a running sentence's first beam; see `Backend.written`."""
        sentence = self._sentences[slot_id]
        tokens: list[int] = sentence.tokens[0, len(sentence.request.prefix_ids) :].tolist()
        return tokens

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
        logits, sources = next_logits(self._transformer, sentences)
        self._watch.lap("output")
        lexical = self._lexical(sentences)
        continuations = beam_search.row_continuations(
            restrict(logits.to(self._score_dtype), self._outside(sentences)),
            groups.max_candidates,
            self._suppressed,
            united(self._mask(sentences), self._repeats(sentences)),
            words=None if lexical is None else lexical.automata.words_of(groups),
        )
        forced = self._forced_tokens(sentences)
        continuations = beam_search.force(self._drawn(continuations, sentences), forced)
        in_prefix = self._ids([sentence.num_generated < 0 for sentence in sentences]) > 0
        candidates, decision = choose(
            torch.cat([one.scores for one in sentences]),
            continuations,
            groups,
            eos_id=self._tokens.eos_id,
            forced=forced,
            endless=in_prefix,
            lexical=lexical,
            diversity=diversity_of(
                [one.search for one in sentences], device=self._device, dtype=self._score_dtype
            ),
        )
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

    def _mask(self, sentences: Sequence[RunningSentence]) -> Tensor | None:
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

    def _repeats(self, sentences: Sequence[RunningSentence]) -> Tensor | None:
        """(R, V) bool, by which tokens rows would repeat themselves; None where all may."""
        if not any(sentence.search.no_repeat_ngram for sentence in sentences):
            return None
        return torch.cat([self._own_repeats(sentence) for sentence in sentences])

    def _own_repeats(self, sentence: RunningSentence) -> Tensor:
        """`_repeats` of one sentence's rows."""
        size, ones = sentence.search.no_repeat_ngram, self._ids([1] * sentence.search.beam_size)
        return repeat_mask(
            sentence.tokens,
            ones * len(sentence.request.prefix_ids),
            ones * sentence.length,
            ones * size,
            max_size=size,
            vocab_size=self._transformer.config.output_size,
        )

    def _lexical(self, sentences: Sequence[RunningSentence]) -> LexicalStep | None:
        """What phrases do in the step; None where no sentence has any."""
        if not any(sentence.request.phrases for sentence in sentences):
            return None
        nodes, met = torch.cat([sentence.phrases for sentence in sentences], dim=1)
        automata = automata_of([one.request.phrases for one in sentences], self._device)
        return LexicalStep(automata=automata, nodes=nodes, met=met)

    def _outside(self, sentences: Sequence[RunningSentence]) -> Tensor | None:
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

    def _groups(self, sentences: Sequence[RunningSentence]) -> beam_search.RowGroups:
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

    def _forced_tokens(self, sentences: Sequence[RunningSentence]) -> Tensor:
        """(R,) int64: the only token each row may add, or −1 where it is free."""
        forced = []
        for sentence in sentences:
            token = forced_token(sentence.request, self._tokens, sentence.num_generated)
            forced += [-1 if token is None else token] * sentence.search.beam_size
        return self._ids(forced)

    def _drawn(
        self, continuations: beam_search.RowContinuations, sentences: Sequence[RunningSentence]
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
        sentences: Sequence[RunningSentence],
        candidates: beam_search.Candidates,
        decision: beam_search.Decision,
    ) -> None:
        """Keep the hypotheses that just ended."""
        for end in beam_search.ends_of(candidates, decision):
            sentence = sentences[end.sentence]
            length = sentence.num_generated + 1
            score = hypothesis_score(end.log_prob_sum, length, sentence.search.length_penalty)
            found = sentence.hypothesis(end.beam, score, end.log_prob)
            sentence.finished.keep(found, beam=end.beam)

    @staticmethod
    def _extend(
        sentences: Sequence[RunningSentence], decision: beam_search.Decision, sources: Tensor
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
        self, sentences: Sequence[RunningSentence], decision: beam_search.Decision
    ) -> list[FinishedSentence]:
        """Release the sentences whose running hypotheses cannot enter the result any more."""
        finished = []
        for sentence, best in zip(sentences, decision.best.tolist(), strict=True):
            num_generated = sentence.num_generated
            if num_generated >= 1 and sentence.finished.is_over(best, num_generated):
                self.release(sentence.slot_id)
                wanted = sentence.finished.best()
                finished.append(FinishedSentence(slot_id=sentence.slot_id, hypotheses=wanted))
        return finished
