"""Formats that are plain text with a notation: what is a text, and what comes back around it."""

import csv
import io
import json

import pytest

from model.documents.formats import open_document
from model.documents.notation.document import Document
from model.errors import DocumentError, InputError
from model.text.marks.inline_codes import without_codes


def opened(text: str, kind: str) -> Document:
    return open_document(text.encode(), kind)


def in_capitals(text: str, kind: str) -> str:
    """A document whose texts a translator has put in capitals."""
    document = opened(text, kind)
    return document.rebuild([one.upper() for one in document.texts]).decode()


SAMPLES = {
    "txt": "One line.\r\n\r\n  two \nthree",
    "md": (
        "# Title #\n\nA *paragraph* over\ntwo lines.  \nbroken\n\n```py\ncode\n```\n\n"
        "> - quoted\n>   item\n"
    ),
    "html": "<p>One</p>\r\n<p>two</p>",
    "xml": "<a>One <b>two</b><c/></a>",
    "srt": "1\r\n00:00:01,000 --> 00:00:02,000\r\nHello\r\nworld\r\n\r\n",
    "vtt": "WEBVTT\n\nNOTE hello\n\n00:01.000 --> 00:04.000 align:start\n<v Ann>Hello\n",
    "po": '# c\nmsgid ""\nmsgstr "Language: de\\n"\n\n#: a.c\nmsgid "Hello"\nmsgstr "Hallo"\n',
    "json": '{"a": "One",\n "b": ["two", 3, null, "\\u00e9t\\u00e9"]}\n',
    "csv": 'name,"text"\r\n1,"a ""b"", c"\r\n,\r\n',
    "tsv": "name\ttext\nx\ty\n",
}


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
def test_texts_that_come_back_give_the_same_bytes(kind: str, codec: str) -> None:
    data = SAMPLES[kind].encode(codec)
    document = open_document(data, kind)
    assert document.kind == kind
    assert document.rebuild(document.texts) == data


@pytest.mark.parametrize("kind", sorted(set(SAMPLES) - {"json", "html", "xml"}))
def test_what_is_not_text_is_one_clear_error(kind: str) -> None:
    with pytest.raises(DocumentError, match=f"the {kind} document is not text in utf-8"):
        open_document(b"a\xff\xfeb", kind)


@pytest.mark.parametrize("kind", sorted(set(SAMPLES) - {"xml", "vtt", "json"}))
def test_an_empty_file_stays_empty(kind: str) -> None:
    assert open_document(b"", kind).rebuild([]) == b""


def test_a_kind_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="no document of kind 'exe'"):
        open_document(b"", "exe")


def test_every_line_of_plain_text_is_a_text() -> None:
    assert opened("One line.\r\n\r\n 1,000\ntwo\t\n", "txt").texts == ("One line.", "two")
    assert in_capitals("One.\r\n\r\n two\t\n", "txt") == "ONE.\r\n\r\n TWO\t\n"


def test_private_characters_of_the_source_are_no_codes() -> None:
    assert opened("a \U00100000 b", "txt").texts == ()


def test_a_paragraph_of_markdown_is_one_text_on_one_line() -> None:
    source = "# Big *title* #\n\nA paragraph over\ntwo lines.\n\n> - quoted\n>   item [x](y)\n"
    assert [without_codes(text) for text in opened(source, "md").texts] == [
        "Big title", "A paragraph over two lines.", "quoted item x",
    ]  # fmt: skip
    assert in_capitals(source, "md") == (
        "# BIG *TITLE* #\n\nA PARAGRAPH OVER TWO LINES.\n\n> - QUOTED ITEM [X](y)\n"
    )


def test_code_html_definitions_and_front_matter_of_markdown_stay() -> None:
    source = (
        "---\ntitle: a b\n---\n\n    indented code\n\n~~~\ncode\n~~~\n\n<div>\nhtml\n</div>\n\n"
        "[x]: http://a.example 'title'\n\n***\n"
    )
    assert opened(source, "md").texts == ()


def test_hard_breaks_and_underlined_headings_of_markdown_stay() -> None:
    assert in_capitals("one  \ntwo\\\nthree\nfour\n", "md") == "ONE  \nTWO\\\nTHREE FOUR\n"
    assert in_capitals("Title\r\n=====\r\n\r\ntext\r\n", "md") == "TITLE\r\n=====\r\n\r\nTEXT\r\n"


def test_tables_of_markdown_are_cells() -> None:
    source = "| a b | c |\n|:---|--:|\n| d \\| e | `f` |\n"
    document = opened(source, "md")
    assert document.texts == ("a b", "c", "d | e")
    assert document.rebuild(["x", "y|z", "w"]).decode() == (
        "| x | y\\|z |\n|:---|--:|\n| w | `f` |\n"
    )


def test_a_cue_is_one_text_in_as_many_lines() -> None:
    source = (
        "1\n00:00:01,000 --> 00:00:02,500\nHello dear\nold world\n\n"
        "2\n0:00:03,0 --> 0:00:04,0\n- Yes?\n- No.\n"
    )
    document = opened(source, "srt")
    assert document.texts == ("Hello dear old world", "- Yes?", "- No.")
    rebuilt = document.rebuild(["Hallo, du liebe alte Welt", "- Ja?", "- Nein. -->"]).decode()
    assert rebuilt == (
        "1\n00:00:01,000 --> 00:00:02,500\nHallo, du\nliebe alte Welt\n\n"
        "2\n0:00:03,0 --> 0:00:04,0\n- Ja?\n- Nein. →\n"
    )


def test_a_cue_of_subrip_ends_where_the_next_one_begins() -> None:
    times = "00:00:01,000 --> 00:00:02,000"
    source = f"1\n{times}\none\n\nmore of it\n2\n{times}\ntwo\n{times}\nthree\n\n\n4\n{times}\n"
    assert opened(source, "srt").texts == ("one", "more of it", "two", "three")
    assert in_capitals(source, "srt") == source.upper()


def test_times_may_be_written_in_many_ways_and_are_never_text() -> None:
    for times in ("00:00:01 --> 00:00:02", "1:01,5->1:02,5", "0:0:1.000--> 0:0:2.000 X1:40"):
        assert opened(f"1\n{times}\none\n", "srt").texts == ("one",)
    source = "1\n00:00:01,000 --> 00:00:02,000\none\n\n2\nsoon --> later\ntwo\n"
    assert in_capitals(source, "srt") == source.replace("one", "ONE").replace("two", "TWO")


def test_a_cue_of_webvtt_ends_at_an_empty_line_or_an_arrow() -> None:
    source = (
        "WEBVTT\n\n00:01.000 --> 00:02.000\none\n\nno cue\n\n00:01.000 --> 00:02.000\ntwo\n"
        "00:02.000 --> 00:03.000\nthree\nx --> y\nno text"
    )
    assert opened(source, "vtt").texts == ("one", "two", "three")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("kind", ["srt", "vtt", "md", "txt", "csv"])
def test_lines_may_end_in_three_ways(kind: str, end: str) -> None:
    source = {
        "srt": "1\n00:00:01,000 --> 00:00:02,000\nHello\nworld\n\n",
        "vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\nHello\nworld\n",
        "md": "# Title\n\n> quoted\n\n- one\n- two\n",
        "txt": "one\n\ntwo\n",
        "csv": "one,two\nthree,four\n",
    }[kind].replace("\n", end)
    expected = source.upper()
    assert in_capitals(source, kind) == expected
    assert opened(source, kind).rebuild(opened(source, kind).texts) == source.encode()


def test_notes_styles_and_settings_of_webvtt_stay() -> None:
    source = (
        "WEBVTT head\n\nSTYLE\n::cue { color: red }\n\nNOTE\nabout\n\nid\n"
        "00:01.000 --> 00:04.000 line:0\n<v Ann>one\n"
    )
    assert opened(source, "vtt").texts == ("one",)
    assert in_capitals(source, "vtt") == source.replace("one", "ONE")


@pytest.mark.parametrize(
    ("text", "kind", "problem"),
    [
        ("hello", "srt", "has no cue"),
        ("hello", "vtt", "does not begin with WEBVTT"),
        ("hello", "po", "has on line 1 what is no part of an entry"),
        ('msgid "a', "po", "has on line 1 what is no part of an entry"),
        ("{'a': 1}", "json", "is not JSON"),
        ("[" * 100_000, "json", "is nested 100000 deep; at most 500 are read"),
        ('{"a":[' * 251 + "]}" * 251, "json", "is nested 502 deep; at most 500 are read"),
        ('a,"b\nc', "csv", "is no table"),
        ("a," + "b" * 200_000, "csv", "is no table: field larger than field limit"),
    ],
)
def test_a_file_of_another_kind_is_one_clear_error(text: str, kind: str, problem: str) -> None:
    with pytest.raises(DocumentError, match=f"^the {kind} document {problem}"):
        opened(text, kind)


CATALOGUE = """\
msgid ""
msgstr ""
"Language: de\\n"

#. a comment
msgctxt "menu"
msgid "Open \\"%s\\"\\n"
msgstr ""

msgid ""
"one line\\n"
"two"
msgstr ""

msgid "%d cat"
msgid_plural "%d cats"
msgstr[0] ""
msgstr[1] ""

msgid "done"
msgstr "fertig"

#~ msgid "old"
#~ msgstr ""
"""


def test_messages_without_a_translation_get_one() -> None:
    document = opened(CATALOGUE, "po")
    assert document.texts == ('Open "%s"\n', "one line\ntwo", "%d cat", "%d cats")
    rebuilt = document.rebuild(['"%s" \\ öffnen\n', "eins\nzwei", "%d Katze", "%d Katzen"]).decode()
    expected = CATALOGUE.replace(
        'Open \\"%s\\"\\n"\nmsgstr ""', 'Open \\"%s\\"\\n"\nmsgstr "\\"%s\\" \\\\ öffnen\\n"'
    )
    expected = expected.replace('"two"\nmsgstr ""', '"two"\nmsgstr ""\n"eins\\n"\n"zwei"')
    expected = expected.replace('[0] ""', '[0] "%d Katze"').replace('[1] ""', '[1] "%d Katzen"')
    assert rebuilt == expected


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_translations_of_several_lines_end_them_as_the_catalogue_does(end: str) -> None:
    source = 'msgid "one\\ntwo"\nmsgstr ""'.replace("\n", end)
    written = 'msgid "one\\ntwo"\nmsgstr ""\n"ONE\\n"\n"TWO"'.replace("\n", end)
    assert in_capitals(source, "po") == written


def test_entries_end_where_the_next_one_begins() -> None:
    source = (
        'msgid "one" " more"\n\nmsgstr ""\nmsgid "%d cat"\nmsgid_plural "%d cats"\nmsgstr[0] ""\n'
        'msgstr[1] ""\nmsgctxt "c"\nmsgid "two"\nmsgstr ""\n'
    )
    assert opened(source, "po").texts == ("one more", "%d cat", "%d cats", "two")
    assert in_capitals(source, "po") == (
        'msgid "one" " more"\n\nmsgstr "ONE MORE"\nmsgid "%d cat"\nmsgid_plural "%d cats"\n'
        'msgstr[0] "%D CAT"\nmsgstr[1] "%D CATS"\nmsgctxt "c"\nmsgid "two"\nmsgstr "TWO"\n'
    )


def test_numbers_in_a_catalogue_are_bytes() -> None:
    source = r'msgid "caf\303\xa9\t\a\q"' + '\nmsgstr ""\n'
    assert opened(source, "po").texts == ("café\t\aq",)


def test_no_form_of_a_plural_is_left_empty_beside_another() -> None:
    source = 'msgid "one"\nmsgid_plural "%d"\nmsgstr[0] ""\nmsgstr[1] ""\n'.replace("%d", "7")
    assert opened(source, "po").texts == ("one",)
    assert 'msgstr[0] "EINS"\nmsgstr[1] "7"' in opened(source, "po").rebuild(["EINS"]).decode()
    assert in_capitals('msgid "7"\nmsgstr ""\n', "po") == 'msgid "7"\nmsgstr ""\n'


def test_a_message_that_stays_the_same_is_written_all_the_same() -> None:
    assert opened('msgid "OK"\nmsgstr ""\n', "po").rebuild(["OK"]) == b'msgid "OK"\nmsgstr "OK"\n'


def test_values_of_json_are_texts_and_names_are_not() -> None:
    source = '{"a": "One", "b" : {"c": ["two \\"x\\"", 3, true]},\n\t"d": "\\ud800"}'
    document = opened(source, "json")
    assert document.texts == ("One", 'two "x"')
    rebuilt = document.rebuild(['Eins "1"\n', "zwei\\"]).decode()
    value = {"a": 'Eins "1"\n', "b": {"c": ["zwei\\", 3, True]}, "d": "\ud800"}
    assert json.loads(rebuilt) == value
    assert "\n\t" in rebuilt


def test_brackets_of_strings_do_not_count_as_depth() -> None:
    source = "[" * 500 + '"' + "[{" * 900 + '\\"[a"' + "]" * 500
    assert in_capitals(source, "json") == source.replace("a", "A")


@pytest.mark.parametrize("number", ["7" * 5_000, "-0." + "7" * 5_000, "1e999999", "NaN"])
def test_numbers_of_json_may_have_any_length(number: str) -> None:
    source = f'{{"a": {number}, "b": "One"}}'
    assert in_capitals(source, "json") == source.replace("One", "ONE")


def test_cells_are_texts_and_the_table_stays() -> None:
    source = 'id;text\r\n1;"a ""b""; c"\r\n2;\r\n"";d\r\n'
    document = opened(source, "csv")
    assert document.texts == ("id", "text", 'a "b"; c', "d")
    rebuilt = document.rebuild(["ID", 'Te"xt', "x", "e; f"]).decode()
    assert rebuilt == 'ID;"Te""xt"\r\n1;"x"\r\n2;\r\n"";"e; f"\r\n'
    rows = list(csv.reader(io.StringIO(rebuilt, newline=""), delimiter=";"))
    assert rows == [["ID", 'Te"xt'], ["1", "x"], ["2", ""], ["", "e; f"]]


@pytest.mark.parametrize("head", ["sep=;\r\n", '"sep=;"\n', "SEP=;\r"])
def test_a_line_that_tells_excel_the_separator_is_heeded_and_stays(head: str) -> None:
    source = f'{head}a, b, c;"d;e"\r\nf, g, h;i\r\n'
    assert opened(source, "csv").texts == ("a, b, c", "d;e", "f, g, h", "i")
    assert in_capitals(source, "csv") == head + source.removeprefix(head).upper()
    assert in_capitals("sep=^\na^b", "csv") == "sep=^\nA^B"


PROSE = "with commas, as prose has them, and more, " * 60


@pytest.mark.parametrize(
    "source",
    [
        "".join(f"{number};Text {'a, ' * number}{PROSE};End\n" for number in range(60)),
        "".join(f'{number};"{PROSE}\n{PROSE}";End\n' for number in range(60)),
        "name;text\n1;A text, with, commas\n2;a\vb, c, d, e\n3;a\u2028b\n",
        f'1;2;"{PROSE * 26}"\n',
        'size;name\n5" and 7;disk, box, case\n',
    ],
)
def test_what_separates_cells_is_told_by_whole_lines(source: str) -> None:
    document = opened(source, "csv")
    assert not any(";" in text for text in document.texts)
    assert document.rebuild(document.texts) == source.encode()


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("Hello world;1,5\nGood day;2,5\n", ["Hello world", "Good day"]),
        ("Hello world; 1,5\nGood day; 2,5\n", ["Hello world", "Good day"]),
        ("Hello, world;one\nGood, day;two\n", ["Hello, world", "one", "Good, day", "two"]),
        ("Item|Price, EUR\nTea|1,50\n", ["Item", "Price, EUR", "Tea"]),
        ("Item\tPrice,EUR\nTea\t1,50\n", ["Item", "Price,EUR", "Tea"]),
        ("1,Hello; bye\n2,Good; day\n", ["Hello; bye", "Good; day"]),
        ("a, b; c,d\ne, f; g,h\n", ["a", "b; c", "d", "e", "f; g", "h"]),
        ("1,2\n3,a\n", ["a"]),
    ],
)
def test_of_two_signs_in_every_line_one_that_is_no_part_of_a_cell_separates(
    source: str, texts: list[str]
) -> None:
    assert [one.strip() for one in opened(source, "csv").texts] == texts


def test_a_comma_of_a_translation_is_none_of_a_table_between_semicolons() -> None:
    rebuilt = opened("Hello world;1,5\nGood day;2,5\n", "csv").rebuild(["Hallo, Welt", "Na"])
    assert rebuilt == b"Hallo, Welt;1,5\nNa;2,5\n"


@pytest.mark.parametrize("text", ["sep=", "sep=ab\n", "a,sep=;\n"])
def test_what_only_looks_like_that_line_is_a_row(text: str) -> None:
    assert in_capitals(text, "csv") == text.upper()


@pytest.mark.parametrize(
    ("source", "kind", "translation", "written"),
    [
        ('He said "yes".', "tsv", 'Er sagte "ja".', 'Er sagte "ja".'),
        ('5" disk', "tsv", '"Disk"', '"""Disk"""'),
        ("yes", "tsv", 'das "Ja"', 'das "Ja"'),
        ("yes", "tsv", "a\tb", '"a\tb"'),
        ('"Yes," he said.', "tsv", '"Ja", sagte er.', '"Ja", sagte er.'),
        ('"Yes', "tsv", '"Ja', '"""Ja"'),
        ('"Yes"', "tsv", "Ja", '"Ja"'),
        ('"Yes\t""x"""', "tsv", '"Ja"\t', '"""Ja""\t"'),
        ('He said "yes".', "csv", 'Er sagte "ja".', 'Er sagte "ja".'),
        ("yes", "csv", 'das "Ja"', '"das ""Ja"""'),
    ],
)
def test_quotes_are_written_where_the_source_has_them_or_they_are_needed(
    source: str, kind: str, translation: str, written: str
) -> None:
    document = opened(f"{source}\n7\n", kind)
    assert document.rebuild(document.texts).decode() == f"{source}\n7\n"
    assert document.rebuild([translation]).decode() == f"{written}\n7\n"


@pytest.mark.parametrize("first", ['"a', '"a"', '"a" b', 'a "b"', '""a'])
@pytest.mark.parametrize("last", ['5" disk', 'c"'])
def test_translations_of_bare_cells_are_read_as_they_were_written(first: str, last: str) -> None:
    document = open_document(b'"Hello," he said\tfoo\nx\tthe 5"\n', "tsv")
    rebuilt = document.rebuild([first, "foo", "x", last])
    assert open_document(rebuilt, "tsv").texts == (first, "foo", "x", last)


def test_a_quote_may_begin_a_cell_between_tabs() -> None:
    source = '1\t"Yes," he said.\t"two\nlines"\n"a\t"b"\r\n'
    assert opened(source, "tsv").texts == ('"Yes," he said.', "two\nlines", '"a', "b")
    assert in_capitals(source, "tsv") == source.upper().replace('"A\t', '"""A"\t')
