"""The project's own experiment files."""

from pathlib import Path

from model.train.config.experiment import read_experiment


def test_every_experiment_of_the_project_can_be_read() -> None:
    folder = Path(__file__).parents[2] / "experiments"
    paths = sorted(folder.glob("*.yaml"))
    assert paths
    for path in paths:
        assert read_experiment(path).name


def test_news_is_scored_the_way_it_was_translated() -> None:
    """The two folders have news of the same years: each was written in its source language."""
    folder = Path(__file__).parents[2] / "experiments"
    found = {
        (direction.name, item.folder)
        for path in folder.glob("*.yaml")
        for direction in read_experiment(path).data.directions
        for item in direction.report_corpora
        if item.corpus in {"newstest2019", "newstest2020"}
    }
    assert found == {("en-zh", "en-zh"), ("zh-en", "zh-en")}
