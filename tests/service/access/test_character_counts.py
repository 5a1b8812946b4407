from service.access.character_counts import CharacterCounts


def test_characters_add_up_by_caller() -> None:
    counts = CharacterCounts()
    for identity, number in (("key:a", 3), ("key:b", 5), ("key:a", 4)):
        counts.add(identity, number)
    assert [counts.of(identity) for identity in ("key:a", "key:b", "key:c")] == [7, 5, 0]


def test_those_that_sent_nothing_for_longest_are_forgotten() -> None:
    counts = CharacterCounts(max_callers=2)
    for identity in ("a", "b", "a", "c"):
        counts.add(identity, 1)
    assert len(counts) == 2
    assert [counts.of(identity) for identity in "abc"] == [2, 0, 1]
