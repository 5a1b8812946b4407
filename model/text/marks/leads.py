"""Leads: what a line of a list, a heading or a quotation begins with, and is not language.

Owns which beginnings of lines those are: bullets and boxes, and numbers and letters of lists. Some
can be nothing else (`a)`, `一、`, `①`); a sentence may begin with others (`1.`, `A.`), and they are
leads where several lines have some. Repetitions are as those of `model.text.marks.patterns`.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

# What lists of Chinese and Japanese are numbered with, and what a line may go on with there.
_HAN_NUMERALS = "一二三四五六七八九十"
_HAN_NUMBER = f"[{_HAN_NUMERALS}]{{1,3}}"
_WIDE = "\u3040-\u30ff\u3400-\u9fff"
_CIRCLED = "\u2460-\u24ff\u2776-\u2793\u3220-\u3229\u3251-\u325f\u3280-\u3289\u32b1-\u32bf"
# Signs that no sentence begins with, so no space has to follow; and those that stand for what is
# left out where there are several (●●), or alone.
_BULLETS = "\u00b7\u2022\u2023\u2043\u2192\u21d2\u2219\u25aa\u25ab\u25b8\u25ba\u25e6\u30fb"
_DOTS = "\u203b\u25a0\u25c6\u25cf"
_SPACED_BULLETS = "\u2013\u25a1\u25c7\u25cb"
_BULLET = (
    rf"(?:#{{1,6}}|>{{1,6}}|[-+*{_SPACED_BULLETS}])[ \t]++"
    rf"|(?:[{_BULLETS}]|[{_DOTS}](?![{_DOTS}]))[ \t\u3000]*+"
)
_BOX = r"\[[ xX]\][ \t]++"
_ENUMERATOR = rf"(?:[A-Za-z]|[ivx]{{2,5}}|[IVX]{{2,5}}|{_HAN_NUMBER})"
# (a) and (b), ①和②: what a sentence is about.
_NO_OTHER = (
    r"(?![ \t]?(?:(?:and|or|und|oder|to|bis|[和与與及或至到、，,~～\u2013-])[ \t]?"
    rf"(?:[{_CIRCLED}]|[(（]?(?:\d{{1,2}}|{_ENUMERATOR})[)）])|[{_CIRCLED}]))"
)
# a) (a) ii) 1) 1.) 1） （一） 1、 一、 1．打开 1.打开 ①: what is none of a sentence, even alone.
_NUMBERING = (
    rf"(?:(?:(?:\d{{1,3}}|{_ENUMERATOR})\.?|[(（](?:\d{{1,2}}|{_ENUMERATOR}))"
    rf"(?:\){_NO_OTHER}、?(?:[ \t\u3000]++|(?=[{_WIDE}]))|）{_NO_OTHER}、?[ \t\u3000]*+)"
    # 一、二楼 and 3、4月 are numbers of something.
    rf"|(?:\d{{1,3}}[、．]|{_HAN_NUMBER}、)[ \t\u3000]*+(?![\d{_HAN_NUMERALS}百千万])"
    rf"|\d{{1,3}}\.(?=[{_WIDE}])"
    rf"|[{_CIRCLED}]{_NO_OTHER}[、.．]?[ \t\u3000]*+)(?=\S)"
)

LEAD_HINT = (
    rf"^[ \t\u3000]*+(?:(?:>{{1,6}}|[{_SPACED_BULLETS}-])[ \t]|[{_BULLETS}{_DOTS}{_CIRCLED}]"
    rf"|(?:\d{{1,3}}|{_ENUMERATOR})[.)）、．]|[(（](?:\d{{1,2}}|{_ENUMERATOR})[)）])"
)
"""Pattern of what there is wherever a line has a lead, but for signs that marks begin with too."""

_LEAD = re.compile(
    rf"^[ \t\u3000]*+(?:(?:{_BULLET}){{1,4}}(?:{_BOX})?(?P<inner>{_NUMBERING})?"
    rf"|{_BOX}|(?P<whole>{_NUMBERING}))",
    re.MULTILINE,
)
# Of lists of two items and more: one line may begin with a date.
_NUMBERED = re.compile(
    rf"^[ \t\u3000]*+(?:\d{{1,3}}(?:\.[ \t]++|[、．])|{_HAN_NUMBER}、"
    r"|(?:[a-z]|[ivx]{2,5}|[IVX]{1,5})\.[ \t]++)(?=\S)",
    re.MULTILINE,
)
# Likewise, where they go on from A to B: other lines begin with a name.
_LETTERED = re.compile(r"^[ \t]*+(?P<letter>[A-Z])\.[ \t]++(?=\S)", re.MULTILINE)


def find_leads(text: str) -> Iterator[tuple[int, int]]:
    """Where the lines of a text have leads; those of each kind are in order."""
    sure = list(_LEAD.finditer(text))
    begins = {lead.start() for lead in sure}
    numbered = [one for one in _NUMBERED.finditer(text) if one.start() not in begins]
    num_numbered = len(numbered) + sum(lead.lastgroup is not None for lead in sure)
    lettered = _in_order(_LETTERED.finditer(text))
    for lead in chain(sure, numbered if num_numbered > 1 else (), lettered):
        yield lead.span()


def _in_order(lettered: Iterable[re.Match[str]]) -> list[re.Match[str]]:
    """Those of the lines with letters that go on from A to B and further."""
    runs: list[list[re.Match[str]]] = [[]]
    for one in lettered:
        if one["letter"] == "A":
            runs.append([one])
        elif runs[-1] and ord(one["letter"]) == ord(runs[-1][-1]["letter"]) + 1:
            runs[-1].append(one)
    return [one for run in runs if len(run) > 1 for one in run]
