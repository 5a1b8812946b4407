import gzip
from pathlib import Path

from benchmarks.corpora import in_turn, interfaces, mails
from benchmarks.marks import KINDS, is_kept, marked_sentences


def test_strings_of_interfaces_take_their_turn(tmp_path: Path) -> None:
    for language, line in (("en", "Cancel"), ("de", "Abbrechen")):
        for name, number in (("aosp-apps", 2), ("thunderbird", 1), ("wesnoth", 1)):
            (tmp_path / f"{name}.{language}.gz").write_bytes(
                gzip.compress(f"{line}\n".encode() * number)
            )
    pairs = in_turn(interfaces(tmp_path, "en", "de"))
    assert [corpus for *_, corpus in pairs] == ["aosp-apps", "thunderbird", "aosp-apps"]
    assert pairs[0][:2] == ("Cancel", "Abbrechen")


def test_mails_are_the_same_in_all_languages_and_have_a_word_for_a_mark_in_each() -> None:
    for source, target in (("en", "de"), ("de", "en"), ("en", "zh"), ("zh", "en")):
        [corpus] = mails(source, target)
        english = 0 if source == "en" else 1
        marked = marked_sentences(corpus, english=english, limit=1_000)
        assert len(marked) == len(corpus) >= 60
        assert sum(not one.is_beside for one in marked) >= 59
        assert {one.kind for one in marked} == set(KINDS)
        assert all(is_kept(one, one.reference) for one in marked)
    assert mails("en", "fr") == []
