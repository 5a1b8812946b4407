import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.text.marks import finding, leads, patterns
from model.text.marks.finding import find_marks, find_numbers, masked


def found(text: str) -> list[tuple[str, str]]:
    return [(text[mark.start : mark.end], mark.kind) for mark in find_marks(text)]


@pytest.mark.parametrize(
    ("mark", "kind"),
    [
        *((mark, "placeholder") for mark in ("{name}", "%s", "%(x)d", "%1$s", "${x}", "{{x}}")),
        *((mark, "placeholder") for mark in ("{}", "{0}", "%d", "%-5.2f", "%@", ":name", "%PATH%")),
        *((mark, "placeholder") for mark in ("{{ user.name }}", "%{count}", "$HOME", "{a.b[0]!r}")),
        ("{n, plural, one {# file} other {# files}}", "placeholder"),
        *((mark, "tag") for mark in ("<0>", "</0>", "<b>", "</b>", "<br/>", '<a href="x y">')),
        *((mark, "tag") for mark in ("<!-- no -->", "&amp;", "&#8364;", "<x1/>")),
        *((mark, "url") for mark in ("https://example.org/a?b=c#d", "www.example.org")),
        *((mark, "url") for mark in ("https://en.wikipedia.org/wiki/A_(b)", "example.com/a/b")),
        ("ftp://h/{id}/x", "url"),
        *(
            (mark, "url")
            for mark in ("https://example.cn/订单?id=88", "https://a.jp/日本/東京.html")
        ),
        ("https://ru.wikipedia.org/wiki/Домашняя_кошка", "url"),
        *((mark, "emoji") for mark in ("\0", "\x07", "\x1b[1;31m", "\u200f", "\u202b", "\u200b")),
        ("jo.doe+x@mail.example.org", "email"),
        *((mark, "address") for mark in ("192.168.0.1", "10.0.0.0/8", "127.0.0.1:8080", "fe80::1")),
        *((mark, "path") for mark in ("/usr/local/bin", "~/a.txt", "./run.sh", r"C:\Users\x")),
        *((mark, "path") for mark in ("config.yaml", "src/main.py", "../a/b")),
        *((mark, "code") for mark in ("`git push`", "``a ` b``", ":ref:`x <y>`", "--force")),
        *((mark, "code") for mark in ("snake_case_name", "ALLOW_UPLOADS=0", "0x80070005")),
        *((mark, "code") for mark in ("Ctrl+Shift+S", "Alt+F4", "<code>rm -rf /</code>")),
        *((mark, "code") for mark in ('<kbd class="k">Esc</kbd>', "<samp>no such file</samp>")),
        *((mark, "placeholder") for mark in ("%r", "%Y", "%-d")),
        *((mark, "url") for mark in ("sip:4711@voip.example.net", "<http://localhost:8080/>")),
        *((mark, "email") for mark in ("<jo@example.org>", "git@git.example.com:team/app.git")),
        *((mark, "path") for mark in ("Kündigung_2026.docx", "/home/zoë/a.txt")),
        *((mark, "address") for mark in ("db01.intern.example:5432", "localhost:8080")),
        *((mark, "address") for mark in ("+44 20 7946 0018", "+49 (0)30 1234567")),
        ("../../", "path"),
        *((mark, "mention") for mark in ("@0xbadcafe", "#1337", "#ff8800")),
        *(
            (mark, "time")
            for mark in (
                "00:01.000 --> 00:04.000",
                "00:00:01,000 --> 00:00:03,480 align:start position:10%",
                "2026-02-11T08:15:42.123Z",
                "2026-02-11T08:15+01:00",
                "2026-03-01 23:59:59",
            )
        ),
        *((mark, "word") for mark in ("AT&amp;T", "Q&amp;A", "Müller&amp;Söhne&amp;Co")),
        ("@name", "mention"),
        ("00:01.000", "time"),
        *((mark, "placeholder") for mark in ("<%= @user.name %>", "<?= $a->b ?>", "$t(a.b)")),
        *((mark, "placeholder") for mark in ("$(date +%F)", "%n", "%L1", "[[Berlin|city]]")),
        *((mark, "tag") for mark in ("{% if a > 1 %}", "{# no #}", "<% end %>", "[b]", "[/b]")),
        *((mark, "tag") for mark in ("[url=https://a.example/b]", "[^1]", "{\\an8}")),
        *((mark, "code") for mark in ("Ctrl-C", "⌘+C", "⌥⌘S", "v1.2.3-rc.1", "$E = mc^2$")),
        ('{"title": "Good morning", "count": 3}', "code"),
        *((mark, "code") for mark in ("*.txt", "src/**/*.ts", "*.{js,ts}")),
        ("550e8400-e29b-41d4-a716-446655440000", "code"),
        (r"HKEY_LOCAL_MACHINE\Software\Example", "path"),
        ("plan_final(2).docx", "path"),
        *((mark, "mention") for mark in ("<@U02ABCDEF>", "<#C02|general>", "<:wave:17>")),
        *((mark, "time") for mark in ("[14:02]", "[00:12.00]")),
        *((mark, "code") for mark in ("parse()", "obj.close()", "os.path.join(a, b)", "a::b(c)")),
        *((mark, "code") for mark in ("get_user_by_id()", "p->next()", "obj->close(a)")),
        ('os.open("a", mode=w + b)', "code"),
        (r"C:\Program Files\Example\app.ini", "path"),
        (r"C:\Program Files (x86)\Common Files\a.dll", "path"),
        (r"C:\Program Files\Visual Studio 2022\VC", "path"),
        (r"C:\Documents and Settings\All Users\a", "path"),
        ("anna-lena.o'neil@sub.example.org", "email"),
        *((mark, "email") for mark in ("jürgen.müller@web.de", "info@köln-messe.de")),
        ("Nov 02 08:15:01", "time"),
        *((mark, "emoji") for mark in ("™", "®", "©")),
        ("[!NOTE]", "tag"),
        *((mark, "emoji") for mark in (":+1:", r"¯\_(ツ)_/¯")),
        *((mark, "emoji") for mark in ("😀", "👨‍👩‍👧", "👍🏽", "🇩🇪", "3️⃣", "♥", "❤️")),
    ],
)
def test_a_mark_is_found_whole_wherever_it_stands(mark: str, kind: str) -> None:
    for text in (mark, f"Look at {mark} now.", f"请看 {mark} 吧", f"({mark})", f"It is {mark}."):
        assert (mark, kind) in found(text), text


@pytest.mark.parametrize(
    "text",
    [
        "Plain words, nothing else.",
        "He said: this is 100% sure; it costs $5 and/or 3.14 € at 10:30.",
        "a < b and c > d, 5 * 3 = 15, R&D, e.g. this, and so on ... maybe",
        "See chapter 3/4 (p. 12) — or not; the U.S. and 1,000.50.",
        "他说：“好！”，然后走了。",
        "Note:this is - well - no list",
        "It was--I think--fine.",
        "Well (see: below); it was 8:30 PM, 5+5 is 10, C++ and item:(a) and a/b.",
        "We met @ noon, bought 3 pairs and paid 50 %.",
        "You are # 5; x:y and B2B in 3D.",
        "It rose from $5 to $10 or by 5 * .5; she's in the '90s, not the '80s.",
        "An XD card, Alt-Country, a Win-win, 5 <30, [sic] and [1] in the dogs' house.",
        "ผม\u200bเห็น\u200bแม่น้ำ",
        "The file(s) and item(a) were read (twice) by us (me).",
        "On Nov 2 at 08:15 it's over; the cat's here.",
        "Das kostet 5 €/Monat, 12 £/Nacht, 50 %/Jahr, 3 m³/Tag und 2 °/min.",
        "Café/Bar, Achtung :gefährlicher Hund, über#all.",
    ],
)
def test_language_has_no_marks(text: str) -> None:
    assert find_marks(text) == []


def test_a_chinese_sentence_may_go_on_behind_an_address() -> None:
    for text in (
        "请打开https://example.cn/。",
        "见https://example.cn/查看详情。",
        "https://a.cn/看，",
        "https://a.cn/看了又看。",
    ):
        assert next(mark for mark, _ in found(text)).isascii(), text


def test_a_word_between_a_slash_and_a_stop_is_of_the_address() -> None:
    assert found("请访问https://example.com/帮助。") == [("https://example.com/帮助", "url")]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (r"请打开 C:\Temp\a.txt，然后保存。", r"C:\Temp\a.txt"),
        (r"把它放在（D:\备份\旧）里。", r"D:\备份\旧"),
        (r"\\server\share\a.txt、另一个", r"\\server\share\a.txt"),
        (r"Öffnen Sie „C:\Temp\a.txt“ bitte.", r"C:\Temp\a.txt"),
        (r"删掉 HKLM\Software\X。", r"HKLM\Software\X"),
    ],
)
def test_a_path_of_windows_ends_where_its_sentence_goes_on(text: str, path: str) -> None:
    assert [text[mark.start : mark.end] for mark in find_marks(text)] == [path]


def test_a_space_is_of_a_path_only_where_a_backslash_follows_its_words() -> None:
    assert found(r"Copy C:\Users\Public Files\a.docx to D:\Backup now") == [
        (r"C:\Users\Public Files\a.docx", "path"),
        (r"D:\Backup", "path"),
    ]
    assert found(r"Open C:\Temp and \\server\share") == [
        (r"C:\Temp", "path"),
        (r"\\server\share", "path"),
    ]


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        (r"Replace C:\Users with %USERPROFILE%\Documents.", [r"C:\Users", "%USERPROFILE%"]),
        (r"Copy C:\a.txt to ..\backup now", [r"C:\a.txt"]),
        (r"Copy C:\a.txt Into\there", [r"C:\a.txt"]),
        (r"Use C:\Temp or HKLM\Software", [r"C:\Temp", r"HKLM\Software"]),
        (r"Use C:\Temp HKLM\Software", [r"C:\Temp", r"HKLM\Software"]),
    ],
)
def test_a_path_of_windows_swallows_no_word_of_its_sentence(text: str, marks: list[str]) -> None:
    assert [mark for mark, _ in found(text)] == marks


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("使用Vue.js(一种前端框架)开发", ("Vue.js", "path")),
        ("Node.js(a runtime) is popular", ("Node.js", "path")),
        ("Visit example.com(our site) today", ("example.com", "url")),
    ],
)
def test_words_in_brackets_behind_a_name_are_no_code(text: str, mark: tuple[str, str]) -> None:
    assert found(text) == [mark]


@pytest.mark.parametrize(
    "text", ["l'adresse d'info@example.com", "Scrivi all'info@example.com", "À L’info@example.com"]
)
def test_an_elided_word_is_not_of_the_address_behind_it(text: str) -> None:
    assert found(text) == [("info@example.com", "email")]


def test_signs_that_end_a_sentence_are_not_of_its_address() -> None:
    assert found("See https://a.example/b. And (www.b.example), a.txt!") == [
        ("https://a.example/b", "url"),
        ("www.b.example", "url"),
        ("a.txt", "path"),
    ]
    assert found("https://a.example看看") == [("https://a.example", "url")]


def test_lines_begin_with_leads_and_tables_have_cells() -> None:
    text = "# Title\n- [x] item\n  > quote\n| a | b |\n|---|:-:|\n"
    kinds = [kind for _, kind in found(text)]
    assert kinds == ["lead", "lead", "lead", "cell", "cell", "cell", "cell"]
    assert found(text)[1][0] == "- [x] "


def test_markup_is_found_around_words() -> None:
    text = "A **bold** _word_ and [a link](https://a.example/b_(c)), but 5 * 3 and snake_case."
    assert [mark for mark, kind in found(text) if kind == "markup"] == [
        *("**", "**", "_", "_", "[", "](https://a.example/b_(c))")
    ]
    assert found("The '''river''' of [a paper][2] (see [1]).") == [
        *((mark, "markup") for mark in ("'''", "'''", "[", "][2]"))
    ]
    assert found("[2]: https://a.example/b")[0] == ("[2]:", "tag")


def test_a_fenced_block_is_one_mark_over_its_lines() -> None:
    block = "```python\nprint('a. B')\n\n# c\n```"
    assert found(f"Run:\n\n{block}\nDone.") == [(block, "code")]


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("1. ```sh\n   open\n   ```\n2. Go.", ["1. ", "```sh\n   open\n   ```", "2. "]),
        ("- a\n  - ```\n    b\n    ```\n", ["- ", "  - ", "```\n    b\n    ```"]),
        ("> ```py\n> run\n> ```\n> Done", ["> ", "```py\n> run\n> ```", "> "]),
        ("```\nopen\n```py\nnow\n``` \nDone", ["```\nopen\n```py\nnow\n``` "]),
        ("~~~\n```\n- ~~~\n~~~~\nDone", ["~~~\n```\n- ~~~\n~~~~"]),
        ("Run:\n```\nopen the\n\nbox\n", ["```\nopen the\n\nbox"]),
        ("1. A\n```\n7. x\n```\n2. B", ["1. ", "```\n7. x\n```", "2. "]),
        ("3. May\n```\n1. x\n2. y\n```", ["```\n1. x\n2. y\n```"]),
    ],
)
def test_a_fence_may_be_in_a_list_or_a_quotation_and_ends_by_one_with_nothing_behind(
    text: str, marks: list[str]
) -> None:
    assert [mark for mark, _ in found(text)] == marks


def test_numbers_are_found_with_what_groups_them() -> None:
    text = "1,000.50 € at 10:30, 1/2 or 1’000; v2"
    numbers = [text[number.start : number.end] for number in find_numbers(text)]
    assert numbers == ["1,000.50", "10:30", "1/2", "1’000", "2"]


def test_codes_are_numbers_as_wholes_and_words_with_a_digit_are_none() -> None:
    text = "A-99812-XZ, XK7Q2M, CVE-2025-31337 and 9f1c2ab; the 3rd of 90s mp3, H2O, 10pm, A4."
    numbers = [text[number.start : number.end] for number in find_numbers(text)]
    assert numbers[:4] == ["A-99812-XZ", "XK7Q2M", "CVE-2025-31337", "9f1c2ab"]
    assert numbers[4:] == ["3", "90", "3", "2", "10", "4"]


def test_a_smile_is_an_emoji_where_it_ends_nothing() -> None:
    for smile in (":)", ";-)", ":-D", ":'(", "<3", "^^", "^_^"):
        assert found(f"See you {smile} or not") == [(smile, "emoji")]
        assert (smile, "emoji") in found(f"or not {smile}")
    assert found("a list (of 2:) and f(x;) in C") == []


def test_a_mention_without_ascii_ends_with_a_space() -> None:
    assert found("我带上@小李 去") == [("@小李", "mention")]
    assert found("请联系@张三并告诉他。") == []


PIECES = st.lists(
    st.sampled_from(
        [
            *"{}%$<>`@#:/\\.*_~|[]()&;-=+ \n\tA1é中😀",
            *("http://", "{{", "www.", "&#", "::", "a.b", "0x", "Alt", "T08", "--", "sip:", "tel:"),
            *("<%", "%}", "{%", "[b", "v1.", "^", "<3", "''", "HKLM", "⌘", "¯", "Ctrl-"),
            *(
                "\n1",
                "\n①",
                "\n·",
                "\n→",
                "\n一",
                "\n（",
                "\nA. ",
                "\ni",
                "、",
                "）",
                "．",
                "●",
                "\u3000",
            ),
        ]
    ),
    max_size=40,
).map("".join)


@given(PIECES)
@settings(max_examples=150, deadline=None)
def test_marks_are_in_order_and_masking_keeps_all_that_is_outside(text: str) -> None:
    marks = find_marks(text)
    edges = [place for mark in marks for place in (mark.start, mark.end)]
    assert edges == sorted(edges)
    assert all(mark.start < mark.end for mark in marks)
    hidden = masked(text, marks)
    assert len(hidden) == len(text)
    inside = {place for mark in marks for place in range(mark.start, mark.end)}
    assert all(hidden[i] == c for i, c in enumerate(text) if i not in inside)


@given(PIECES)
@settings(max_examples=300, deadline=None)
def test_what_gives_no_hint_of_a_mark_has_none(text: str) -> None:
    text = text.replace("](", "] (")  # the end of a link is none without its beginning
    if patterns.HINT.search(text) is None:
        assert not list(finding._all_marks(text))


def test_no_pattern_can_try_again_without_bound() -> None:
    parser = re._parser  # type: ignore[attr-defined]
    limit = 201

    def unbounded(tree: object) -> list[str]:
        bad = []
        for operation, value in tree:  # type: ignore[attr-defined]
            name = str(operation)
            if name in ("MAX_REPEAT", "MIN_REPEAT") and value[1] > limit:
                bad.append(name)
            children = value if isinstance(value, (tuple, list)) else ()
            for child in children:
                for one in child if isinstance(child, list) else [child]:
                    if isinstance(one, parser.SubPattern):
                        bad += unbounded(one)
        return bad

    own = [*vars(patterns).values(), *vars(leads).values()]
    all_of = [one for one in own if isinstance(one, re.Pattern)]
    assert len(all_of) >= 10
    assert [p.pattern for p in all_of if unbounded(parser.parse(p.pattern, p.flags))] == []
    assert unbounded(parser.parse("(?:a|b(?:c*)d)")) == ["MAX_REPEAT"]


@pytest.mark.parametrize(
    "part",
    [
        *("a", "{", "{a}", "%", "<", "<a", "<a ", "`", "``", "@", "a@", "a.", "a/", "/", "[", "]("),
        *(":", "::", "1:", "1.", "_", "a_", "*", "**", "|", "| ", "# ", "> ", "- ", "😀", "\u200d"),
        *("http://", "http://(", "www.", "&a", "&#1", "\\", "C:\\", "```\n", "~~~ \n", "--a"),
        "😀\u200d",
        *(
            "<%",
            "<%= ",
            "{%",
            "{% ",
            "[b",
            "[^",
            "$",
            "$a",
            "$a_ ",
            "'",
            "a/",
            "a-",
            "*.",
            "*/",
            "a(",
        ),
        *(
            "C:\\a ",
            "C:\\a \\",
            "a'",
            "a.b",
            "a::",
            "a->b(",
            "a.a(b ",
            "C:\\A ",
            "C:\\A B ",
            "()",
            "a.a(",
            "Nov 02 ",
            "©",
            "™",
            "[!",
        ),
        *(
            "一、",
            "①",
            "（一）",
            "1）",
            "·",
            "→ ",
            "●",
            "A. \n",
            "B. a\n",
            "A. a\n",
            "①\n",
            "1、\n",
            "\u3000",
        ),
        *("· ", "[ ] ", "- a) ", "1.", "a) ", "iv", "①、"),
        *("https://a.cn/帮", "a)\n", "(a) ", "i. \n"),
        *("v1.", "HKLM\\", "HKLM\\a", "<@", "[1:", "Ctrl-", "⌘", "[[", "[a][", "1a2b-", '{"a": '),
    ],
)
def test_a_long_line_of_anything_is_read_once(part: str) -> None:
    # Ten thousand repetitions end within the test's time only if the work grows with the text.
    text = part * 10_000
    assert all(mark.end <= len(text) for mark in find_marks(text))
