from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from model.checkpoint.manifest import LanguagePair
from model.train.data import ParallelText, TokenisedPairs
from model.train.validation import DevText, Validator
from model.train.vocabulary import Vocabularies
from support.tiny_checkpoint import EN_ZH
from support.tiny_runs import EXPERIMENT

TEXT = ParallelText(source=("a", "b"), target=("c", "d"))


def dev_text(
    text: ParallelText = TEXT, *, pair: LanguagePair = EN_ZH, is_choosing: bool = True
) -> DevText:
    pairs = TokenisedPairs([[3, 1]], [[3, 1]])
    return DevText(text=text, pairs=pairs, pair=pair, is_choosing=is_choosing)


def scoring(*texts: DevText, **settings: Any) -> str:
    experiment = replace(EXPERIMENT, run=replace(EXPERIMENT.run, **settings))
    nowhere = Vocabularies(source_path=Path("joint.spm"), target_path=Path("joint.spm"))
    dev = {str(number): text for number, text in enumerate(texts or (dev_text(),))}
    return Validator(experiment, nowhere, dev).scoring()


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
