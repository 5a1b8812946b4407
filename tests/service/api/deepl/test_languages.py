import pytest

from model.text.languages.tags import LanguagePair
from service.api.deepl.languages import (
    LanguageLists,
    code_name,
    find_source,
    find_target,
    source_code,
    target_codes,
)
from service.models.routes.routing import Offer, RoutingTable


@pytest.mark.parametrize(
    ("tag", "source", "targets"),
    [
        ("de", "DE", ("DE",)),
        ("en", "EN", ("EN-GB", "EN-US")),
        ("pt", "PT", ("PT-BR", "PT-PT")),
        ("pt-BR", "PT", ("PT-BR",)),
        ("zh-Hans", "ZH", ("ZH", "ZH-HANS")),
        ("zh-Hant", "ZH", ("ZH-HANT",)),
        ("no", "NB", ("NB",)),
        ("nb", "NB", ("NB",)),
    ],
)
def test_a_language_has_the_codes_that_clients_use(
    tag: str, source: str, targets: tuple[str, ...]
) -> None:
    assert source_code(tag) == source
    assert target_codes(tag) == targets
    for code in targets:
        found = find_target(code, [tag])
        assert found is not None
        assert find_source(source, [tag]) is not None


@pytest.mark.parametrize(
    ("code", "known", "found"),
    [
        ("PT", ["pt-BR"], "pt-BR"),
        ("PT", ["pt-BR", "pt"], "PT"),
        ("ES-419", ["es"], "ES-419"),
        ("EN", ["en"], "EN"),
        ("ZH", ["zh-Hant"], None),
        ("ZH-HANT", ["zh-Hans"], None),
        ("PT-PT", ["pt-BR"], None),
        ("no code", ["en"], None),
        ("x" * 70, ["en"], None),
    ],
)
def test_a_target_may_lack_its_region_and_never_its_script(
    code: str, known: list[str], found: str | None
) -> None:
    assert find_target(code, known) == found


def test_a_source_may_lack_region_and_script() -> None:
    assert find_source("ZH", ["en", "zh-Hant"]) == "zh-Hant"
    assert find_source("zh", ["zh-Hant", "zh-Hans"]) == "zh"
    assert find_source("PT", ["pt-PT", "pt-BR"]) == "pt-PT"
    assert find_source("DE", ["en"]) is None


def test_lists_have_every_code_once_and_are_made_once_for_what_is_loaded() -> None:
    pairs = [
        LanguagePair(source=source, target=target)
        for source, target in (("zh-Hans", "en"), ("zh-Hant", "en"), ("en", "pt"), ("en", "sv"))
    ]
    table = RoutingTable([Offer(name="one", pairs=pairs)])
    lists = LanguageLists().of(table)
    assert lists.sources == ("EN", "ZH")
    assert lists.targets == ("EN-GB", "EN-US", "PT-BR", "PT-PT", "SV")
    sources = lists.sources
    assert lists.of(table).sources is sources
    other = RoutingTable([Offer(name="two", pairs=pairs[:1])])
    assert lists.of(other).sources == ("ZH",)


def test_dictionaries_are_for_languages_without_script_by_a_pivot_too() -> None:
    pairs = [
        LanguagePair(source=source, target=target)
        for source, target in (
            ("zh-Hans", "en"),
            ("zh-Hant", "en"),
            ("en", "no"),
            ("en", "zh-Hant"),
        )
    ]
    offers = [Offer(name="one", pairs=pairs)]
    lists = LanguageLists().of(RoutingTable(offers, pivot="en"))
    assert list(lists.pairs) == [("en", "nb"), ("en", "zh"), ("zh", "en"), ("zh", "nb")]


def test_codes_have_names() -> None:
    codes = ("DE", "EN", "EN-GB", "ZH", "ZH-HANT", "PT-BR", "XX")
    assert [code_name(code) for code in codes] == [
        "German",
        "English",
        "English (British)",
        "Chinese",
        "Chinese (traditional)",
        "Portuguese (Brazilian)",
        "xx",
    ]
