from dataclasses import replace

import pytest

from model.nn.transformer import Transformer
from model.offline.evaluate import score
from model.train.config.run import BleuTokenizer
from model.train.data.batching import BatchPosition
from model.train.data.filtering import CorpusReport
from model.train.records.card import CardFacts, write_card
from model.train.saved.state import Progress
from support.tiny_runs import EXPERIMENT
from support.training import network

FACTS = CardFacts(
    progress=Progress(update=12),
    reports=(
        CorpusReport(direction="en-zh", name="talk", num_pairs=100, num_kept=100, dropped={}),
    ),
    copies=(2.0,),
    weights="the snapshot of update 12",
    scores={"dev/held-out": score(["a b"], ["a b"], tokenizer="none")},
    beam_size=2,
    compute_type="float32",
)


@pytest.mark.parametrize(
    ("tokenizer", "text"),
    [(None, "detokenised text"), ("13a", "detokenised text"), ("none", "text as it stands")],
)
def test_a_card_says_what_kind_of_text_was_scored(
    tokenizer: BleuTokenizer | None, text: str
) -> None:
    experiment = replace(EXPERIMENT, run=replace(EXPERIMENT.run, bleu_tokenizer=tokenizer))
    card = write_card(experiment, network(), FACTS, command="dragoman train tiny.yaml")
    assert f"{text}, of the stored int8 weights" in card
    assert ("detokenised" in card) == (tokenizer != "none")


def test_a_card_says_how_order_enters_the_network() -> None:
    """Marian's own sinusoids are others than those of its networks in transformers."""
    for position in ("sinusoidal-marian", "sinusoidal-m2m100"):
        transformer = Transformer(replace(network().config, position=position))
        card = write_card(EXPERIMENT, transformer, FACTS, command="dragoman train tiny.yaml")
        assert f"relu, positions {position};" in card


@pytest.mark.parametrize(("num_epochs", "text"), [(0, "0 whole epochs"), (1, "1 whole epoch;")])
def test_a_card_counts_the_epochs(num_epochs: int, text: str) -> None:
    progress = Progress(update=12, position=BatchPosition(epoch=num_epochs, index=3))
    facts = replace(FACTS, progress=progress)
    assert text in write_card(EXPERIMENT, network(), facts, command="dragoman train tiny.yaml")


def test_a_bar_in_a_licence_ends_no_cell() -> None:
    (report,) = FACTS.reports
    corpus = replace(EXPERIMENT.data.train[0], name=report.name, licence="MIT | Apache-2.0")
    experiment = replace(EXPERIMENT, data=replace(EXPERIMENT.data, train=(corpus,)))
    card = write_card(experiment, network(), FACTS, command="dragoman train tiny.yaml")
    (row,) = [line for line in card.splitlines() if "MIT &#124; Apache-2.0" in line]
    assert row.count("|") == 5


@pytest.mark.parametrize(
    ("copies", "text"),
    [(0.5, "0.5"), (5 / 3, "1.67"), (5 / 6, "0.833"), (1000, "1000")],
)
def test_a_card_has_the_copies_that_a_temperature_makes(copies: float, text: str) -> None:
    card = write_card(EXPERIMENT, network(), replace(FACTS, copies=(copies,)), command="")
    assert f"| [talk](https://example.org) | 100 | {text} | CC0-1.0 |" in card


@pytest.mark.parametrize(
    ("copies", "text"), [(1234, "1234"), (0.3333, "0.3333"), (12345.6, "12345.6")]
)
def test_a_card_has_the_very_copies_that_an_experiment_states(copies: float, text: str) -> None:
    (corpus,) = EXPERIMENT.data.train
    data = replace(EXPERIMENT.data, train=(replace(corpus, copies=copies),))
    facts = replace(FACTS, copies=(copies,))
    card = write_card(replace(EXPERIMENT, data=data), network(), facts, command="")
    assert f"| [talk](https://example.org) | 100 | {text} | CC0-1.0 |" in card
