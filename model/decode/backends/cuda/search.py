"""The search of a grid's step, on the device from the logits to the next step's tokens.

Owns what a step writes back into the tables and what it reports to the host. The choice among
hypotheses is `model.decode.beam_search`; which sentences are over is the host's (`ledger`).
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.config import SpecialTokens
from model.decode import beam_search
from model.decode.backends.cuda.buckets import Bucket
from model.decode.backends.cuda.kernels.covering import covers
from model.decode.backends.cuda.tables import GridTables
from model.decode.choice import Diversity, choose
from model.decode.lexical import LexicalStep
from model.decode.repeats import paths, repeat_mask, united
from model.decode.sampling import RowSampling, mixed, sample

Whole = NDArray[np.int32] | NDArray[np.int64]
Real = NDArray[np.float32] | NDArray[np.float64]

if TYPE_CHECKING:
    from model.decode.backends.cuda.kernels.chooser import KernelChooser


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Report of one step, on the host: S slots, K rows, C candidates.

    Attributes:
        tokens: (S, K) the token each row added.
        parents: (S, K) the row whose past it continues.
        sources: (S, K) the source position each row had attended to most; zeros if not asked for.
        log_probs: (S, K) the token's log probability.
        best: (S, G) sum of log probabilities of the best running hypothesis of each group of beams,
            of which there is one where none are divided; −inf when none runs.
        ends: (S, C) candidates that are finished hypotheses.
        end_rows: (S, C) the row each candidate extends.
        end_scores: (S, C) sums of log probabilities.
        end_log_probs: (S, C) what the last token contributed.
    """

    tokens: Whole
    parents: Whole
    sources: Whole
    log_probs: Real
    best: Real
    ends: NDArray[np.bool_]
    end_rows: Whole
    end_scores: Real
    end_log_probs: Real


class GridSearch:
    """One step of beam search for all slots of a bucket."""

    def __init__(
        self,
        tokens: SpecialTokens,
        *,
        vocab_size: int,
        device: torch.device,
        chooser: "KernelChooser | None" = None,
    ) -> None:
        """Take note of the special tokens.

        Args:
            tokens: The vocabulary's.
            vocab_size: Tokens there are, V.
            device: The grid's.
            chooser: Triton's programs for the steps that they cover; None: torch does all of them.
        """
        self._chooser = chooser
        self._vocab_size = vocab_size
        self._eos_id = tokens.eos_id
        suppressed = tokens.suppressed_ids
        self._suppressed = torch.tensor(suppressed, device=device) if suppressed else None

    def adds_bias(self, bucket: Bucket, width: int) -> bool:
        """Whether this adds the output layer's bias itself: Triton's programs search the step."""
        return self._chooser is not None and covers(bucket, width=width)

    def step(
        self, tables: GridTables, bucket: Bucket, logits: Tensor, sources: Tensor | None
    ) -> Tensor:
        """Choose what every row becomes and write it into the tables.

        Args:
            tables: The grid's.
            bucket: What the step covers.
            logits: (R, V'), padded (`OutputProduct`); without bias if `adds_bias`.
            sources: (S, K) int64, or None if none is asked for.

        Returns:
            The report, (S, W), as `unpack` reads it.
        """
        if self._chooser is not None and covers(bucket, width=tables.width):
            return self._chooser.step(tables, bucket, logits, sources)
        num_slots, width = bucket.num_slots, tables.width
        groups = _groups(tables, bucket)
        num_generated = tables.positions[:num_slots] - tables.prefix_lengths[:num_slots] + 1
        lexical = _lexical(tables, bucket)
        continuations = beam_search.row_continuations(
            logits,
            bucket.num_candidates,
            self._suppressed,
            united(_suppressed(tables, bucket), _repeats(tables, bucket, logits.shape[-1])),
            words=None if lexical is None else lexical.automata.words_of(groups),
        )
        # Of a row with fewer tokens to choose, or numbers that are none, the rest may be padding.
        continuations.tokens.clamp_(max=self._vocab_size - 1)
        if (sampling := _sampling(tables, bucket)) is not None:
            steps = num_generated.repeat_interleave(width)
            continuations = sample(continuations, sampling, steps)
        forced = self._forced(tables, num_generated).repeat_interleave(width)
        continuations = beam_search.force(continuations, forced)
        in_prefix = num_generated < 0
        candidates, decision = choose(
            tables.scores[:num_slots].flatten(),
            continuations,
            groups,
            eos_id=self._eos_id,
            forced=forced,
            endless=in_prefix,
            lexical=lexical,
            diversity=_diversity(tables, bucket),
        )
        _apply(tables, bucket, decision)
        if lexical is not None:
            states = lexical.after(decision, groups, in_prefix=in_prefix)
            tables.phrase_states[:, :num_slots] = torch.stack(states).view(2, num_slots, width)
        return _pack(candidates, decision, sources, (num_slots, width))

    def _forced(self, tables: GridTables, num_generated: Tensor) -> Tensor:
        """(S,) int64, the only token a sentence may add, or −1: what is planned, or the cap."""
        num_slots = len(num_generated)
        following = (tables.positions[:num_slots] + 1).clamp_(max=tables.num_columns - 1)
        forced = tables.forced[:num_slots].gather(1, following.unsqueeze(1)).squeeze(1)
        is_at_cap = num_generated == tables.max_lengths[:num_slots] - 1
        return forced.masked_fill_(is_at_cap, self._eos_id)


def _sampling(tables: GridTables, bucket: Bucket) -> RowSampling | None:
    """How rows are drawn; None where no sentence asks for it."""
    if not bucket.with_sampling:
        return None
    slots = tables.sampling
    assert slots is not None

    def rows(values: Tensor) -> Tensor:
        return values[: bucket.num_slots].repeat_interleave(tables.width)

    beams = torch.arange(bucket.num_slots * tables.width, device=tables.device) % tables.width
    return RowSampling(
        seeds=mixed(rows(slots.seeds), beams),
        temperatures=rows(slots.temperatures),
        top_ks=rows(slots.top_ks),
        top_ps=rows(slots.top_ps),
    )


def _lexical(tables: GridTables, bucket: Bucket) -> LexicalStep | None:
    """What phrases do in the step; None where no sentence has any."""
    if not bucket.num_phrase_tokens:
        return None
    assert tables.automata is not None
    nodes, met = tables.phrase_states[:, : bucket.num_slots].flatten(1)
    automata = tables.automata.first(bucket.num_slots, bucket.num_phrase_tokens)
    return LexicalStep(automata=automata, nodes=nodes, met=met)


def _diversity(tables: GridTables, bucket: Bucket) -> Diversity | None:
    """How beams are divided; None where no sentence has groups."""
    if bucket.num_groups == 1:
        return None
    return Diversity(
        sizes=tables.group_sizes[: bucket.num_slots],
        penalties=tables.penalties[: bucket.num_slots],
        num_groups=bucket.num_groups,
    )


def _suppressed(tables: GridTables, bucket: Bucket) -> Tensor | None:
    """(R, V) bool, the tokens that rows may not choose; None where no sentence has any."""
    if not bucket.with_suppressed:
        return None
    assert tables.suppressed is not None
    return tables.suppressed[: bucket.num_slots].repeat_interleave(tables.width, dim=0)


def _repeats(tables: GridTables, bucket: Bucket, vocab_size: int) -> Tensor | None:
    """(R, V') bool, by which tokens rows would repeat themselves; None where all may.

    What this step has fed is written down: a sentence that is asked of it is so from its first.
    """
    if not bucket.no_repeat_ngram:
        return None
    assert tables.fed is not None
    num_slots, width = bucket.num_slots, tables.width
    positions = tables.positions[:num_slots]
    slots = torch.arange(num_slots, device=tables.device)
    tables.fed[slots, positions] = tables.tokens[:num_slots]
    fed = paths(
        tables.ancestors[:num_slots, :, : bucket.num_columns],
        tables.fed[:num_slots, : bucket.num_columns],
    )

    def rows(values: Tensor) -> Tensor:
        return values.repeat_interleave(width)

    return repeat_mask(
        fed.flatten(0, 1),
        rows(tables.prefix_lengths[:num_slots]),
        rows(positions + 1),
        rows(tables.no_repeat_ngrams[:num_slots]),
        max_size=bucket.no_repeat_ngram,
        vocab_size=vocab_size,
    )


def _groups(tables: GridTables, bucket: Bucket) -> beam_search.RowGroups:
    num_slots, width = bucket.num_slots, tables.width
    position = torch.arange(num_slots * width, device=tables.device)
    widths = tables.widths[:num_slots]
    return beam_search.RowGroups(
        rows=position.view(num_slots, width),
        live=position[:width] < widths.unsqueeze(1),
        position=position,
        widths=widths,
        num_candidates=tables.num_candidates[:num_slots],
        max_candidates=bucket.num_candidates,
    )


def _apply(tables: GridTables, bucket: Bucket, decision: beam_search.Decision) -> None:
    """Every row adds its token and takes over its parent's ancestors."""
    num_slots, width = bucket.num_slots, tables.width
    tables.tokens[:num_slots] = decision.tokens.view(num_slots, width)
    tables.scores[:num_slots] = decision.scores.view(num_slots, width)
    rows = tables.ancestors.flatten(0, 1)[: num_slots * width, : bucket.num_columns]
    rows.copy_(rows[decision.parents])
    tables.positions[:num_slots].add_(1).clamp_(max=tables.num_columns - 1)


def _pack(
    candidates: beam_search.Candidates,
    decision: beam_search.Decision,
    sources: Tensor | None,
    shape: tuple[int, int],
) -> Tensor:
    """One tensor of whole numbers as wide as scores, whose bits floats keep: one copy a step."""
    dtype = torch.int64 if decision.scores.dtype == torch.float64 else torch.int32
    first = torch.arange(shape[0], device=decision.parents.device).unsqueeze(1) * shape[1]
    parents = decision.parents.view(shape) - first
    whole = (
        decision.tokens.view(shape),
        parents,
        # A token was chosen by what its parent attended to, whatever row it comes to.
        torch.zeros_like(first).expand(shape) if sources is None else sources.gather(1, parents),
        decision.ends,
        candidates.beams,
    )
    floats = (
        decision.log_probs.view(shape),
        decision.best,
        candidates.scores,
        candidates.log_probs,
    )
    parts = [part.to(dtype) for part in whole]
    parts += [part.contiguous().view(dtype) for part in floats]
    return torch.cat(parts, dim=1)


def unpack(
    packed: NDArray[np.int32] | NDArray[np.int64], width: int, *, num_groups: int = 1
) -> Report:
    """Read what `GridSearch.step` returned, once it is on the host; nothing is copied.

    Args:
        packed: (S, W).
        width: Rows of a slot, K.
        num_groups: Of the step's bucket, G.
    """
    num_candidates = (packed.shape[1] - 4 * width - num_groups) // 4
    sizes = (*[width] * 3, *[num_candidates] * 2, width, num_groups, *[num_candidates] * 2)
    ends = list(accumulate(sizes))
    parts = [packed[:, end - size : end] for size, end in zip(sizes, ends, strict=True)]
    floats = [_real(part) for part in parts[5:]]
    return Report(
        tokens=parts[0],
        parents=parts[1],
        sources=parts[2],
        log_probs=floats[0],
        best=floats[1],
        ends=parts[3] != 0,
        end_rows=parts[4],
        end_scores=floats[2],
        end_log_probs=floats[3],
    )


def _real(bits: Whole) -> Real:
    """Floats by their bits."""
    return bits.view(np.float64) if bits.dtype == np.int64 else bits.view(np.float32)
