"""Lists of several groups as one."""

from service.router.joining import joined, summed


def test_languages_of_several_groups_are_one_list_with_all_targets() -> None:
    europe = [
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "en", "targets": ["de"]},
    ]
    asia = [{"code": "en", "targets": ["ja", "de"]}, {"code": "ja", "targets": ["en"]}]
    assert joined([europe, asia]) == [
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "en", "targets": ["de", "ja"]},
        {"code": "ja", "targets": ["en"]},
    ]


def test_what_a_language_can_be_used_for_anywhere_it_can_be_used_for() -> None:
    one = [{"lang": "de", "usable_as_source": False, "features": {"glossary": {"status": "a"}}}]
    other = [{"lang": "de", "usable_as_source": True, "features": {"other": {}}}]
    assert joined([one, other]) == [
        {
            "lang": "de",
            "usable_as_source": True,
            "features": {"glossary": {"status": "a"}, "other": {}},
        }
    ]


def test_lists_in_an_object_follow_each_other_and_equals_stand_once() -> None:
    pair = {"source_lang": "de", "target_lang": "en"}
    other = {"source_lang": "en", "target_lang": "ja"}
    assert joined([{"supported_languages": [pair]}, {"supported_languages": [pair, other]}]) == {
        "supported_languages": [pair, other]
    }


def test_counts_are_sums_and_limits_are_not() -> None:
    contents = [
        {"character_count": 3, "character_limit": 10},
        {"character_count": 4, "character_limit": 10},
    ]
    assert summed(contents) == {"character_count": 7, "character_limit": 10}
    assert joined(contents)["character_count"] == 3
