"""What a vocabulary has no piece for: what of it is carried, and what is read as something else.

Owns which signs and words of a text come through as they are because the network could not write
them, and which it reads in a commoner form: the apostrophe of ’s and n’t, without which a negation
is lost, as ' and a typographic hyphen as -. A dash that is bytes to the vocabulary is left to the
network, which has read it so in training.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from model.text.languages.scripts import UNSPACED_LANGUAGES, UNSPACED_LETTERS, is_of_language
from model.text.languages.tags import LanguagePair, primary_language
from model.text.marks.finding import Mark
from model.text.marks.inside import SOFT_HYPHEN
from model.text.subwords.tokenizer import Tokenizer

# Visible characters that SentencePiece's usual rules make a space of.
_READ_AS_SPACE = frozenset("\ufffd\u2581")
# Signs above, below and between letters, which are of their word but no letters for `re`.
_COMBINING = (
    r"\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0981-\u0dff\u0e31-\u0e4e\u0eb1-\u0ecd"
    r"\u0f71-\u0fbc\u102b-\u103e\u17b4-\u17d3\u200c\u200d"
)
# What a sign is to be printed like is of the sign before it.
_VARIATIONS = r"\ufe00-\ufe0f"
_STRETCH = re.compile(rf"\w[\w{_COMBINING}{_VARIATIONS}]*+|[^\w\s][{_VARIATIONS}]*+")
# The same where words have no spaces between them: signs of such scripts are of no word.
_WIDE = rf"{UNSPACED_LETTERS}\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WIDE_STRETCH = re.compile(
    rf"(?:[^\W{_WIDE}]++|[{_WIDE}][\u3099\u309a]?+|[^\w\s])[{_VARIATIONS}]*+"
)
# A letter with its signs, which a vocabulary may have as one; anything else is by itself.
_CLUSTER = re.compile(rf"\w[{_COMBINING}]*+|[^\w\s]")
_WIDE_CLUSTER = re.compile(r"\S[\u3099\u309a]?+")
_LETTER = r"[^\W\d_]"
_APOSTROPHE = re.compile(rf"(?<={_LETTER})[’‘ʼ](?={_LETTER})")
# The same at an end of a word (the dogs’, goin’, ’tis), in a text that has it for no quotation.
_OUTER_APOSTROPHE = re.compile(rf"(?<={_LETTER})’(?!\w)|(?<!\w)’(?={_LETTER})")
_QUOTATION = re.compile(rf"[‘‚‹›]|(?<!\w)’(?={_LETTER})[^’]*+(?<=[\w.,!?…])’(?!\w)")
_DASHES, _HYPHENS = frozenset("–—―"), frozenset("‐‑")


class RareText:
    """What one vocabulary cannot write; holds no state between calls.

    Args:
        tokenizer: Of the checkpoint.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def readable(self, text: str, pair: LanguagePair) -> str:
        """A text as the network reads it: with as many characters, some in a commoner form."""
        if text.isascii():
            return text
        places = [place for place in _apostrophes(text) if self._is_rare(text[place], pair)]
        forms = dict.fromkeys(places, "'")
        for sign in sorted((_DASHES | _HYPHENS).intersection(text)):
            if self._is_unknown(sign, pair) or (sign in _HYPHENS and self._is_rare(sign, pair)):
                forms |= {place: "-" for place, one in enumerate(text) if one == sign}
        if not forms or any(self._is_rare(form, pair) for form in {*forms.values()}):
            return text
        return "".join(forms.get(place, one) for place, one in enumerate(text))

    def marks(
        self, text: str, pair: LanguagePair, source_ids: Sequence[int] | None = None
    ) -> list[Mark]:
        """Stretches of a text that the vocabulary cannot write, and the network is not to read.

        Letters are taken with the word that they are in. ASCII, and letters of a source's own
        script where that is Chinese or written like it, are left to the network, which has read
        them byte by byte in training, as has it dashes.

        Args:
            text: A sentence, with spaces instead of what is carried anyway.
            pair: A pair of the checkpoint.
            source_ids: Of the text; made if they are not given.
        """
        if source_ids is None:
            source_ids = self._tokenizer.encode(self.readable(text, pair), pair)
        if self._tokenizer.rare_ids.isdisjoint(source_ids) and _READ_AS_SPACE.isdisjoint(text):
            return []
        read = self.readable(text, pair)
        is_wide = primary_language(pair.source) in UNSPACED_LANGUAGES
        stretch = _WIDE_STRETCH if is_wide else _STRETCH
        cluster = _WIDE_CLUSTER if is_wide else _CLUSTER
        rare = {one for one in {*cluster.findall(read)} if self._is_carried(one, pair)}
        spans = [
            match
            for match in stretch.finditer(read)
            if not rare.isdisjoint(cluster.findall(match[0]))
        ]
        return [_rare_mark(match, is_word=_is_of_word(match[0][0])) for match in spans]

    def _is_carried(self, cluster: str, pair: LanguagePair) -> bool:
        is_wide = primary_language(pair.source) in UNSPACED_LANGUAGES
        is_own = is_wide and cluster[0].isalpha() and is_of_language(cluster[0], pair.source)
        is_read = cluster in _DASHES and not self._is_unknown(cluster, pair)
        if cluster.isascii() or is_own or is_read or cluster == SOFT_HYPHEN:
            return False
        return self._is_rare(cluster, pair)

    def _is_rare(self, cluster: str, pair: LanguagePair) -> bool:
        ids = self._tokenizer.encode(cluster, pair)
        if cluster in _READ_AS_SPACE and len(ids) == self._tokenizer.num_source_extras(pair):
            return True
        return not self._tokenizer.rare_ids.isdisjoint(ids)

    def _is_unknown(self, sign: str, pair: LanguagePair) -> bool:
        return self._tokenizer.unk_id in self._tokenizer.encode(sign, pair)


def _apostrophes(text: str) -> Iterator[int]:
    """Where a sign is an apostrophe, and no quotation mark."""
    yield from (match.start() for match in _APOSTROPHE.finditer(text))
    if not _QUOTATION.search(text):
        yield from (match.start() for match in _OUTER_APOSTROPHE.finditer(text))


def _is_of_word(character: str) -> bool:
    is_mark = unicodedata.category(character).startswith("M")
    return character.isalnum() or (is_mark and not "\ufe00" <= character <= "\ufe0f")


def _rare_mark(match: re.Match[str], *, is_word: bool) -> Mark:
    return Mark(start=match.start(), end=match.end(), kind="word" if is_word else "emoji")
