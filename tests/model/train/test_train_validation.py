from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from model.checkpoint.manifest import LanguagePair
from model.train.data import ParallelText, TokenisedPairs
from model.train.experiment import RunConfig
from model.train.stopping import StoppedError
from model.train.validation import DevText, Validator, dev_loss
from model.train.vocabulary import Vocabularies
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
