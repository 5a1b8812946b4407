r"""Patterns of marks, and of numbers and codes.

Owns what is a mark, kind by kind: placeholders (`{name}`, `%s`, `:name`) and statements of
templates, addresses (URLs, e-mail, IP, telephone), paths and names of files, code and calls, times
of subtitles and logs, tags, light markup, emoji. What lines begin with is `model.text.marks.leads`,
how they are searched for `model.text.marks.finding`.

Every repetition is possessive or bounded and every look around has a fixed reach, so a pattern
gives up where it stands instead of trying again; what may be long begins only where a run of its
characters begins. So no input makes it slow.
"""

import re
from typing import Literal

from model.text.languages.scripts import UNSPACED_LETTERS
from model.text.marks.inline_codes import LOOSE_CODES, WORD_CODES
from model.text.marks.leads import LEAD_HINT

Kind = Literal[
    "code",
    "placeholder",
    "url",
    "email",
    "address",
    "path",
    "mention",
    "time",
    "number",
    "clock",
    "word",
    "term",
    "tag",
    "markup",
    "emoji",
    "cell",
    "lead",
]
"""What a mark is. A "word" has characters that a vocabulary cannot write; a "term" is one of a
glossary; a "cell" divides a line
of a table; a "lead" is what a line of a list, a heading or a quotation begins with."""

_EMOJI_BASE = "[\u231a-\u23ff\u2600-\u27bf\u2b1b-\u2b55\U0001f000-\U0001f1e5\U0001f200-\U0001faff]"
_EMOJI_TAIL = "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
_EMOJI = (
    rf"(?:[\U0001f1e6-\U0001f1ff]{{1,2}}|[0-9#*]\ufe0f?\u20e3"
    rf"|[\u00a9\u00ae\u2122]\ufe0f?|[\u203c\u2049\u2139\u2194-\u21aa\u24c2\u25aa-\u25fe\u2934\u2935\u2b05-\u2b07\u3030\u303d\u3297\u3299]\ufe0f"
    rf"|{_EMOJI_BASE}{_EMOJI_TAIL}{{0,8}}(?:\u200d[^\s\w]{_EMOJI_TAIL}{{0,8}}){{0,8}})"
)
# What nobody sees and most vocabularies lose: control characters, marks of direction, a joiner of
# words and a space without width, but where a script has it between all its words.
_INVISIBLE = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
)
_CONTROL = (
    rf"\x1b\[[0-9;?]{{0,20}}[A-Za-z]|[{_INVISIBLE}]"
    rf"|(?<![{UNSPACED_LETTERS}])\u200b"
)
_LATIN = "\u00c0-\u024f"
"""Letters of Latin beyond ASCII: words and addresses of Europe go on with them."""
_URL_CHARACTER = f"[A-Za-z0-9{_LATIN}_.~!$&'*+,;=:@%/?#-]"
# Letters of other scripts belong to an address where it goes on or ends behind them: in Chinese a
# sentence may go on without a space.
_URL_LETTERS = (
    r"(?<=[/=_.?&+,-])[^\W\x00-\x7f]{1,60}+(?=[/?&=#._-]\w|[.,;:!?]{0,3}(?:\s|$|[)\]>\"']))"
)
# A word or two between a slash and a stop, which is no sentence yet.
_URL_LAST_LETTERS = r"(?<=/)[\u3400-\u9fff]{2,3}+(?=[。，、；！？）」』])"
_URL_REST = (
    rf"(?:{_URL_CHARACTER}|{_URL_LETTERS}|{_URL_LAST_LETTERS}"
    r"|\([A-Za-z0-9_.~!$&'*+,;=:@%/?#-]{0,200}\)"
    r"|\[[^\s\[\]]{0,100}\]|\{[\w.]{0,60}\})++"
)
_WORD = "[A-Za-z_][A-Za-z0-9_]{0,60}+"
_NAME = f"[A-Za-z0-9{_LATIN}_-]{{1,64}}+"
# What ends a path of Windows, in which any letter may stand: space, and signs that names lack.
_PATH_ENDS = "\\s\"'`<>|?*,;()，。、；：！？（）「」『』《》【】“”„‘’«»"
# Program Files (x86)\\: words before the next backslash are of the path where each begins as a name
# does, no ending is before them (a.txt) and no key of the registry begins.
_PATH_WORD = rf"(?!HK)[A-Z0-9\u00c0-\u00de][^{_PATH_ENDS}\\:]{{0,40}}+"
_NO_ENDING = "".join(rf"(?<!\.[A-Za-z][A-Za-z0-9]{{{num}}})" for num in range(4))
_PATH_SPACE = (
    rf"{_NO_ENDING}[ ](?=(?:{_PATH_WORD}[ ]){{0,2}}(?:{_PATH_WORD}|\(x86\))\\(?!\\))"
    r"|[ ](?=and[ ]Settings\\)|\(x86\)(?=\\)"
)
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CUE_TIME = r"\d{1,3}:\d\d(?::\d\d)?[.,]\d{1,3}"
_KEY_SIGNS = "\u2303\u2318\u2325\u21e7"
_FORUM = r"(?:b|i|u|s|url|img|quote|code|color|size|list|center|spoiler|\*)"
_KEY = "(?:Ctrl|Strg|Alt|Shift|Umschalt|Cmd|Option|Win|Super|Meta|Fn)"
# What is inside these is no language, where they stand in a plain text.
_CODE_ELEMENTS = "|".join(
    rf"<{name}(?:\s[^<>\n]{{0,200}})?>[^<>\n]{{0,500}}+</{name}>"
    for name in ("code", "kbd", "samp")
)


def _nested(depth: int) -> str:
    """What is between two braces, with braces in it so many deep."""
    inner = rf"(?:\{{{_nested(depth - 1)}\}}[^{{}}\n]*+)*+" if depth else ""
    return rf"[^{{}}\n]*+{inner}"


# Around marks only ASCII goes on (`(?a:…)`), and Latin where words of Europe would be cut: Chinese
# and Japanese have no space before and behind.
PATTERNS: tuple[tuple[Kind, str], ...] = (
    # what templates fill in; their statements are tags
    ("placeholder", r"<[%?]=(?:[^%?<>\n]|[%?](?!>)|>(?<=[-=]>)){1,200}+[%?]>"),
    # ```code```, ``code``, `code`, :role:`code`, and ``` alone
    (
        "code",
        (
            r"(?<!`)(?:```[^`\n]++```(?!`)|`{3,}+)"
            r"|(?::[a-z][\w.+:-]{0,40}:)?(?:``[^`\n]++(?:`[^`\n]++)?``|(?<!`)`[^`\n]++`(?!`))_{0,2}"
            rf"|{_CODE_ELEMENTS}"
        ),
    ),
    # AT&amp;T, which is one word however it is written
    (
        "word",
        (
            rf"(?a:(?<!\w))[A-Za-z0-9{_LATIN}]{{1,30}}+(?:&amp;[A-Za-z0-9{_LATIN}]{{1,30}}+){{1,4}}"
            r"(?a:(?!\w))"
        ),
    ),
    (
        "tag",
        (
            r"</?[A-Za-z][\w:.-]*+(?:\s[^<>\n]*+)?/?>|</?\d{1,4}\s?/?>|<![^<>\n]*+>|<\?[^<>\n]*+>"
            r"|\{%[^%{}\n]{1,200}+%\}|\{#[^\#{}\n]{1,200}+\#\}|<%(?:[^%<>\n]|>(?<=[-=]>)){1,200}+%>"
            # [b]…[/b] of forums, [^1] and [1]: of notes, {\\an8} of subtitles
            rf"|\[/?{_FORUM}(?:=[^\[\]\n]{{1,200}}+)?\]|\[\^[\w-]{{1,40}}\]:?"
            r"|\[!(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]"
            r"|(?m:^)\[[\w. -]{1,60}\]:(?=\s)|\{\\[^{}\n]{1,60}\}"
            r"|&(?:#\d{1,7}|\#x[0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
            rf"|{LOOSE_CODES}"
        ),
    ),
    (
        "code",
        (
            # {"title": "…", "count": 3}
            r"\{\s?\"[\w.$-]{1,60}\"\s?:[^{}\n]{1,400}+\}|"
            # $E = mc^2$
            r"(?a:(?<![\w$\\]))\$(?=[^\s${])(?=[^$\n]{0,200}[\\^_={])[^$\n]{1,200}(?<!\s)\$(?a:(?![\w${]))"
            # v1.2.3-rc.1, 550e8400-e29b-41d4-a716-446655440000
            r"|(?a:(?<![\w.-]))[vV]\d{1,4}(?:\.\d{1,5}){1,3}(?:[+-][A-Za-z0-9.]{0,20}[A-Za-z0-9])?"
            r"(?a:(?![\w/]|\.\w))"
            r"|(?a:(?<![\w-]))[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?a:(?![\w-]))"
        ),
    ),
    (
        "placeholder",
        (
            # {{x}}, ${x}, #{x}, %{x}, and of ICU {n, plural, one {…} other {…}}
            r"\{\{[^{}\n]{1,100}\}\}|[$#%]\{[^{}\n]{1,100}\}"
            rf"|\{{[\w.-]{{1,60}},\s?(?:plural|select|selectordinal|number|date|time)\b{_nested(4)}\}}"
            r"|\{\s?[\w.$\#@:!|,\[\]()'\"*<>=^+-]{0,60}\s?\}|\[\[[\w. |\#:/-]{1,80}\]\]"
            # %(x)d, %1$s, %-5.2f, %<x>s, %PATH%, %%, 100%%, %Y-%m-%d
            r"|%\(\w{1,60}\)[\#0+-]{0,3}\d{0,3}(?:\.\d{1,3})?[A-Za-z]|%<\w{1,60}>[A-Za-z]?"
            r"|(?<![\d%])%[A-Za-z_]\w{1,60}%"
            r"|(?<![\d%])%(?:\d{1,2}\$)?[\#0+-]{0,3}(?:\d{1,3}|\*)?(?:\.(?:\d{1,3}|\*))?"
            r"(?:hh|h|ll|l|L|z|j|t|q)?[@diouxXeEfFgGcspr](?![A-Za-z]{3})"
            r"|(?a:(?<![\w.,%]))\d{1,9}+(?:[.,]\d{1,9}+){0,3}+[ \u00a0\u202f]?%%|%%"
            r"|(?<![\d\w%])%\d{1,2}(?!\d)"
            r"|(?<![\d%])%(?:[-\#]?[aAbBHIjmMpSyYZn]|L\d{1,2})(?![A-Za-z])"
            r"|(?a:(?<![\w$]))\$(?:[A-Za-z_][A-Za-z0-9_]{0,60}+(?:\([^()\n]{0,100}\))?|\([^()\n]{1,100}\))"
            rf"|(?<![A-Za-z0-9_{_LATIN}:/)\]]):[A-Za-z_][A-Za-z0-9_]{{0,60}}+(?::|(?![{_LATIN}]))"
            r"|__[A-Za-z0-9]\w{0,60}__"
        ),
    ),
    # parse(), obj.close(), os.path.join(a, b): with words inside only behind a stop or a colon,
    # because a file(s) is none, and without two of them side by side: Node.js(a runtime)
    (
        "code",
        (
            rf"(?a:(?<![\w.@/])){_WORD}\(\)|(?a:(?<![\w.@/])){_WORD}(?:(?:\.|::|->){_WORD}){{1,8}}+"
            r"\((?:[!-'*-~]|[ ](?!(?<=\w[ ])\w)){0,80}+\)"
        ),
    ),
    (
        "url",
        (
            rf"(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+]{{1,12}}://|[wW]{{3}}\.(?=\w)"
            rf"|(?:mailto|tel|sips?):(?=[+\w])){_URL_REST}"
        ),
    ),
    (
        "email",
        (
            # d'info@example.org is a word before an address
            rf"(?<![A-Za-z0-9_{_LATIN}.+%-])(?!(?i:[dlnsmtcj]|(?:jus|lors|puis)?qu|all|dall|dell|nell|sull)['’])"
            rf"[A-Za-z0-9_{_LATIN}.+%-]{{1,64}}+(?:['’][A-Za-z0-9_{_LATIN}.+%-]{{1,40}}+){{0,2}}+"
            rf"@[A-Za-z0-9{_LATIN}-]{{1,63}}+(?:\.[A-Za-z0-9{_LATIN}-]{{1,63}}+){{1,6}}+"
            # git@host:team/app.git
            r"(?::[A-Za-z0-9_~][A-Za-z0-9_.~-]{0,60}/[A-Za-z0-9_./~-]{1,200}+)?"
        ),
    ),
    (
        "time",
        (
            # 00:01.000 --> 00:04.000 align:start; 00:01.000; 2026-03-14T15:09:26Z
            rf"(?a:(?<![\w:.,])){_CUE_TIME}[ \t]{{1,4}}-->[ \t]{{1,4}}{_CUE_TIME}"
            r"(?:[ \t]{1,4}[a-z]{1,12}:[A-Za-z0-9%,.-]{0,39}[A-Za-z0-9%]){0,8}(?a:(?![\w:]))"
            rf"|(?a:(?<![\w:.,])){_CUE_TIME}(?a:(?![\w:]))"
            # Nov 02 08:15:01
            rf"|(?a:(?<!\w)){_MONTH}[ ]{{1,2}}\d{{1,2}}[ ]\d\d:\d\d:\d\d(?a:(?![\w:]))"
            # [14:02], [00:12.00]
            r"|\[\d{1,3}:\d\d(?::\d\d)?(?:[.,]\d{1,3})?\]"
            r"|(?a:(?<![\w:.-]))\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
            r"(?:Z|[+-]\d\d:?\d\d)?|[ ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?a:(?![\w:]))"
        ),
    ),
    (
        "address",
        (
            r"(?a:(?<![\w.:]))(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5}|/\d{1,2})?(?a:(?!\w|\.\w))"
            r"|(?a:(?<![\w:.]))(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}(?:/\d{1,3})?(?a:(?![\w:]))"
            r"|(?a:(?<![\w:.]))(?:[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){0,6})?::"
            r"(?:[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){0,6})?(?:/\d{1,3})?(?a:(?![\w:]))"
            r"|(?a:(?<![\w:.-]))[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}(?a:(?![\w:-]))"
            # a host with its port; +44 20 7946 0018
            r"|(?a:(?<![\w.:@/-]))(?:localhost|(?:[A-Za-z0-9-]{1,63}+\.){1,6}[A-Za-z]{2,24}+):\d{2,5}"
            r"(?a:(?![\w.:]\w|\w))"
            r"|(?a:(?<![\w+]))\+\d{1,3}(?:[ .()/-]{1,2}\d{1,10}+){2,6}(?a:(?!\w))"
        ),
    ),
    (
        "path",
        (
            rf"(?<!\w)HK(?:EY_[A-Z_]{{4,20}}|LM|CU|CR|U)\b(?:\\[^{_PATH_ENDS}\\]{{1,60}}+){{1,12}}+"
            rf"|(?<![A-Za-z0-9])[A-Za-z]:\\(?:[^{_PATH_ENDS}]|{_PATH_SPACE})*+|\\\\{_NAME}\\[^{_PATH_ENDS}]++"
            # not the second half of a price (5 €/Monat) or an amount (3 m³/Tag)
            rf"|(?<![A-Za-z0-9_{_LATIN}/.~<>)\]€$£¥%‰°²³-])(?:~|\.{{1,2}})?/\.?[A-Za-z0-9{_LATIN}_@+~{{]"
            rf"[A-Za-z0-9{_LATIN}_.@+~{{}}*-]*+(?:/[A-Za-z0-9{_LATIN}_.@+~{{}}*-]++)*+/?"
            rf"|(?<![A-Za-z0-9_{_LATIN}./\\@-]){_NAME}\(\d{{1,3}}\)\.[a-z0-9]{{2,5}}(?a:(?!\w))"
            rf"|(?<![A-Za-z0-9_{_LATIN}./\\@-])\.?{_NAME}(?:(?:/\.?|\.){_NAME})++/?"
            r"|(?a:(?<![\w./\\]))(?:\.{1,2}/){2,9}+(?a:(?!\w|/|\.[\w./]))"
        ),
    ),
    (
        "code",
        (
            # --option, -o behind a wall, snake_case, SNAKE_CASE=1, \n, 0x7F, Ctrl+S, ⌘S
            r"(?a:(?<![\w-]))--[A-Za-z][A-Za-z0-9_-]{0,60}(?:=[A-Za-z0-9_./-]{1,60})?"
            r"|(?:(?<=\|)|(?<=\|[ \t]))-[A-Za-z](?a:(?![\w-]))"
            r"|(?<!\w)[A-Za-z0-9]{1,60}+(?:_[A-Za-z0-9]{1,60}+){1,20}"
            r"(?:=[A-Za-z0-9_./-]{0,60}[A-Za-z0-9_/-])?(?!\w)"
            r"|\\[nrtN](?![a-z])"
            r"|(?a:(?<!\w))0[xX][0-9A-Fa-f]{2,16}(?a:(?!\w))"
            rf"|(?a:(?<![\w+])){_KEY}(?:(?:\+[A-Z0-9][A-Za-z0-9]{{0,11}}){{1,3}}|-[A-Z0-9])(?a:(?!\w))"
            rf"|[{_KEY_SIGNS}]{{1,4}}\+?(?:[A-Z0-9](?a:(?!\w)))?"
            # *.txt, src/**/*.ts
            r"|(?a:(?<![\w*/.\\]))(?:[A-Za-z0-9_-]{1,60}+/){0,6}+\*{1,2}(?:[/.](?=[A-Za-z*{])"
            r"[A-Za-z0-9_.*{},-]{0,60}[A-Za-z0-9*}]){1,6}"
        ),
    ),
    (
        "mention",
        (
            rf"(?<![A-Za-z0-9_{_LATIN}@.])@[A-Za-z_][A-Za-z0-9_-]{{0,60}}"
            rf"|(?<![A-Za-z0-9_{_LATIN}#&])\#[A-Za-z_][A-Za-z0-9_-]{{1,60}}"
            # <@U02ABC> <#C02|general> <:name:123> of chats
            r"|<(?:[@\#]|@[!&]|a?:)[\w|:.-]{1,80}>"
            # @0xbadcafe; @小李, which only a space can end; #1337, #ff8800
            r"|(?a:(?<![\w@.]))@(?=\d{1,20}[A-Za-z_])\d[A-Za-z0-9_-]{5,60}"
            r"|(?a:(?<![\w@.]))@[^\W\x00-\x7f]{1,20}+(?=\s|$)"
            r"|(?a:(?<![\w#&/]))\#(?:\d{1,9}|[0-9A-Fa-f]{6})(?a:(?!\w|[.,]\d))"
        ),
    ),
    (
        "markup",
        (
            r"!?\[(?=[^\[\]\n]{1,200}\](?:\(|\[[\w. -]{1,40}\]))|\]\[[\w. -]{1,40}\]"
            r"|(?<!')'{2,5}(?!')|\]\([^()\s]*+(?:\([^()\s]*+\)[^()\s]*+)*+\)"
            r"|\*{1,3}(?=[^\s*])|(?<=[^\s*])\*{1,3}|~~|(?<!\w)_{1,2}(?=[^\W_])|(?<=[^\W_])_{1,2}(?!\w)"
        ),
    ),
    ("emoji", rf"{_EMOJI}++"),
    (
        "emoji",
        (
            r"(?a:(?<![\w:;.]))[:;]'?-?[)(DP|](?a:(?![\w()]))|(?a:(?<![\w:])):[+-]1:"
            r"|(?a:(?<!\S))(?:</?3|\^_{0,3}\^)(?a:(?![^\s.,!?]))|¯\\_\(ツ\)_/¯"
        ),
    ),
    ("emoji", _CONTROL),
    ("code", WORD_CODES),
)
MARK = re.compile(
    "|".join(f"(?P<{kind}_{index}>{pattern})" for index, (kind, pattern) in enumerate(PATTERNS))
)
# Whether there can be a mark at all: most texts have none, and this is all that they pay.
HINT = re.compile(
    # what no mark begins with is passed over at a glance
    r"(?=[^\w ,]|[_0])(?:"
    r"[+{%$<&`@#\u00a9\u00ae\u2122\\*_~\[|]|[./](?<=\w.)\.?\w|/(?<!\w/)[\w.]|[:;][\w/:)(|'-]|''|\(\)|\)\.[a-z0-9]"
    r"|-(?:-[A-Za-z]|>[A-Za-z_]|[0-9A-Fa-f]{4}-|[0-9A-Fa-f]{2}-|[A-Z0-9](?a:(?!\w)))|0[xX][0-9A-Fa-f]"
    rf"|[¯^{_KEY_SIGNS}{_INVISIBLE}\u200b\u20e3\ufe0f\u231a-\u23ff\u2600-\u27bf\u2b1b-\u2b55"
    r"\U0001f000-\U0001faff\U00100000-\U0010fffd])"
    rf"|(?m:{LEAD_HINT})"
)
TABLE_LINE = re.compile(r"^[ \t]*+\|[^\n]*+$", re.MULTILINE)
# A wall, with the cells behind it that are empty or a line (:-:).
CELL = re.compile(r"(?<![ \t])[ \t]*+\|(?:[ \t]*+(?::?-++:?[ \t]*+)?\|)*+[ \t]*+")
# The signs of a fence, of a list or a quotation before it, and what it says of its code.
FENCE = re.compile(
    r"^(?P<lead>(?:[ \t]{0,12}+(?:>|(?:[-+*]|\d{1,3}[.)])(?=[ \t]))){0,6}+)[ \t]{0,12}+"
    r"(?P<fence>`{3,20}+|~{3,20}+)(?P<info>[^`\n]*+)$",
    re.MULTILINE,
)
NUMBER = re.compile(r"\d++(?:[.,:/'’\u00a0\u202f-]\d++)*+")
# A-99812-XZ, XK7Q2M, 9f1c2ab: what names a thing, and is no amount of anything.
CODE = re.compile(
    r"(?a:(?<![\w-]))(?:(?=(?:[A-Z-]{0,20}\d){2})[A-Z][A-Z0-9]{0,30}+(?:-[A-Z0-9]{1,30}+){0,6}+"
    r"|(?=[a-f]{0,8}\d)(?=\d{0,8}[a-f])[0-9a-f]{7,40}+)(?a:(?![\w-]))"
)
