"""Scores of a network on held-out text, while it is trained and at the end.

Owns the dev loss, and BLEU and chrF by the decoder that serves. Does not own when they are
computed.
"""

import hashlib
import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from statistics import mean

import torch

from model.checkpoint.weights import Checkpoint
from model.config import SearchConfig
from model.errors import DecodingError
from model.nn.transformer import Transformer
from model.offline.evaluate import (
    Evaluation,
    check_tokenizer,
    default_tokenizer,
    evaluate,
)
from model.offline.translator import Translator
from model.train.config.experiment import Experiment
from model.train.config.run import Metric, RunConfig
from model.train.data.batching import make_batch, plan_epoch
from model.train.data.held_out import DevText
from model.train.data.parallel import TokenisedPairs
from model.train.data.vocabulary import START_ID, Vocabularies
from model.train.loop.memory import naming_corpus, naming_dev_loss
from model.train.loop.objective import batch_loss, compute_context
from model.train.saved.export import language_pairs, memory_checkpoint
from model.train.stopping import ShouldStop, never, raise_if_stopped

_GPU_LIMITS = {"max_rows": 2048, "encoder_token_budget": 16_384}

_LOGGER = logging.getLogger("dragoman.train")


@dataclass(frozen=True, slots=True, kw_only=True)
class DevScore:
    """Scores of one snapshot on one corpus, or the mean over some.

    Attributes:
        loss: Cross-entropy per target token without smoothing, in nats; NaN where it was not asked
            for.
        bleu: Of its translations, or None without `score_dev`; NaN where the network had
            no finite score for one of them.
        chrf: Likewise.
    """

    loss: float
    bleu: float | None = None
    chrf: float | None = None

    def value(self, metric: Metric) -> float:
        """The score by one metric, signed so that larger is better."""
        value = {"bleu": self.bleu, "chrf": self.chrf, "loss": -self.loss}[metric]
        assert value is not None  # the experiment's own check: these metrics need `score_dev`
        return value

    def rank(self, metric: Metric) -> tuple[float, float, float]:
        """What scores are compared by: one metric, where it ties chrF, where that ties the loss.

        Larger is better; what is not known or not finite is less than all else. BLEU is 0.0 for
        all networks that get no four words in a row right.
        """
        known = (self.value(metric), -math.inf if self.chrf is None else self.chrf, -self.loss)
        value, chrf, loss = (item if math.isfinite(item) else -math.inf for item in known)
        return value, chrf, loss

    @staticmethod
    def mean_of(scores: Sequence["DevScore"]) -> "DevScore":
        """The mean over corpora, of each score that is there."""
        bleus = [score.bleu for score in scores if score.bleu is not None]
        chrfs = [score.chrf for score in scores if score.chrf is not None]
        return DevScore(
            loss=mean(score.loss for score in scores),
            bleu=mean(bleus) if bleus else None,
            chrf=mean(chrfs) if chrfs else None,
        )


def check_tokenizers(experiment: Experiment) -> None:
    """Check that BLEU's tokenizers are installed, before hours of training.

    Raises:
        ConfigError: BLEU's tokenizer is not installed.
    """
    for pair in language_pairs(experiment):
        check_tokenizer(experiment.run.bleu_tokenizer or default_tokenizer(pair.target))


class _Served:
    """The translator of one network, opened when it is first needed, for all corpora."""

    def __init__(self, opened: Callable[[], Translator]) -> None:
        self._opened = opened
        self._translator: Translator | None = None

    def translator(self) -> Translator:
        if self._translator is None:
            self._translator = self._opened()
        return self._translator

    def forget(self) -> None:
        """Open another one next time: sentences are left in this one."""
        self._translator = None


class Validator:
    """Scoring of one experiment's networks on its dev text.

    Args:
        experiment: Says how dev text is scored.
        vocabularies: Of the run.
        dev: Held-out text by name.
    """

    def __init__(
        self, experiment: Experiment, vocabularies: Vocabularies, dev: Mapping[str, DevText]
    ) -> None:
        self._experiment = experiment
        self._vocabularies = vocabularies
        self._dev = dev

    def scoring(self) -> str:
        """How scores are measured; those of two snapshots are compared only if it is the same.

        Words, and a hash of the text; of the settings that a resumed run may change,
        those that the metric depends on.
        """
        run = self._experiment.run
        chosen = [dev for dev in self._dev.values() if dev.is_choosing]
        lines = json.dumps([[dev.text.source, dev.text.target] for dev in chosen])
        parts: list[str] = [run.snapshot_metric]
        if run.snapshot_metric == "loss":
            parts.append(f"precision:{run.precision}")
        else:
            parts.append(f"beams:{run.dev_beam_size}")
        if run.snapshot_metric == "bleu":
            targets = (dev.pair.target for dev in chosen)
            used = {run.bleu_tokenizer or default_tokenizer(target) for target in targets}
            parts.append(f"tokenizer:{'+'.join(sorted(used))}")
        parts.append(f"sentences:{sum(len(dev.text) for dev in chosen)}")
        parts.append(f"text:{hashlib.sha256(lines.encode()).hexdigest()[:16]}")
        return " ".join(parts)

    def score(
        self, transformer: Transformer, should_stop: ShouldStop = never
    ) -> dict[str, DevScore]:
        """Scores by corpus, the network left in the mode it was in.

        Args:
            transformer: The network.
            should_stop: Checked before every batch and after every segment.

        Raises:
            StoppedError: `should_stop` returned true.
            TrainingError: There was not enough memory.
        """
        was_training = transformer.training
        found: dict[str, DevScore] = {}
        transformer.eval()
        served = _Served(partial(self._translator, transformer))
        try:
            for name, dev in self._dev.items():
                found[name] = self._score(transformer, served, name, dev, should_stop)
        finally:
            transformer.train(was_training)
        return found

    def _score(
        self,
        transformer: Transformer,
        served: "_Served",
        name: str,
        dev: DevText,
        should_stop: ShouldStop,
    ) -> DevScore:
        run = self._experiment.run
        device = transformer.target_embedding.weight.device
        with naming_dev_loss(f"dev/{name}", run, device):
            loss = dev_loss(transformer, dev.pairs, run, should_stop)
        if not run.score_dev:
            return DevScore(loss=loss)
        search = SearchConfig(beam_size=run.dev_beam_size)
        with naming_corpus(
            f"dev/{name}", key="dev_beam_size", beam_size=run.dev_beam_size, device=device
        ):
            try:
                found = self._translated(served.translator(), dev, search, should_stop).scores
            except DecodingError as error:  # weights that training may yet skip or leave behind
                served.forget()
                fields = {"corpus": name, "reason": str(error)}
                _LOGGER.warning("dev_not_scored", extra={"fields": fields})
                return DevScore(loss=loss, bleu=math.nan, chrf=math.nan)
        return DevScore(loss=loss, bleu=found.bleu.value, chrf=found.chrf.value)

    def _translator(self, transformer: Transformer) -> Translator:
        """A network as it is served on its device."""
        precision, limits = served_form(transformer.target_embedding.weight.device)
        served = transformer if precision is None else deepcopy(transformer).to(precision)
        return Translator(self._checkpoint(served), **limits)

    def _checkpoint(self, transformer: Transformer) -> Checkpoint:
        return memory_checkpoint(self._experiment, self._vocabularies, transformer)

    def _translated(
        self, translator: Translator, dev: DevText, search: SearchConfig, should_stop: ShouldStop
    ) -> Evaluation:
        return evaluate(
            translator,
            dev.pair,
            dev.text.source,
            dev.text.target,
            search=search,
            tokenizer=self._experiment.run.bleu_tokenizer,
            on_finished=lambda _: raise_if_stopped(should_stop),
        )

    def choosing(self, scores: Mapping[str, DevScore]) -> DevScore:
        """The scores that decide between snapshots: the mean over the directions' first corpora."""
        return DevScore.mean_of(
            [scores[name] for name, dev in self._dev.items() if dev.is_choosing]
        )


@torch.no_grad()
def dev_loss(
    transformer: Transformer,
    pairs: TokenisedPairs,
    run: RunConfig,
    should_stop: ShouldStop = never,
) -> float:
    """Cross-entropy per target token without smoothing, in nats; e to it is the perplexity.

    Args:
        transformer: The network, in eval mode.
        pairs: N tokenised pairs.
        run: Its batches and its precision are used.
        should_stop: Checked before every batch.

    Raises:
        StoppedError: `should_stop` returned true before a batch.
    """
    device = next(transformer.parameters()).device
    plan = plan_epoch(
        pairs.source_lengths,
        pairs.target_lengths,
        copies=pairs.epoch_copies(0),
        max_tokens=run.batch_tokens,
        seed=0,
        epoch=0,
    )
    total = 0.0
    for indices in plan:
        raise_if_stopped(should_stop)
        batch = make_batch(pairs, indices, pad_id=transformer.config.pad_id, start_id=START_ID).to(
            device
        )
        with compute_context(device, run.precision):
            total += batch_loss(transformer, batch, smoothing=0.0).item()
    return total / int(pairs.target_lengths.sum())


def served_form(device: torch.device) -> tuple[torch.dtype | None, dict[str, int]]:
    """How dev text is translated on a device, as a server would: precision and limits.

    On a GPU in bfloat16 and many rows at once; elsewhere, by None and no limits, as it is trained
    and as a translator is by itself.
    """
    return (torch.bfloat16, dict(_GPU_LIMITS)) if device.type == "cuda" else (None, {})
