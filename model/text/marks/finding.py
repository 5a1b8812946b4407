r"""Marks: what stands in a text and is not language, found by one pass of rules in linear time.

Owns where marks are and of which kind: placeholders (`{name}`, `%s`, `:name`), addresses (URLs,
e-mail, IP, telephone), paths and names of files, code, times of subtitles and logs, tags, light
markup, emoji; and numbers, with codes that are made of capitals and digits. It answers with spans
and changes nothing. How a mark comes through a network is `model.text.marks.carrying`.

Every repetition is possessive or bounded and every look around has a fixed reach, so a pattern
gives up where it stands instead of trying again; what may be long begins only where a run of its
characters begins. So no input makes it slow.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from model.text.marks.inline_codes import ANY_CODE, LOOSE_CODES, WORD_CODES, is_loose

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

LOOSE_KINDS: frozenset[Kind] = frozenset({"tag", "markup", "emoji"})
"""Kinds that stand beside words and are no word of the sentence."""
EDGE_KINDS: frozenset[Kind] = frozenset({"lead", "cell"})
"""Kinds that no sentence goes across."""

_EMOJI_BASE = "[\u231a-\u23ff\u2600-\u27bf\u2b1b-\u2b55\U0001f000-\U0001f1e5\U0001f200-\U0001faff]"
_EMOJI_TAIL = "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
_EMOJI = (
    rf"(?:[\U0001f1e6-\U0001f1ff]{{1,2}}|[0-9#*]\ufe0f?\u20e3"
    rf"|[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u25aa-\u25fe\u3030\u303d\u3297\u3299]\ufe0f"
    rf"|{_EMOJI_BASE}{_EMOJI_TAIL}{{0,8}}(?:\u200d[^\s\w]{_EMOJI_TAIL}{{0,8}}){{0,8}})"
)
# What nobody sees and most vocabularies lose: control characters, marks of direction, a joiner of
# words and a space without width, but where a script has it between all its words.
_INVISIBLE = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
)
_CONTROL = (
    rf"\x1b\[[0-9;?]{{0,20}}[A-Za-z]|[{_INVISIBLE}]"
    r"|(?<![\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff])\u200b"
)
_URL_CHARACTER = "[A-Za-z0-9\u00c0-\u024f_.~!$&'*+,;=:@%/?#-]"
# Letters of other scripts belong to an address where it goes on or ends behind them: in Chinese a
# sentence may go on without a space.
_URL_LETTERS = (
    r"(?<=[/=_.?&+,-])[^\W\x00-\x7f]{1,60}+(?=[/?&=#._-]\w|[.,;:!?]{0,3}(?:\s|$|[)\]>\"']))"
)
_URL_REST = (
    rf"(?:{_URL_CHARACTER}|{_URL_LETTERS}|\([A-Za-z0-9_.~!$&'*+,;=:@%/?#-]{{0,200}}\)"
    r"|\[[^\s\[\]]{0,100}\]|\{[\w.]{0,60}\})++"
)
_NAME = "[A-Za-z0-9\u00c0-\u024f_-]{1,64}+"
_CUE_TIME = r"\d{1,3}:\d\d(?::\d\d)?[.,]\d{1,3}"
_KEY = "(?:Ctrl|Strg|Alt|Shift|Umschalt|Cmd|Option|Win|Super|Meta|Fn)"
# What is inside these is no language, where they stand in a plain text.
_CODE_ELEMENTS = "|".join(
    rf"<{name}(?:\s[^<>\n]{{0,200}})?>[^<>\n]{{0,500}}+</{name}>"
    for name in ("code", "kbd", "samp")
)

# Around marks only ASCII goes on (`(?a:…)`): Chinese and Japanese have no space before and behind.
_PATTERNS: tuple[tuple[Kind, str], ...] = (
    # ``code``, `code`, :role:`code`
    (
        "code",
        (
            r"(?::[a-z][\w.+:-]{0,40}:)?(?:``[^`\n]++(?:`[^`\n]++)?``|(?<!`)`[^`\n]++`(?!`))_{0,2}"
            rf"|{_CODE_ELEMENTS}"
        ),
    ),
    # AT&amp;T, which is one word however it is written
    (
        "word",
        (
            r"(?a:(?<!\w))[A-Za-z0-9\u00c0-\u024f]{1,30}+(?:&amp;[A-Za-z0-9\u00c0-\u024f]{1,30}+){1,4}"
            r"(?a:(?!\w))"
        ),
    ),
    (
        "tag",
        (
            r"</?[A-Za-z][\w:.-]*+(?:\s[^<>\n]*+)?/?>|</?\d{1,4}\s?/?>|<![^<>\n]*+>|<\?[^<>\n]*+>"
            r"|&(?:#\d{1,7}|\#x[0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
            rf"|{LOOSE_CODES}"
        ),
    ),
    (
        "placeholder",
        (
            # {{x}}, ${x}, #{x}, %{x}, and of ICU {n, plural, one {…} other {…}}
            r"\{\{[^{}\n]{1,100}\}\}|[$#%]\{[^{}\n]{1,100}\}"
            r"|\{[\w.-]{1,60},\s?(?:plural|select|selectordinal|number|date|time)\b[^{}\n]*+"
            r"(?:\{[^{}\n]*+\}[^{}\n]*+)*+\}"
            r"|\{\s?[\w.$\#@:!|,\[\]()'\"*<>=^+-]{0,60}\s?\}|\[\[[\w. -]{1,60}\]\]"
            # %(x)d, %1$s, %-5.2f, %<x>s, %PATH%, %%, %Y-%m-%d
            r"|%\(\w{1,60}\)[\#0+-]{0,3}\d{0,3}(?:\.\d{1,3})?[A-Za-z]|%<\w{1,60}>[A-Za-z]?"
            r"|(?<![\d%])%[A-Za-z_]\w{1,60}%"
            r"|(?<![\d%])%(?:\d{1,2}\$)?[\#0+-]{0,3}(?:\d{1,3}|\*)?(?:\.(?:\d{1,3}|\*))?"
            r"(?:hh|h|ll|l|L|z|j|t|q)?[@diouxXeEfFgGcspr](?![A-Za-z]{3})|%%|(?<![\d\w%])%\d{1,2}(?!\d)"
            r"|(?<![\d%])%[-\#]?[aAbBHIjmMpSyYZ](?![A-Za-z])"
            r"|(?a:(?<![\w$]))\$(?:[A-Za-z_][A-Za-z0-9_]{0,60}|\(\w{1,60}\))"
            r"|(?a:(?<![\w:/)\]])):[A-Za-z_][A-Za-z0-9_]{0,60}:?"
            r"|__[A-Za-z0-9]\w{0,60}__"
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
            r"(?a:(?<![\w.+%-]))[A-Za-z0-9_.+%-]{1,64}+@[A-Za-z0-9-]{1,63}+(?:\.[A-Za-z0-9-]{1,63}+){1,6}+"
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
            rf"(?<![A-Za-z0-9])[A-Za-z]:\\[^\s\"'`<>|?*,;()]*+|\\\\{_NAME}\\[^\s\"'`<>|?*,;()]++"
            r"|(?a:(?<![\w/.~<>)\]-]))(?:~|\.{1,2})?/[A-Za-z0-9\u00c0-\u024f_@+~{][A-Za-z0-9\u00c0-\u024f_.@+~{}*-]*+"
            r"(?:/[A-Za-z0-9\u00c0-\u024f_.@+~{}*-]++)*+/?"
            rf"|(?a:(?<![\w./\\@-]))\.?{_NAME}(?:[./]{_NAME})++/?"
            r"|(?a:(?<![\w./\\]))(?:\.{1,2}/){2,9}+(?a:(?!\w|/|\.[\w./]))"
        ),
    ),
    (
        "code",
        (
            # --option, snake_case, SNAKE_CASE=1, \n, 0x7F, Ctrl+S
            r"(?a:(?<![\w-]))--[A-Za-z][A-Za-z0-9_-]{0,60}(?:=[A-Za-z0-9_./-]{1,60})?"
            r"|(?<!\w)[A-Za-z0-9]{1,60}+(?:_[A-Za-z0-9]{1,60}+){1,20}"
            r"(?:=[A-Za-z0-9_./-]{0,60}[A-Za-z0-9_/-])?(?!\w)"
            r"|\\[nrt](?![a-z])"
            r"|(?a:(?<!\w))0[xX][0-9A-Fa-f]{2,16}(?a:(?!\w))"
            rf"|(?a:(?<![\w+])){_KEY}(?:\+[A-Z0-9][A-Za-z0-9]{{0,11}}){{1,3}}(?a:(?!\w))"
        ),
    ),
    (
        "mention",
        (
            r"(?a:(?<![\w@.]))@[A-Za-z_][A-Za-z0-9_-]{0,60}|(?a:(?<![\w#&]))\#[A-Za-z_][A-Za-z0-9_-]{1,60}"
            # @0xbadcafe; @小李, which only a space can end; #1337, #ff8800
            r"|(?a:(?<![\w@.]))@(?=\d{1,20}[A-Za-z_])\d[A-Za-z0-9_-]{5,60}"
            r"|(?a:(?<![\w@.]))@[^\W\x00-\x7f]{1,20}+(?=\s|$)"
            r"|(?a:(?<![\w#&/]))\#(?:\d{1,9}|[0-9A-Fa-f]{6})(?a:(?!\w|[.,]\d))"
        ),
    ),
    (
        "markup",
        (
            r"!?\[(?=[^\[\]\n]{1,200}\]\()|\]\([^()\s]*+(?:\([^()\s]*+\)[^()\s]*+)*+\)"
            r"|\*{1,3}(?=[^\s*])|(?<=[^\s*])\*{1,3}|~~|(?<!\w)_{1,2}(?=[^\W_])|(?<=[^\W_])_{1,2}(?!\w)"
        ),
    ),
    ("emoji", rf"{_EMOJI}++"),
    ("emoji", r"(?a:(?<![\w:;.]))[:;]-?[)(DP|](?a:(?![\w()]))"),
    ("emoji", _CONTROL),
    ("code", WORD_CODES),
)
_MARK = re.compile(
    "|".join(f"(?P<{kind}_{index}>{pattern})" for index, (kind, pattern) in enumerate(_PATTERNS))
)
# Whether there can be a mark at all: most texts have none, and this is all that they pay.
_HINT = re.compile(
    r"[+{%$<&`@#\\*_~\[|]|[./](?<=\w.)\w|/(?<!\w/)[\w.]|[:;][\w/:)(|-]"
    r"|--[A-Za-z]|0[xX][0-9A-Fa-f]|(?m:^[ \t]*+[>\u2022\u2013-][ \t])"
    rf"|[{_INVISIBLE}\u200b\u20e3\ufe0f\u231a-\u23ff\u2600-\u27bf\u2b1b-\u2b55"
    r"\U0001f000-\U0001faff\U00100000-\U0010fffd]"
)
_LEAD = re.compile(
    r"^[ \t]*+(?:(?:#{1,6}|>{1,6}|[-+*\u2022\u2013])[ \t]++){1,4}(?:\[[ xX]\][ \t]++)?",
    re.MULTILINE,
)
_TABLE_LINE = re.compile(r"^[ \t]*+\|[^\n]*+$", re.MULTILINE)
_CELL = re.compile(r"[ \t]*+\|[ \t|:-]*+")
_FENCE = re.compile(r"^[ \t]{0,12}(`{3,20}|~{3,20})[^`\n]*+$", re.MULTILINE)
_NUMBER = re.compile(r"\d++(?:[.,:/'’\u00a0\u202f-]\d++)*+")
# A-99812-XZ, XK7Q2M, 9f1c2ab: what names a thing, and is no amount of anything.
_CODE = re.compile(
    r"(?a:(?<![\w-]))(?:(?=(?:[A-Z-]{0,20}\d){2})[A-Z][A-Z0-9]{0,30}+(?:-[A-Z0-9]{1,30}+){0,6}+"
    r"|(?=[a-f]{0,8}\d)(?=\d{0,8}[a-f])[0-9a-f]{7,40}+)(?a:(?![\w-]))"
)

_DOMAINS = frozenset(
    """
    com org net edu gov int info io dev app de at ch cn uk eu fr es it jp ru us co me tv ai nl
    se
    """.split()  # noqa: SIM905  # one list a line
)
_EXTENSIONS = frozenset(
    """
    py js ts jsx tsx json yaml yml xml html htm css md rst txt csv tsv log ini cfg conf toml env
    sh bat exe dll so jar war zip gz tgz bz2 xz 7z rar tar iso pdf doc docx xls xlsx ppt pptx
    odt ods odp epub png jpg jpeg gif svg webp bmp ico mp3 mp4 wav ogg avi mkv mov srt vtt po
    pot mo c h cc cpp hpp cs go rs rb php java kt swift sql db sqlite bin dat bak tmp lock pem
    crt key spm safetensors ipynb
    """.split()  # noqa: SIM905  # one list a line
)
_AFTER_ADDRESS = ".,;:!?'\"*_~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A stretch of a text that has to come through as it is.

    Attributes:
        start: Where it begins, in characters.
        end: Where it ends.
        kind: What it is.
        replacement: What stands for it in a translation; None: itself.
    """

    start: int
    end: int
    kind: Kind
    replacement: str | None = None


def find_marks(text: str) -> list[Mark]:
    """The marks of a text, in order, without overlap; numbers are not among them.

    A fenced block of code, with its fences, is one mark over several lines. Everything else is
    within a line.
    """
    if _HINT.search(text) is None:
        return []
    marks: list[Mark] = []
    done = 0
    for start, end in _fences(text):
        marks += _inline(text, done, start)
        marks.append(Mark(start=start, end=end, kind="code"))
        done = end
    return _beside_codes(text, [*marks, *_inline(text, done, len(text))])


def find_inner_marks(text: str) -> list[Mark]:
    """The marks of a stretch of a line: nothing in it is a beginning or a wall of a table."""
    return [mark for mark in find_marks(text) if mark.kind not in EDGE_KINDS]


def find_numbers(text: str) -> list[Mark]:
    """The numbers of a text: digits, with what stands between them in 1,000.50, 10:30 or 1/2.

    Digits of a code are not among them: all of it is (`find_codes`).
    """
    numbers: list[Mark] = []
    done = 0
    for code in find_codes(text):
        numbers += _numbers_between(text, done, code.start)
        numbers.append(code)
        done = code.end
    return [*numbers, *_numbers_between(text, done, len(text))]


def find_codes(text: str) -> list[Mark]:
    """Names of things made of capitals and two digits or more, or of a hash: A-99812-XZ."""
    return [Mark(start=m.start(), end=m.end(), kind="number") for m in _CODE.finditer(text)]


def _numbers_between(text: str, start: int, end: int) -> Iterator[Mark]:
    for number in _NUMBER.finditer(text, start, end):
        yield Mark(start=number.start(), end=number.end(), kind="number")


def masked(text: str, marks: Sequence[Mark]) -> str:
    """The text, as long as it is, with nothing in its marks that could end a sentence."""
    parts: list[str] = []
    done = 0
    for mark in marks:
        inside = text[mark.start : mark.end]
        parts += [text[done : mark.start], "".join(c if c.isalnum() else "_" for c in inside)]
        done = mark.end
    return "".join([*parts, text[done:]])


def _beside_codes(text: str, marks: Sequence[Mark]) -> list[Mark]:
    """The marks, without those that an inline code divides; the codes stay, and so their order."""
    if ANY_CODE.search(text) is None:
        return list(marks)
    apart: list[Mark] = []
    for mark in marks:
        codes = list(ANY_CODE.finditer(text, mark.start, mark.end))
        if mark.end - mark.start == 1 or not any(is_loose(code[0]) for code in codes):
            apart.append(mark)
            continue
        apart += [
            Mark(start=found.start(), end=found.end(), kind="tag" if is_loose(found[0]) else "code")
            for found in codes
        ]
    return apart


def _fences(text: str) -> Iterator[tuple[int, int]]:
    """Blocks between two fences of the same kind, each of them a line of its own."""
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]):
            yield opened.start(), fence.end()
            opened = None


def _inline(text: str, start: int, end: int) -> Iterator[Mark]:
    """Marks within lines, between two places that are ends of lines."""
    edges = sorted(_edges(text, start, end), key=lambda mark: mark.start)
    done = start
    for edge in edges:
        if edge.start >= done:
            yield from _marks_between(text, done, edge.start)
            yield edge
            done = edge.end
    yield from _marks_between(text, done, end)


def _edges(text: str, start: int, end: int) -> Iterator[Mark]:
    """What lines begin with, and what divides the lines of tables."""
    for lead in _LEAD.finditer(text, start, end):
        yield Mark(start=lead.start(), end=lead.end(), kind="lead")
    for line in _TABLE_LINE.finditer(text, start, end):
        for cell in _CELL.finditer(text, line.start(), line.end()):
            yield Mark(start=cell.start(), end=cell.end(), kind="cell")


def _marks_between(text: str, start: int, end: int) -> Iterator[Mark]:
    for match in _MARK.finditer(text, start, end):
        kind, last = _PATTERNS[(match.lastindex or 1) - 1][0], match.end()
        if kind == "path" and not _is_path(match[0]):
            kind = "url"
            if not _is_domain(match[0]):
                continue
        first = match.start()
        if kind in ("url", "path", "email"):
            last = first + len(match[0].rstrip(_AFTER_ADDRESS))
        if (
            kind in ("url", "email")
            and first > start
            and text[first - 1] + text[last : last + 1] == "<>"
        ):
            first, last = first - 1, last + 1
        yield Mark(start=first, end=last, kind=kind)


def _is_path(found: str) -> bool:
    """Whether names that are joined by stops and slashes are a path or a name of a file."""
    if "\\" in found or found.startswith(("/", "~/", "./", "../")):
        return True
    last = found.rstrip("/").rpartition("/")[2]
    return last.rpartition(".")[2].lower() in _EXTENSIONS and "." in last


def _is_domain(found: str) -> bool:
    """Whether they are the name of a host."""
    host = found.partition("/")[0]
    name, _, top = host.rpartition(".")
    return top.islower() and top in _DOMAINS and any(map(str.isalpha, name))
