from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from model.nn.transformer import Transformer
from model.text.languages.tags import LanguagePair
from model.train.config.run import RunConfig
from model.train.data.held_out import DevText
from model.train.data.parallel import ParallelText, TokenisedPairs
from model.train.data.vocabulary import START_ID, Vocabularies
from model.train.loop.validation import DevScore, Validator, dev_loss, served_form
from model.train.stopping import StoppedError
from support.tiny_checkpoint import EN_ZH
from support.tiny_runs import EXPERIMENT, StopAfter
from support.training import network, reversal_pairs

TEXT = ParallelText(source=("a", "b"), target=("c", "d"))


def dev_text(
    text: ParallelText = TEXT, *, pair: LanguagePair = EN_ZH, is_choosing: bool = True
) -> DevText:
    pairs = TokenisedPairs([[3, 1]], [[3, 1]])
    return DevText(text=text, pairs=pairs, pair=pair, is_choosing=is_choosing)


def validator(*texts: DevText, **settings: Any) -> Validator:
    experiment = replace(EXPERIMENT, run=replace(EXPERIMENT.run, **settings))
    nowhere = Vocabularies(source_path=Path("joint.spm"), target_path=Path("joint.spm"))
    return Validator(experiment, nowhere, {str(number): text for number, text in enumerate(texts)})


def scoring(*texts: DevText, **settings: Any) -> str:
    return validator(*(texts or (dev_text(),)), **settings).scoring()


def test_what_scores_are_measured_with_is_said_in_words() -> None:
    head, _, text = scoring().partition(" text:")
    assert head == "bleu beams:1 tokenizer:zh sentences:2"
    assert len(text) == 16
    assert scoring(metric="loss").startswith("loss precision:float32 sentences:2 text:")
    other = replace(EN_ZH, source="zh-Hans", target="en")
    both = scoring(dev_text(), dev_text(pair=other))
    assert both.startswith("bleu beams:1 tokenizer:13a+zh sentences:4 text:")


@pytest.mark.parametrize(
    "text",
    [
        replace(TEXT, source=("a", "B")),
        replace(TEXT, target=("c", "D")),
        replace(TEXT, source=("a\nb", "")),
        replace(TEXT, source=TEXT.target, target=TEXT.source),
        TEXT.first(1),
    ],
)
def test_other_text_is_another_scoring(text: ParallelText) -> None:
    assert scoring(dev_text(text)) != scoring()


def test_only_the_text_that_chooses_counts() -> None:
    assert scoring(dev_text(), dev_text(TEXT.first(1), is_choosing=False)) == scoring()
    assert scoring(dev_text(), dev_text(TEXT.first(1))) != scoring()


@pytest.mark.parametrize(
    ("metric", "counting", "others"),
    [
        ("bleu", {"dev_beam_size": 2, "bleu_tokenizer": "char"}, {"precision": "bfloat16"}),
        ("chrf", {"dev_beam_size": 2}, {"precision": "bfloat16", "bleu_tokenizer": "char"}),
        ("loss", {"precision": "bfloat16"}, {"dev_beam_size": 2, "bleu_tokenizer": "char"}),
    ],
)
def test_the_settings_that_a_metric_depends_on_count(
    metric: str, counting: dict[str, Any], others: dict[str, Any]
) -> None:
    said = scoring(metric=metric)
    for name, value in counting.items():
        assert scoring(metric=metric, **{name: value}) != said
    for name, value in {**others, "final_beam_size": 3, "max_updates": 99}.items():
        assert scoring(metric=metric, **{name: value}) == said
    assert scoring(metric=metric, bleu_tokenizer="zh") == said  # what is chosen by itself


UNEVEN = TokenisedPairs(
    [[5, 1], [6, 7, 8, 9, 1], [3] * 11 + [1], [4, 4, 1]],
    [[7, 8, 9, 1], [3, 1], [5, 6] * 5 + [1], [9, 1]],
)
"""Pairs of such different lengths that a batch of them has much padding."""


def log_probability(
    transformer: Transformer, source: Sequence[int], target: Sequence[int]
) -> float:
    """Of one target, EOS included, alone in its batch."""
    with torch.no_grad():
        logits = transformer(torch.tensor([source]), torch.tensor([[START_ID, *target[:-1]]]))
    logs = logits[0].log_softmax(-1)
    return float(sum(logs[place, token] for place, token in enumerate(target)))


@pytest.mark.parametrize("batch_tokens", [12, 25, 1000])
def test_the_dev_loss_is_the_mean_cross_entropy_of_a_target_token_however_pairs_are_batched(
    batch_tokens: int,
) -> None:
    transformer = network().eval()
    total = sum(
        log_probability(transformer, UNEVEN.source(n).tolist(), UNEVEN.target(n).tolist())
        for n in range(len(UNEVEN))
    )
    run = RunConfig(max_updates=1, batch_tokens=batch_tokens, precision="float32")
    num_tokens = 4 + 2 + 11 + 2
    assert dev_loss(transformer, UNEVEN, run) == pytest.approx(-total / num_tokens, rel=1e-5)


def test_the_dev_loss_of_one_pair_is_its_own() -> None:
    transformer = network().eval()
    run = RunConfig(max_updates=1, precision="float32")
    expected = -log_probability(transformer, [5, 1], [7, 8, 1]) / 3
    one = TokenisedPairs([[5, 1]], [[7, 8, 1]])
    assert dev_loss(transformer, one, run) == pytest.approx(expected, rel=1e-5)


def test_scores_are_those_of_the_network_without_dropout() -> None:
    transformer = network(dropout=0.5)
    held_out = replace(dev_text(), pairs=UNEVEN)
    found = validator(held_out, score_dev=False, metric="loss").score(transformer.train())["0"]
    assert transformer.training
    run = replace(EXPERIMENT.run, score_dev=False, metric="loss")
    assert found == DevScore(loss=dev_loss(transformer.eval(), UNEVEN, run))
    validator(held_out, score_dev=False, metric="loss").score(transformer)
    assert not transformer.training


def test_the_choice_is_made_by_the_mean_over_the_corpora_that_choose() -> None:
    chooses = [dev_text(), dev_text(is_choosing=False), dev_text()]
    scores = {
        "0": DevScore(loss=1.0, bleu=10.0, chrf=30.0),
        "1": DevScore(loss=100.0, bleu=100.0, chrf=100.0),
        "2": DevScore(loss=3.0, bleu=20.0, chrf=50.0),
    }
    found = validator(*chooses).choosing(scores)
    assert found == DevScore(loss=2.0, bleu=15.0, chrf=40.0)
    assert [found.value(metric) for metric in ("bleu", "chrf", "loss")] == [15.0, 40.0, -2.0]
    losses = {name: DevScore(loss=score.loss) for name, score in scores.items()}
    assert validator(*chooses).choosing(losses) == DevScore(loss=2.0)


def test_the_dev_loss_can_be_stopped_before_every_batch() -> None:
    def loss(num_noes: int) -> float:
        run = RunConfig(max_updates=1, batch_tokens=80, precision="float32")
        return dev_loss(network(), reversal_pairs(), run, StopAfter(num_noes))

    for num_noes in range(3):
        with pytest.raises(StoppedError):
            loss(num_noes)
    assert loss(99) > 0.0


def test_scoring_that_is_stopped_leaves_the_network_in_the_mode_it_was_in() -> None:
    transformer = network().train()
    with pytest.raises(StoppedError):
        validator(dev_text()).score(transformer, lambda: True)
    assert transformer.training


def test_dev_text_is_translated_as_it_is_served_on_the_device() -> None:
    precision, limits = served_form(torch.device("cuda:1"))
    assert precision is torch.bfloat16
    assert limits["max_rows"] == 2048
    assert served_form(torch.device("cpu")) == (None, {})
