from collections.abc import Mapping

import pytest

from model.text.languages.tags import LanguagePair
from service.api.languages import (
    LIBRETRANSLATE_ALIASES,
    NO_ALIASES,
    ChosenRoute,
    choose_route,
    find_tags,
    language_name,
    languages_by_likelihood,
)
from service.errors import RequestError
from service.models.routes.routing import Offer, Route, RoutingTable

EN_ZH = LanguagePair(source="en", target="zh-Hans")
ZH_EN = LanguagePair(source="zh-Hans", target="en")
EN_BR = LanguagePair(source="en", target="pt-BR")
PAIRS = (EN_ZH, EN_BR)


def _table(*pairs: LanguagePair) -> RoutingTable:
    return RoutingTable([Offer(name="one", pairs=pairs)])


def _pair(chosen: ChosenRoute) -> LanguagePair:
    (hop,) = chosen.route.hops
    return hop.pair


def _refusal(source: str, target: str, pairs: tuple[LanguagePair, ...] = PAIRS) -> RequestError:
    with pytest.raises(RequestError) as caught:
        choose_route(_table(*pairs), source=source, target=target, aliases=LIBRETRANSLATE_ALIASES)
    assert caught.value.problem.status == 400
    return caught.value


@pytest.mark.parametrize("target", ["zh-Hans", "ZH-hans", "zh", "ZH"])
def test_codes_are_read_without_regard_to_case_and_by_alias(target: str) -> None:
    chosen = choose_route(
        _table(*PAIRS), source="EN", target=target, aliases=LIBRETRANSLATE_ALIASES
    )
    assert _pair(chosen) == EN_ZH
    assert not chosen.is_detected


@pytest.mark.parametrize("aliases", [LIBRETRANSLATE_ALIASES, NO_ALIASES])
@pytest.mark.parametrize("target", ["zh-CN", "zh-hans-cn", "ZH-SG"])
def test_a_region_that_is_not_loaded_is_left_out(target: str, aliases: Mapping[str, str]) -> None:
    chosen = choose_route(_table(*PAIRS), source="en-GB", target=target, aliases=aliases)
    assert _pair(chosen) == EN_ZH


def test_a_region_that_is_loaded_is_not_left_out() -> None:
    pairs = (LanguagePair(source="en", target="pt"), EN_BR)
    for target, expected in (("pt-BR", "pt-BR"), ("pt-PT", "pt"), ("pt", "pt")):
        chosen = choose_route(_table(*pairs), source="en", target=target, aliases=NO_ALIASES)
        assert chosen.route.target == expected


def test_pb_is_brazilian_portuguese() -> None:
    chosen = choose_route(_table(*PAIRS), source="en", target="pb", aliases=LIBRETRANSLATE_ALIASES)
    assert _pair(chosen) == EN_BR


@pytest.mark.parametrize("pair", [EN_ZH, ZH_EN])
def test_auto_is_any_language_that_goes_to_the_target_or_the_target_itself(
    pair: LanguagePair,
) -> None:
    chosen = choose_route(
        _table(EN_ZH, ZH_EN), source="Auto", target=pair.target, aliases=LIBRETRANSLATE_ALIASES
    )
    assert _pair(chosen) == pair
    assert chosen.is_detected
    assert chosen.by_source == {
        pair.source: chosen.route,
        pair.target: Route(hops=(), stays_in=pair.target),
    }


def test_auto_may_be_any_of_several_languages() -> None:
    fr_zh = LanguagePair(source="fr", target="zh-Hans")
    chosen = choose_route(
        _table(EN_ZH, fr_zh, ZH_EN), source="auto", target="zh", aliases=NO_ALIASES
    )
    assert chosen.by_source is not None
    assert list(chosen.by_source) == ["en", "fr", "zh-Hans"]


@pytest.mark.parametrize("model", [None, "one"])
@pytest.mark.parametrize(
    ("source", "target"), [("en", "en"), ("en-US", "EN"), ("zh_CN", "zh-Hans"), ("zt", "zt")]
)
def test_a_language_into_itself_stays_as_it_is(source: str, target: str, model: str | None) -> None:
    hant = LanguagePair(source="en", target="zh-Hant")
    chosen = choose_route(
        _table(EN_ZH, hant),
        source=source,
        target=target,
        aliases=LIBRETRANSLATE_ALIASES,
        model=model,
    )
    assert (chosen.route.hops, chosen.is_detected) == ((), False)
    assert chosen.route.source == chosen.route.target
    assert chosen.route.checkpoints == ()


def test_a_checkpoint_may_translate_a_language_into_a_variant_of_it() -> None:
    variants = LanguagePair(source="en-US", target="en-GB")
    chosen = choose_route(
        _table(EN_ZH, variants), source="en-US", target="en_GB", aliases=NO_ALIASES
    )
    assert _pair(chosen) == variants


def test_auto_to_a_language_that_no_pair_ends_in_names_what_is_missing() -> None:
    problem = _refusal("auto", "en").problem
    assert (problem.code, problem.value) == ("unsupported_language", "en")


@pytest.mark.parametrize("code", ["zz", "zt", "zh-TW", "de"])
def test_a_language_that_is_not_loaded_is_named_as_the_client_wrote_it(code: str) -> None:
    problem = _refusal("en", code).problem
    assert problem.message == f"{code} is not supported"
    assert (problem.code, problem.value) == ("unsupported_language", code)
    assert problem.limit == "en, zh-Hans, pt-BR"


@pytest.mark.parametrize("code", ["", "e n", "en\n", "x" * 65, "\ud800", "<script>", "英语"])
def test_what_is_no_code_is_not_repeated(code: str) -> None:
    problem = _refusal(code, "zh").problem
    assert problem.message == "this language code is not supported"
    assert problem.value == len(code)


def test_a_pair_that_is_not_loaded_names_both_languages() -> None:
    problem = _refusal("zh", "en").problem
    assert problem.message == (
        "English (en) is not available as a target language from Chinese (zh-Hans)"
    )


def test_codes_of_libretranslate_alone_need_its_aliases() -> None:
    with pytest.raises(RequestError, match="pb is not supported"):
        choose_route(_table(*PAIRS), source="en", target="pb", aliases=NO_ALIASES)


@pytest.mark.parametrize("aliases", [LIBRETRANSLATE_ALIASES, NO_ALIASES])
@pytest.mark.parametrize("code", ["zh", "ZH", "zh_Hans", "zh_CN", "zh-hans_cn"])
def test_chinese_is_simplified_where_nothing_else_is_said(
    code: str, aliases: Mapping[str, str]
) -> None:
    chosen = choose_route(_table(*PAIRS), source="en_US", target=code, aliases=aliases)
    assert _pair(chosen) == EN_ZH


@pytest.mark.parametrize("code", ["zh", "ZH", "zh_Hans", "zh-CN", "zh-hans_cn", "zh-SG"])
def test_chinese_without_a_script_is_found_by_every_name_of_it(code: str) -> None:
    assert find_tags(code, LIBRETRANSLATE_ALIASES, ("en", "zh")) == ["zh"]
    assert find_tags(code, NO_ALIASES, ("en", "zh", "zh-Hant")) == ["zh"]


def test_what_an_alias_says_by_itself_comes_after_what_it_stands_for() -> None:
    assert find_tags("pb", LIBRETRANSLATE_ALIASES, ("pb",)) == ["pb"]
    assert find_tags("zt", LIBRETRANSLATE_ALIASES, ("zt", "zh-Hant")) == ["zh-Hant", "zt"]
    assert find_tags("zh-TW", LIBRETRANSLATE_ALIASES, ("zh", "zh-Hans")) == []


def test_a_language_without_a_name_is_called_by_its_tag() -> None:
    assert language_name("zh-Hant") == "Chinese (traditional)"
    assert language_name("mfe") == "mfe"


@pytest.mark.parametrize(
    ("code", "tag"), [("zh", "zh-Hans"), ("zt", "zh-Hant"), ("pb", "pt-BR"), ("ZT", "zh-Hant")]
)
def test_each_alias_means_its_own_language_on_either_side(code: str, tag: str) -> None:
    pairs = tuple(
        LanguagePair(source=source, target=target)
        for other in ("zh-Hans", "zh-Hant", "pt-BR")
        for source, target in (("en", other), (other, "en"))
    )
    for pair in pairs:
        if tag in (pair.source, pair.target):
            source, target = (code if side == tag else side for side in (pair.source, pair.target))
            chosen = choose_route(
                _table(*pairs), source=source, target=target, aliases=LIBRETRANSLATE_ALIASES
            )
            assert _pair(chosen) == pair


def test_a_refused_target_names_those_that_its_source_has() -> None:
    pairs = (EN_ZH, EN_BR, LanguagePair(source="de", target="fr"))
    assert _refusal("en", "fr", pairs).problem.limit == "zh-Hans, pt-BR"
    assert _refusal("zh", "fr", pairs).problem.limit is None


EN_DE = LanguagePair(source="en", target="de")
DE_EN = LanguagePair(source="de", target="en")
TABLE = RoutingTable(
    [
        Offer(name="there", pairs=(EN_ZH,)),
        Offer(name="all", pairs=(EN_ZH, EN_DE)),
        Offer(name="back", pairs=(DE_EN,)),
    ],
    pivot="en",
)


def _chosen(
    source: str, target: str, *, model: str | None = None, table: RoutingTable = TABLE
) -> tuple[str, ...]:
    chosen = choose_route(table, source=source, target=target, aliases=NO_ALIASES, model=model)
    return chosen.route.checkpoints


def test_a_model_that_is_named_translates_and_no_other_does() -> None:
    assert _chosen("en", "zh-Hans") == ("there",)
    assert _chosen("en", "zh-Hans", model="all") == ("all",)
    assert _chosen("auto", "zh-Hans", model="all") == ("all",)


def test_a_model_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(RequestError, match=r"^model none is not loaded$") as caught:
        _chosen("en", "zh-Hans", model="none")
    problem = caught.value.problem
    assert (problem.status, problem.code) == (400, "unknown_model")
    assert (problem.value, problem.limit) == ("none", "there, all, back")


def test_a_name_like_a_text_is_not_repeated() -> None:
    with pytest.raises(RequestError, match=r"^this model is not loaded$") as caught:
        _chosen("en", "zh-Hans", model="x" * 500)
    assert caught.value.problem.value == 500


@pytest.mark.parametrize(
    ("source", "target", "model", "words", "limit"),
    [
        ("en", "zh", "back", "from English (en) to Chinese (zh-Hans)", "there, all"),
        ("de", "zh", "back", "from German (de) to Chinese (zh-Hans)", None),
        ("de", "en", "there", "from German (de) to English (en)", "back"),
        ("auto", "zh", "back", "to Chinese (zh-Hans)", "there, all"),
        ("zh", "zh", "back", "from Chinese (zh-Hans) to Chinese (zh-Hans)", None),
    ],
)
def test_a_model_without_a_language_says_which_have_it(
    source: str, target: str, model: str, words: str, limit: str | None
) -> None:
    with pytest.raises(RequestError) as caught:
        _chosen(source, target, model=model)
    problem = caught.value.problem
    assert problem.message == f"model {model} does not translate {words}"
    assert (problem.code, problem.value, problem.limit) == ("unknown_model", model, limit)


def test_a_language_that_no_model_has_is_not_the_models_fault() -> None:
    with pytest.raises(RequestError, match=r"^fr is not supported$") as caught:
        _chosen("fr", "en", model="back")
    assert caught.value.problem.limit == "en, zh-Hans, de"


def test_a_model_does_not_pivot_and_the_refusal_says_who_translates() -> None:
    assert _chosen("de", "zh-Hans") == ("back", "there")
    with pytest.raises(RequestError, match="does not translate from German") as caught:
        _chosen("de", "en", model="all")
    problem = caught.value.problem
    assert (problem.code, problem.value, problem.limit) == ("unknown_model", "all", "back")


def test_auto_goes_by_the_pivot_where_a_named_language_would() -> None:
    chosen = choose_route(TABLE, source="auto", target="zh-Hans", aliases=NO_ALIASES)
    assert (chosen.route.source, chosen.is_detected) == ("en", True)
    assert chosen.by_source is not None
    found = {source: route.checkpoints for source, route in chosen.by_source.items()}
    assert found == {"en": ("there",), "de": ("back", "there"), "zh-Hans": ()}


def test_auto_by_a_named_model_goes_straight() -> None:
    chosen = choose_route(TABLE, source="auto", target="zh-Hans", aliases=NO_ALIASES, model="all")
    assert chosen.by_source is not None
    found = {source: route.checkpoints for source, route in chosen.by_source.items()}
    assert found == {"en": ("all",), "zh-Hans": ()}


def test_without_a_word_a_text_is_taken_for_the_pivot() -> None:
    assert languages_by_likelihood(TABLE) == ("en", "zh-Hans", "de")
    assert languages_by_likelihood(_table(ZH_EN)) == ("zh-Hans", "en")
    table = RoutingTable([Offer(name="a", pairs=(ZH_EN,))], pivot="en")
    assert languages_by_likelihood(table) == ("en", "zh-Hans")


def test_a_nearer_language_without_a_route_gives_way_to_one_with() -> None:
    en_gb = LanguagePair(source="de", target="en-GB")
    table = RoutingTable([Offer(name="a", pairs=(en_gb, EN_ZH))])
    assert _chosen("en-GB", "zh-Hans", table=table) == ("a",)


def test_a_refusal_lists_what_a_pivot_reaches_too() -> None:
    with pytest.raises(RequestError) as caught:
        _chosen("zh-Hans", "de")
    assert caught.value.problem.limit is None
    table = RoutingTable(
        [Offer(name="back", pairs=(DE_EN,)), Offer(name="there", pairs=(EN_ZH, ZH_EN))],
        pivot="en",
    )
    with pytest.raises(RequestError) as caught:
        _chosen("en", "de", table=table)
    assert caught.value.problem.limit == "zh-Hans"
    pairs = (DE_EN, LanguagePair(source="fr", target="es"))
    table = RoutingTable(
        [Offer(name="back", pairs=pairs), Offer(name="there", pairs=(EN_ZH,))], pivot="en"
    )
    with pytest.raises(RequestError) as caught:
        _chosen("de", "es", table=table)
    assert caught.value.problem.limit == "en, zh-Hans"


def test_of_very_many_languages_a_refusal_lists_the_first() -> None:
    pairs = [LanguagePair(source="en", target=f"x-{number}") for number in range(1_000)]
    problem = _refusal("en", "qq", tuple(pairs)).problem
    assert isinstance(problem.limit, str)
    assert problem.limit.endswith(", … (1001)")
    assert len(problem.limit) < 3_000
