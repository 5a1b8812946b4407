"""What counts as kept, flagged and lost of realistic texts."""

from collections import Counter
from typing import Any

from benchmarks.survival import (
    TEXTS,
    Fate,
    Item,
    Text,
    comes_through,
    fates,
    kinds,
    kinds_table,
    read_texts,
    share,
    table,
)

FILE = """=== one | en | chat
See ⟦{name}⟧ at ⟪10:30⟫
or ⟦{name}⟧.
=== two | zh | mail
⟪2⟫天

"""


def segment(source: str, *failed: str) -> dict[str, Any]:
    return {"source": source, "quality": {"failed": list(failed)}}


def test_items_are_taken_out_of_a_text_and_stay_in_what_is_sent() -> None:
    one, two = read_texts(FILE)
    assert one == Text(
        name="one",
        language="en",
        kind="chat",
        plain="See {name} at 10:30\nor {name}.",
        exact=("{name}", "{name}"),
        numbers=("10:30",),
    )
    assert (two.plain, two.exact, two.numbers) == ("2天", (), ("2",))


def test_every_text_of_the_file_has_something_to_keep_and_no_brackets() -> None:
    texts = list(read_texts(TEXTS.read_text(encoding="utf-8")))
    assert len(texts) == len({text.name for text in texts}) == 112
    assert Counter(text.language for text in texts).keys() == {"en", "de", "zh"}
    for text in texts:
        assert not set("⟦⟧⟪⟫") & set(text.plain)
        assert all(item in text.plain for item in (*text.exact, *text.numbers))
    assert sum(len(text.exact) + len(text.numbers) for text in texts) > 500


def test_a_long_item_comes_as_often_and_a_short_one_at_least() -> None:
    assert comes_through("{name}", "a {name}", "{name} b")
    assert not comes_through("{name}", "a {name}", "{name} {name}")
    assert not comes_through("%s", "%s %s", "%s")
    assert comes_through("%s", "%s", "%s %s")


def test_what_is_lost_in_a_flagged_segment_is_not_lost_in_silence() -> None:
    one, _ = read_texts(FILE)
    translation = {
        "text": "Siehe um zehn\noder {name}.",
        "segments": [segment("See {name} at 10:30", "marks"), segment("or {name}.")],
    }
    found = list(fates(one, translation, "en-de"))
    assert [item.fate for item in found] == ["flagged", "flagged", "flagged"]
    translation["segments"] = [segment("See {name} at 10:30"), segment("or {name}.")]
    found = list(fates(one, translation, "en-de"))
    assert [item.fate for item in found] == ["lost", "lost", "lost"]
    assert share(found) == 0.0
    assert table(found).splitlines()[-1] == "| all | 3 | 0 | 0 | 3 |"


def test_every_kind_of_text_is_counted_in_every_direction() -> None:
    def item(direction: str, kind: str, fate: Fate) -> Item:
        return Item(text="t", direction=direction, kind=kind, item="i", fate=fate)

    items = [
        item("en-zh", "mail", "kept"),
        item("en-de", "mail", "lost"),
        item("en-de", "mail", "kept"),
        item("en-de", "chat", "flagged"),
    ]
    assert kinds_table(items).splitlines()[2:] == [
        "| en-de | chat | 1 | 0 | 1 | 0 |",
        "| en-de | mail | 2 | 1 | 0 | 1 |",
        "| en-zh | mail | 1 | 1 | 0 | 0 |",
    ]
    assert sum(one.items for one in kinds(items)) == len(items)


def test_every_direction_has_mails() -> None:
    languages = {text.language for text in read_texts(TEXTS.read_text(encoding="utf-8"))
                 if text.kind in ("mail", "Mail", "邮件")}  # fmt: skip
    assert languages == {"en", "de", "zh"}
