"""Outputs of transformers for a batch of sentences, and a network's distance from them.

Owns both, one after the other: a reference that has answered may leave memory before ours comes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel

from benchmarks.parity.figures import Distance, Figures
from benchmarks.parity.subject import GREEDY, MAX_TARGET, SEARCH, Sample, Subject
from model.config import SpecialTokens
from model.offline.translator import Translator
from support.huggingface import TIE, Comparison, Generated, generate, generate_greedily


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a reference says of a batch.

    Attributes:
        encoder: Its output at the positions that are no padding, (N, D).
        logits: Under teacher forcing, (B, P + T - 1, V).
        hypotheses: All four of every sentence, of a beam of 4.
        greedy: Of every sentence.
    """

    encoder: Tensor
    logits: Tensor
    hypotheses: Sequence[Sequence[Generated]]
    greedy: Sequence[tuple[int, ...]]

    def save(self, path: Path) -> None:
        """Write them to a file, which appears whole."""
        partial = path.with_suffix(".partial")
        found = [[(list(one.token_ids), one.score) for one in row] for row in self.hypotheses]
        torch.save((self.encoder, self.logits, found, [list(ids) for ids in self.greedy]), partial)
        partial.rename(path)

    @classmethod
    def load(cls, path: Path) -> "Answers":
        """Read them again."""
        encoder, logits, found, greedy = torch.load(path, weights_only=True)
        return cls(
            encoder=encoder,
            logits=logits,
            hypotheses=[[Generated(tuple(ids), score) for ids, score in row] for row in found],
            greedy=[tuple(ids) for ids in greedy],
        )


def reference_of(folder: Path) -> PreTrainedModel:
    """A network of transformers in float32."""
    network: PreTrainedModel = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32)
    return network.eval()


@torch.inference_mode()
def asked(
    theirs: PreTrainedModel, tokens: SpecialTokens, sample: Sample, *, max_length: int = MAX_TARGET
) -> Answers:
    """What a reference says.

    Args:
        theirs: The reference.
        tokens: Its special tokens.
        sample: The batch.
        max_length: Of a hypothesis, EOS among its tokens.
    """
    is_real = sample.is_real
    output = theirs(
        input_ids=sample.source,
        attention_mask=is_real.long(),
        decoder_input_ids=sample.fed,
        use_cache=False,
    )
    beam, greedy = (replace(search, max_length=max_length) for search in (SEARCH, GREEDY))
    return Answers(
        encoder=output.encoder_last_hidden_state[is_real],
        logits=output.logits,
        hypotheses=generate(theirs, tokens, sample.requests(beam)),
        greedy=generate_greedily(theirs, tokens, sample.requests(greedy)),
    )


@torch.inference_mode()
def add_answers(
    subject: Subject,
    translator: Translator,
    sample: Sample,
    answers: Answers,
    figures: Figures,
    *,
    max_length: int = MAX_TARGET,
) -> Tensor:
    """Compare a batch with what the reference has said; our logits, (B, P + T - 1, V).

    Args:
        subject: The network.
        translator: Of it.
        sample: The batch.
        answers: Of the reference.
        figures: Filled.
        max_length: As the reference was asked.
    """
    memory, logits = subject.network(sample)
    figures.encoder = figures.encoder or Distance()
    figures.encoder.add(memory[sample.is_real], answers.encoder)
    figures.logits.add(logits, answers.logits)
    beam, greedy = (replace(search, max_length=max_length) for search in (SEARCH, GREEDY))
    comparison = Comparison()
    ours = translator.search(sample.requests(beam))
    for mine, other in zip(ours, answers.hypotheses, strict=True):
        comparison.add("", mine, other)
    count(figures, comparison)
    searched = [found[0].token_ids for found in translator.search(sample.requests(greedy))]
    _add_greedy(subject, sample, searched, answers.greedy, figures)
    return logits


def _add_greedy(
    subject: Subject,
    sample: Sample,
    ours: Sequence[tuple[int, ...]],
    theirs: Sequence[tuple[int, ...]],
    figures: Figures,
) -> None:
    """Compare hypotheses of greedy searches, of which transformers tells no scores."""
    for source, mine, other in zip(sample.sources, ours, theirs, strict=True):
        if mine == other:
            figures.greedy_equal += 1
        elif _is_tie(subject, sample, source, mine, other):
            figures.greedy_ties += 1
        else:
            figures.greedy_differing += 1


def _is_tie(
    subject: Subject,
    sample: Sample,
    source: list[int],
    ours: tuple[int, ...],
    theirs: tuple[int, ...],
) -> bool:
    """Whether two greedy hypotheses part where both tokens are as likely, within 1e-4."""
    end = subject.checkpoint.manifest.tokens.eos_id
    both = [*ours, end], [*theirs, end]
    place = next(i for i, pair in enumerate(zip(*both, strict=False)) if pair[0] != pair[1])
    fed = torch.tensor([[*sample.prefix, *ours[:place]]])
    logits = subject.checkpoint.transformer(torch.tensor([source]), fed)[0, -1]
    return float((logits[both[0][place]] - logits[both[1][place]]).abs()) <= TIE


def count(figures: Figures, comparison: Comparison) -> None:
    """Add what a comparison of hypotheses came to."""
    num_ties, num_differing = len(comparison.ties), len(comparison.differences)
    figures.num_ties += num_ties
    figures.num_differing += num_differing
    figures.num_equal += comparison.num_hypotheses - num_ties - num_differing
