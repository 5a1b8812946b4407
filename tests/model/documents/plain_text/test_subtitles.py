"""Subtitles: ours finds, and writes, what the formats' own libraries read in generated files."""

import html
import re
from collections.abc import Iterator
from random import Random

import pytest
import srt
import webvtt

from model.documents.formats import open_document
from model.text.marks.inline_codes import without_codes
from support.library_texts import NUM_DOCUMENTS, line, translated

SETTINGS = ["", " align:start", " line:0 position:10%,line-left", " X1:40 X2:600 Y1:20 Y2:50"]
ENDS = ["\n", "\r\n", "\r"]


TAG = re.compile(r"</?(?:i|b|font|c|v)\b[^<>]*>|<\d\d:\d\d\.\d{3}>|\{\\an8\}")
WORDS = ["&amp;", "AT&T", "&lt;i&gt;", "a&nbsp;b", "&#9834;", "5 < 6", "&unknown;", "1 > 0"]
TAGS = ["<i>{}</i>", "{{\\an8}}{}", '<font color="red">{}</font>', "<c.red>{}</c>", "<v Ann>{}"]


def words(chance: Random) -> str:
    """Words of a line that ends no sentence, with references and without tags."""
    made = line(chance).translate(dict.fromkeys(map(ord, "<>&{}"), " "))
    return f" {chance.choice(WORDS)} ".join([made.strip().lstrip("-–—"), "x,"])


def payload(chance: Random) -> list[str]:
    """Lines of a cue, none of which is empty, an arrow or the line of a speaker."""
    made = [words(chance).strip() for _ in range(chance.randrange(1, 4))]
    return [chance.choice([*TAGS, "{}", "{}", "a <00:01.000>{}"]).format(one) for one in made]


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


def said(cue: str) -> str:
    """What a cue says, in one line."""
    return " ".join(html.unescape(TAG.sub("", cue)).split())


def texts_of(cue: str) -> Iterator[str]:
    """What is said by stretches of a cue between empty lines."""
    return filter(None, map(said, re.split(r"\n\s*\n", cue)))


def letters(text: str) -> str:
    """A text without white space: a translation has its own lines."""
    return "".join(text.split())


def read(cue: str) -> tuple[str, list[str]]:
    """Letters and tags of a cue."""
    return letters(said(cue)), TAG.findall(cue)


def with_translations(cue: str) -> tuple[str, list[str]]:
    return letters("".join(map(translated, texts_of(cue)))), TAG.findall(cue)


@pytest.mark.parametrize("seed", range(NUM_DOCUMENTS))
def test_cues_of_subrip_are_what_srt_reads(seed: int) -> None:
    source = subrip(Random(seed))
    document = open_document(source.encode(), "srt")
    before = list(srt.parse(source))
    assert len(before) == 59
    found = [text for cue in before for text in texts_of(cue.content.replace("\r\n", "\n"))]
    assert [" ".join(without_codes(text).split()) for text in document.texts] == found
    rebuilt = document.rebuild([translated(text) for text in document.texts]).decode()
    after = list(srt.parse(rebuilt))
    assert [read(cue.content) for cue in after] == [
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
    assert [" ".join(without_codes(text).split()) for text in document.texts] == [
        text for cue in before for text in texts_of(cue.raw_text)
    ]
    after = cues(document.rebuild([translated(text) for text in document.texts]).decode())
    assert [read(cue.raw_text) for cue in after] == [
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
        ("{\\an8}朋友好", "{\\an8}朋\n友好"),
        (r"{\pos(1, 2)}Überraschung", r"{\pos(1, 2)}Überraschung"),
        ("现在要1234567美元", "现在\n要1234567美元"),
        ("请看https://example.org/é?a=b在这里", "请看https://example.org/é?a=b在\n这里"),
        ("你&我好的", "你&我\n好的"),
        ("你&amp;我好的", "你&amp;amp;我\n好的"),
        ("👩\u200d👩\u200d👧\u200d👦👍🏽", "👩\u200d👩\u200d👧\u200d👦👍🏽"),
        ("他说：“走吧！”我走了。", "他说：“走吧！”\n我走了。"),
        ("カレーライス", "カレー\nライス"),
        ("안녕하세요", "안녕하세요"),
        ("现在好，我们走吧", "现在好，\n我们走吧"),
    ],
)
def test_a_cue_is_never_cut_inside_of_a_word_a_setting_or_a_number(
    translation: str, written: str
) -> None:
    cue = "WEBVTT\n\n00:01.000 --> 00:02.000\n{}\n"
    document = open_document(cue.format("one\ntwo").encode(), "vtt")
    assert document.rebuild([translation]).decode() == cue.format(written)


CUE = "{}00:00:01.000 --> 00:00:02.000\n{}\n"


def cue_of(kind: str, text: str) -> str:
    return CUE.format("WEBVTT\n\n" if kind == "vtt" else "1\n", text)


def texts(kind: str, text: str) -> list[str]:
    return [without_codes(one) for one in open_document(cue_of(kind, text).encode(), kind).texts]


@pytest.mark.parametrize("kind", ["srt", "vtt"])
@pytest.mark.parametrize(
    ("source", "text", "translation", "written"),
    [
        ("Tom &amp; Mary are here.", "Tom & Mary are here.", "汤姆 & 玛丽在", "汤姆 &amp; 玛丽在"),
        ("Tom & Mary", "Tom & Mary", "汤姆 & 玛丽", "汤姆 & 玛丽"),
        ("Come&nbsp;in", "Come\xa0in", "Kommen\xa0Sie", "Kommen&nbsp;Sie"),
        ("no &lt;b&gt; here", "no <b> here", "kein <b> da", "kein &lt;b&gt; da"),
        ("It&#39;s a &#x266A;", "It's a ♪", "'s ist ♪♪", "&#39;s ist &#x266A;&#x266A;"),
        ("one", "one", "a <b> and &amp; it", "a &lt;b> and &amp;amp; it"),
        ("a&#10;b", "ab", "c\U00108000d", "c&#10;d"),
        ("&lrm;one", "\u200eone", "\u200eeins", "&lrm;eins"),
        ("5 &lt; 6 is", "5 < 6 is", "ist 5 < 6", "ist 5 &lt; 6"),
    ],
)
def test_references_are_the_characters_that_they_mean(
    kind: str, source: str, text: str, translation: str, written: str
) -> None:
    document = open_document(cue_of(kind, source).encode(), kind)
    assert [without_codes(one) for one in document.texts] == [text]
    assert document.rebuild([translation]).decode() == cue_of(kind, written)
    assert document.rebuild(document.texts).decode() == cue_of(kind, source)


@pytest.mark.parametrize(("kind", "written"), [("srt", "ist 5 < 6"), ("vtt", "ist 5 &lt; 6")])
def test_a_bare_sign_is_a_reference_where_the_format_has_them(kind: str, written: str) -> None:
    document = open_document(cue_of(kind, "5 < 6 is").encode(), kind)
    assert document.rebuild(["ist 5 < 6"]).decode() == cue_of(kind, written)


def test_words_between_times_are_of_one_sentence() -> None:
    source = cue_of("vtt", "<00:01.000>Where <00:00:02.000>is <00:03.000>the <c.x>station</c>?")
    document = open_document(source.encode(), "vtt")
    assert [without_codes(one) for one in document.texts] == ["Where is the station?"]
    (text,) = document.texts
    rebuilt = document.rebuild([text.replace("Where", "Wo").replace("is", "ist")])
    assert rebuilt.decode() == source.replace("Where", "Wo").replace("is", "ist")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("<i>We go home now.</i>\n<b>Good night.</b>", ["We go home now.", "Good night."]),
        ("<i>We go home now.\nGood night.</i>", ["We go home now.", "Good night."]),
        ("我们走吧。\n晚安！", ["我们走吧。", "晚安！"]),
        ("Yes. We go\nhome now.", ["Yes. We go home now."]),
        ("I saw Mr.\nSmith there.", ["I saw Mr. Smith there."]),
        ("We go home\nGood night.", ["We go home Good night."]),
        ("We go home ...\nand sleep.", ["We go home ... and sleep."]),
        ("<i>- Where?</i>\n<i>- Here</i>", ["- Where?", "- Here"]),
    ],
)
def test_lines_that_end_with_sentences_stay_lines(source: str, said: list[str]) -> None:
    assert texts("srt", source) == said
    document = open_document(cue_of("srt", source).encode(), "srt")
    assert document.rebuild(document.texts).decode() == cue_of("srt", source)
    rebuilt = document.rebuild([text.upper() for text in document.texts]).decode()
    if len(said) > 1:
        assert TAG.sub("", rebuilt).splitlines()[2:] == [*map(str.upper, said)]


def test_a_cue_is_never_cut_inside_of_a_tag() -> None:
    source = cue_of("vtt", 'I <font color="#ffff00">love\nit</font> so')
    document = open_document(source.encode(), "vtt")
    assert document.texts == ("I \U00100000love it\U00104000 so",)
    assert document.rebuild(["我\U00100000很爱\U00104000它"]).decode() == cue_of(
        "vtt", '我<font color="#ffff00">很\n爱</font>它'
    )


def test_tags_do_not_count_as_the_length_of_a_line() -> None:
    source = cue_of("srt", 'I <font color="#ffff00" face="Arial">love</font> you\nas you are')
    document = open_document(source.encode(), "srt")
    (text,) = document.texts
    rebuilt = document.rebuild([text.replace("as you are", "so wie du bist")]).decode()
    assert rebuilt == source.replace("as you are", "so wie du bist")
