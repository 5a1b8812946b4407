"""Subtitles: ours finds, and writes, what the formats' own libraries read in generated files."""

import re
from collections.abc import Iterator
from random import Random

import pytest
import srt
import webvtt

from model.documents.formats import open_document
from support.library_texts import NUM_DOCUMENTS, line, translated

SETTINGS = ["", " align:start", " line:0 position:10%,line-left", " X1:40 X2:600 Y1:20 Y2:50"]
ENDS = ["\n", "\r\n", "\r"]


def payload(chance: Random) -> list[str]:
    """Lines of a cue, none of which is empty, an arrow or the line of a speaker."""
    made = [line(chance).strip() for _ in range(chance.randrange(1, 4))]
    tags = ["<i>{}</i>", "{{\\an8}}{}", "{}", '<font color="red">{}</font>', "{}"]
    made = [chance.choice(tags).format(one.lstrip("-–—").strip()) for one in made]
    return [one for one in made if one.strip()] or ["x"]


def subrip(chance: Random) -> str:
    """Cues, of which some have empty lines, and some none between."""
    made = []
    for number in range(1, 60):
        lines = payload(chance)
        if chance.random() < 0.2:
            lines += ["", *payload(chance)]
        times = f"00:00:{number:02},000 --> 00:00:{number:02},900{chance.choice(SETTINGS)}"
        made += [str(number), times, *lines]
        made += [""] * chance.randrange(3)
    return chance.choice(ENDS[:2]).join([*made, ""])


def texts_of(cue: str) -> Iterator[str]:
    """Stretches of a cue between empty lines, each in one line."""
    for stretch in re.split(r"\n\s*\n", cue):
        text = " ".join(one.strip() for one in stretch.strip("\n").split("\n"))
        if any(map(str.isalpha, text)):
            yield text


def letters(text: str) -> str:
    """A text without white space: a translation has its own lines."""
    return "".join(text.split())


def with_translations(cue: str) -> str:
    stretches = [one.strip() for one in re.split(r"\n\s*\n", cue)]
    return letters(
        "".join(translated(one) if any(map(str.isalpha, one)) else one for one in stretches)
    )


@pytest.mark.parametrize("seed", range(NUM_DOCUMENTS))
def test_cues_of_subrip_are_what_srt_reads(seed: int) -> None:
    source = subrip(Random(seed))
    document = open_document(source.encode(), "srt")
    before = list(srt.parse(source))
    assert len(before) == 59
    found = [text for cue in before for text in texts_of(cue.content.replace("\r\n", "\n"))]
    assert list(document.texts) == found
    rebuilt = document.rebuild([translated(text) for text in document.texts]).decode()
    after = list(srt.parse(rebuilt))
    assert [letters(cue.content) for cue in after] == [
        with_translations(cue.content.replace("\r\n", "\n")) for cue in before
    ]
    assert [(cue.index, cue.start, cue.end, cue.proprietary) for cue in after] == [
        (cue.index, cue.start, cue.end, cue.proprietary) for cue in before
    ]
    assert document.rebuild(document.texts).decode() == source


def web_subtitles(chance: Random) -> str:
    """A head, styles, regions and notes, and cues with and without names and settings."""
    made = ["WEBVTT - of a film", "", "STYLE", "::cue { color: red }", ""]
    made += ["REGION", "id:fred", "width:40%", "", "NOTE", line(chance).strip() or "x", ""]
    for number in range(60):
        times = f"00:{number:02}.000 --> 00:{number:02}.900{chance.choice(SETTINGS[:3])}"
        name = [f"cue {number}"] if chance.random() < 0.3 else []
        made += [*name, times, *payload(chance), ""]
        if chance.random() < 0.1:
            made += [f"NOTE {line(chance).strip()}", ""]
    return chance.choice(ENDS).join(made)


def cues(source: str) -> list[webvtt.Caption]:
    return list(webvtt.from_string(source))


@pytest.mark.parametrize("seed", range(NUM_DOCUMENTS))
def test_cues_of_webvtt_are_what_webvtt_py_reads(seed: int) -> None:
    source = web_subtitles(Random(seed))
    document = open_document(source.encode(), "vtt")
    before = cues(source)
    assert len(before) == 60
    assert list(document.texts) == [text for cue in before for text in texts_of(cue.raw_text)]
    after = cues(document.rebuild([translated(text) for text in document.texts]).decode())
    assert [letters(cue.raw_text) for cue in after] == [
        with_translations(cue.raw_text) for cue in before
    ]
    assert [(cue.identifier, cue.start, cue.end, cue.settings) for cue in after] == [
        (cue.identifier, cue.start, cue.end, cue.settings) for cue in before
    ]
    assert document.rebuild(document.texts).decode() == source


@pytest.mark.parametrize(
    ("translation", "written"),
    [
        ("Überraschung!", "Überraschung!"),
        ('<font color="#ffff00">你好</font>', '<font color="#ffff00">你\n好</font>'),
        ("<v Ann B>Überraschung</v>", "<v Ann B>Überraschung</v>"),
        ("{\\an8}朋友好", "{\\an8}朋\n友好"),
        (r"{\pos(1, 2)}Überraschung", r"{\pos(1, 2)}Überraschung"),
        ("现在要1234567美元", "现在\n要1234567美元"),
        ("请看https://example.org/é?a=b在这里", "请看https://example.org/é?a=b在\n这里"),
        ("你&amp;我好的", "你&amp;我\n好的"),
        ("👩\u200d👩\u200d👧\u200d👦👍🏽", "👩\u200d👩\u200d👧\u200d👦👍🏽"),
        ("他说：“走吧！”我走了。", "他说：“走吧！”\n我走了。"),
        ("カレーライス", "カレー\nライス"),
        ("안녕하세요", "안녕하세요"),
        ("现在好，我们走吧", "现在好，\n我们走吧"),
    ],
)
def test_a_cue_is_never_cut_inside_of_a_word_a_tag_or_a_number(
    translation: str, written: str
) -> None:
    cue = "WEBVTT\n\n00:01.000 --> 00:02.000\n{}\n"
    document = open_document(cue.format("one\ntwo").encode(), "vtt")
    assert document.rebuild([translation]).decode() == cue.format(written)
