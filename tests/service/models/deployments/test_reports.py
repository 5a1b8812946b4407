"""Reports after a load: what of the settings is told when no checkpoint has it."""

import logging
from itertools import pairwise

import pytest
from prometheus_client import CollectorRegistry

from model.text.languages.tags import LanguagePair
from service.models.deployments.registry import Routes
from service.models.deployments.reports import report_checkpoints
from service.models.routes.routing import Offer, RoutingTable
from service.settings import Settings
from service.telemetry.metrics import Metrics


def _told(
    settings: Settings, caplog: pytest.LogCaptureFixture, *, languages: tuple[str, ...]
) -> list[tuple[int, object]]:
    """Severity and fields of each warning of a pivot, where these are served in a row."""
    routes = Routes()
    pairs = [LanguagePair(source=one, target=two) for one, two in pairwise(languages)]
    routes.table = RoutingTable([Offer(name="a", pairs=pairs)], pivot=settings.pivot_language)
    report_checkpoints(routes, settings, Metrics(CollectorRegistry()), num_replicas=1)
    records = [one for one in caplog.records if one.getMessage() == "pivot_unknown"]
    return [(one.levelno, vars(one)["fields"]) for one in records]


@pytest.mark.parametrize("pivot", ["english", "eng", "xx", "fr"])
def test_a_pivot_that_no_checkpoint_has_is_told_with_the_languages_there_are(
    pivot: str, caplog: pytest.LogCaptureFixture
) -> None:
    fields = {"pivot": pivot, "languages": ["de", "en", "zh"]}
    told = _told(Settings(pivot=pivot), caplog, languages=("de", "en", "zh"))
    assert told == [(logging.WARNING, fields)]


@pytest.mark.parametrize("pivot", ["en", "EN", "off"])
def test_a_pivot_that_there_is_or_none_is_told_nothing_of(
    pivot: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert not _told(Settings(pivot=pivot), caplog, languages=("de", "en", "zh"))


def test_the_pivot_that_nobody_has_set_is_told_nothing_of(caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings()
    assert settings.pivot_language == "en"
    assert not _told(settings, caplog, languages=("de", "fr"))
