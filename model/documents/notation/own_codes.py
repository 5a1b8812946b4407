"""Inline codes of a translation: each that its source has, once, and in its own element.

Owns what is done where a translator lost one or moved it where it may not be. What codes stand for
is the template's.
"""

from collections import Counter
from collections.abc import Sequence

from model.text.marks.inline_codes import (
    ANY_CODE,
    class_of,
    is_loose,
    partners,
    without_codes,
)


def with_codes_of(source: str, translation: str) -> str:
    """A translation with the inline codes of its source, each once, so that no tag is another's.

    Elements side by side may have changed places, and nothing has come into one or out of it. A
    code that is a word may move in its sentence, but not into or out of an element; one that did is
    put at the beginning of its own. The text path loses no code, and keeps elements whole. What
    another translator did to them is put right roughly: codes that begin the source begin the
    translation, all others end it.
    """
    wanted, found = ANY_CODE.findall(source), ANY_CODE.findall(translation)
    if Counter(wanted) == Counter(found) and _structure(wanted) == _structure(found):
        return _in_own_elements(source, translation)
    text = without_codes(source)
    first = source.find(text.strip()[:1]) if text.strip() else len(source)
    leading = "".join(ANY_CODE.findall(source[:first]))
    return leading + without_codes(translation) + "".join(wanted[len(leading) :])


def _structure(codes: Sequence[str]) -> dict[str, tuple[str, int, str]]:
    """For every loose code the element that it is in, what stays before it there, and its partner.

    What stays are codes without a partner: nothing changes places with them.
    """
    loose = [one for one in codes if is_loose(one)]
    pairs = partners(loose)
    opened = [""]
    num_before: Counter[str] = Counter()
    found: dict[str, tuple[str, int, str]] = {}
    for place, one in enumerate(loose):
        partner = pairs.get(place)
        if partner is not None and partner < place:
            opened.pop()
            continue
        element = opened[-1]
        if partner is None:
            num_before[element] += 1
        else:
            opened.append(one)
        found[one] = (element, num_before[element], "" if partner is None else loose[partner])
    return found


def _in_own_elements(source: str, translation: str) -> str:
    """A translation whose words that are codes are inside the elements that they were in."""
    elements, moved = _elements(source), _elements(translation)
    for word, (opened, before) in elements.items():
        if moved[word][0] == opened:
            continue
        text = translation.replace(word, "")
        place = text.index(before) + 1 if before else 0
        needs_space = text[place : place + 1].isalnum()
        translation = text[:place] + word + " " * needs_space + text[place:]
    return translation


def _elements(text: str) -> dict[str, tuple[str, str]]:
    """For every code that is a word what opens the element around it, and the loose one before."""
    opened: list[str] = [""]
    found: dict[str, tuple[str, str]] = {}
    before = ""
    for one in ANY_CODE.findall(text):
        if not is_loose(one):
            found[one] = (opened[-1], before)
            continue
        before = one
        match class_of(one):
            case "opening":
                opened.append(one)
            case "closing":
                if len(opened) > 1:
                    opened.pop()
    return found


def cut_to(text: str, most: int) -> str:
    """A text of so many characters at most, as UTF-16 counts them, with all its codes."""
    if 2 * len(text) <= most:
        return text
    kept: list[str] = []
    for character in text:
        if not ANY_CODE.match(character):
            most -= 1 + (character > "\uffff")
            if most < 0:
                continue
        kept.append(character)
    return "".join(kept)
