"""What counts as kept, flagged and lost of realistic texts."""

from collections import Counter
from typing import Any

import pytest

from benchmarks.survival import (
    TEXTS,
    Fate,
    Item,
    Marked,
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


def segment(source: str, text: str, *failed: str) -> dict[str, Any]:
    return {"source": source, "text": text, "quality": {"failed": list(failed)}}


def translated(*segments: dict[str, Any]) -> dict[str, Any]:
    return {"text": "\n".join(one["text"] for one in segments), "segments": list(segments)}


def test_items_are_taken_out_of_a_text_and_stay_in_what_is_sent() -> None:
    one, two = read_texts(FILE)
    assert one == Text(
        name="one",
        language="en",
        kind="chat",
        plain="See {name} at 10:30\nor {name}.",
        items=(
            Marked(item="{name}", begin=4),
            Marked(item="10:30", begin=14, is_number=True),
            Marked(item="{name}", begin=23),
        ),
    )
    assert (two.plain, two.items) == ("2天", (Marked(item="2", begin=0, is_number=True),))


def test_every_text_of_the_file_has_something_to_keep_and_no_brackets() -> None:
    texts = list(read_texts(TEXTS.read_text(encoding="utf-8")))
    assert len(texts) == len({text.name for text in texts}) == 112
    assert Counter(text.language for text in texts).keys() == {"en", "de", "zh"}
    for text in texts:
        assert not set("⟦⟧⟪⟫") & set(text.plain)
        assert all(text.plain[one.begin : one.end] == one.item for one in text.items)
    assert sum(len(text.items) for text in texts) > 500


def test_a_long_item_comes_as_often_and_a_short_one_at_least() -> None:
    assert comes_through("{name}", "a {name}", "{name} b")
    assert not comes_through("{name}", "a {name}", "{name} {name}")
    assert not comes_through("%s", "%s %s", "%s")
    assert comes_through("%s", "%s", "%s %s")


def test_what_is_lost_in_a_flagged_segment_is_not_lost_in_silence() -> None:
    one, _ = read_texts(FILE)
    lost = ("See {name} at 10:30", "Siehe um zehn")
    kept = segment("or {name}.", "oder {name}.")
    found = list(fates(one, translated(segment(*lost, "marks"), kept), "en-de"))
    assert [item.fate for item in found] == ["flagged", "flagged", "kept"]
    found = list(fates(one, translated(segment(*lost), kept), "en-de"))
    assert [item.fate for item in found] == ["lost", "lost", "kept"]
    assert share(found) == pytest.approx(1 / 3)
    assert table(found).splitlines()[-1] == "| all | 3 | 1 | 0 | 2 |"


def test_a_flag_of_another_segment_does_not_excuse_what_is_lost() -> None:
    one, _ = read_texts(FILE)
    reply = translated(
        segment("See {name} at 10:30", "Siehe {name} um zehn", "length"),
        segment("or {name}.", "oder."),
    )
    found = list(fates(one, reply, "en-de"))
    assert [item.fate for item in found] == ["kept", "flagged", "lost"]


def test_what_stands_between_segments_has_no_flag_that_excuses_it() -> None:
    one, _ = read_texts(FILE)
    reply = {"text": "Siehe oder.", "segments": [segment("See", "Siehe", "length")]}
    assert [item.fate for item in fates(one, reply, "en-de")] == ["lost", "lost", "lost"]


def test_an_item_in_two_segments_is_excused_by_either() -> None:
    (one,) = read_texts("=== one | en | chat\nCall ⟦+49 30 1⟧ now.\n")
    reply = translated(segment("Call +49", "Ruf an"), segment("30 1 now.", "30 1.", "marks"))
    assert [item.fate for item in fates(one, reply, "en-de")] == ["flagged"]


def test_what_comes_too_often_is_not_kept() -> None:
    one, _ = read_texts(FILE)
    reply = translated(
        segment("See {name} at 10:30", "Siehe {name} um 10:30"),
        segment("or {name}.", "oder {name}, {name}."),
    )
    assert [item.fate for item in fates(one, reply, "en-de")] == ["kept", "kept", "lost"]


def test_what_comes_where_it_does_not_belong_is_not_kept() -> None:
    one, _ = read_texts(FILE.replace("⟦{name}⟧.", "none."))
    reply = translated(
        segment("See {name} at 10:30", "Siehe {name} um 10:30"),
        segment("or none.", "oder {name}."),
    )
    assert [item.fate for item in fates(one, reply, "en-de")] == ["lost", "kept"]


def test_segments_that_are_not_of_the_text_are_refused() -> None:
    one, _ = read_texts(FILE)
    with pytest.raises(ValueError, match="substring"):
        list(fates(one, translated(segment("something else", "")), "en-de"))


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
