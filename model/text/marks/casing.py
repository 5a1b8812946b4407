"""Casing of whole sentences: ALL CAPS and Title Case, taken off before the network and put back.

Owns what counts as such a sentence, how it is written as networks know sentences, and how the
translation gets its casing. Networks are trained on sentences in ordinary casing and copy others
or take them for names. A sentence in any other casing is never touched, and neither is one with
letters that have no case: what is in capitals between Chinese characters is an abbreviation.
"""

import re
from typing import Literal

from model.text.languages.tags import primary_language

Casing = Literal["upper", "title"]

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LATIN_WORD = re.compile("[A-Za-z\u00c0-\u024f]+")
_MIN_LETTERS = 6  # a shorter word in capitals may be an abbreviation
# Shorter ones that are words, and no abbreviations, on buttons and signs.
_SIGNS = {
    "en": frozenset(
        """
        exit stop save help hello open close closed login logout email back next new yes add off end
        start pause play send reset delete edit cancel submit search menu home error update done
        ready undo redo copy paste cut print view file files tools enter leave quit push pull sale
        free sold danger fire wait slow keep left right down hot cold live news today thanks please
        sorry empty full lost found share reply upload log sign
        """.split()  # noqa: SIM905  # one list a line
    ),
    "de": frozenset(
        """
        halt hilfe hallo ende offen start weiter zurück neu nein suche öffnen senden fehler pause
        danke bitte ruhe privat notruf frei ziehen feuer gefahr drucken datei menü kopie teilen
        leeren fertig heute links rechts oben unten heiß kalt
        """.split()  # noqa: SIM905  # one list a line
    ),
}
# Words that no title leaves as they are in another language.
_TITLE_WORDS = frozenset(
    """
    Of And The For To With From By Your You Is Are How What This That
    """.split()  # noqa: SIM905
)
_SMALL = 4  # words of fewer letters may be small in titles, whatever the language
_ENGLISH_SMALL = frozenset(
    ("a", "an", "the", "and", "but", "or", "of", "in", "on", "at", "to", "for", "by", "as", "if")
)
# Nouns are written with capitals there, or letters have no case.
_NO_TITLES = frozenset({"de", "lb"})
_DOTTED_I = frozenset({"tr", "az"})


def casing_of(text: str, language: str) -> Casing | None:
    """In which casing a sentence is; None for an ordinary one, and for one without case.

    Args:
        text: A sentence; marks that are no language are left out of it.
        language: BCP-47 tag of the text.
    """
    if text == text.lower():
        return None
    capitals = text.replace("ß", "ẞ")  # which many keyboards lack: STRAßE
    if not any(map(str.islower, capitals)):
        words = _WORD.findall(capitals)
        letters = sum(map(len, words))
        is_sentence = len(words) > 1 and letters >= _MIN_LETTERS
        is_sign = len(words) == 1 and words[0].lower() in _SIGNS.get(primary_language(language), ())
        is_long_enough = is_sentence or is_sign or letters > _MIN_LETTERS
        return "upper" if is_long_enough and all(map(str.isupper, "".join(words))) else None
    if primary_language(language) in _NO_TITLES:
        return None
    num_titled = 0
    for found in _WORD.finditer(text):
        word = found[0]
        if word[0].isupper() and word[1:] == word[1:].lower():
            num_titled += 1
        elif not word.islower() or len(word) >= _SMALL:
            return None
    return "title" if num_titled > 2 else None


def keeps_title_words(source: str, target: str) -> bool:
    """Whether small words of an English title stand in its translation with their capitals.

    A network that takes them for names copies them. Those that begin a text say nothing.
    """
    kept = _TITLE_WORDS.intersection(source.split()[1:])
    if not kept or casing_of(source, "en") != "title":
        return False
    words = [word for word in _LATIN_WORD.finditer(target) if word.start()]
    return any(word[0] in kept for word in words)


def lowered(text: str, language: str) -> str:
    """A sentence as it would be written in ordinary casing: its first letter stays.

    It stays as long as it is, so that places in it stay.
    """
    primary = primary_language(language)
    if primary in _DOTTED_I:
        text = text.replace("I", "ı")
    text = text.replace("İ", "i").lower()  # of İ, lower() alone makes two characters
    if primary == "en":
        text = re.sub(r"\bi\b(?!\.)", "I", text)
    return _with_first_capital(text)


def raised(text: str, casing: Casing, language: str) -> str:
    """A translation, or a stretch of one, in the casing of its source.

    A title in English gets its capitals; in other languages titles are written as sentences.
    """
    primary = primary_language(language)
    if casing == "upper":
        return (text.replace("i", "İ") if primary in _DOTTED_I else text).upper()
    if primary != "en":
        return text
    return _WORD.sub(lambda word: _titled(word[0]), text)


def _titled(word: str) -> str:
    return word if word in _ENGLISH_SMALL else word[:1].upper() + word[1:]


def _with_first_capital(text: str) -> str:
    first = _WORD.search(text)
    if first is None:
        return text
    at = first.start()
    capital = text[at].upper()
    if len(capital) > 1:  # of ß and ligatures
        return text
    return text[:at] + capital + text[at + 1 :]
