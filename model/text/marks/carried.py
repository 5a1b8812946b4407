"""What a text with marks is for a network, and what comes back: as values.

Owns the types that marks are carried in: stand-ins, loose marks with their places, what the network
reads, and a translation with its marks. What is done with them is `model.text.marks.carrying`.
"""

import re
from dataclasses import dataclass

from model.text.marks.casing import Casing
from model.text.marks.inline_codes import LOOSE_CODES, OPENING_CODES

OPENING = re.compile(rf"<[^/][^>]*[^/]>|<\w>|!?\[(?![/^])|{OPENING_CODES}")
"""What may begin a mark that belongs to the words behind it."""
TAG_OR_MARKUP = re.compile(rf"[<&*_~!\[\]{{']|{LOOSE_CODES}")
"""What a mark begins with that belongs to words at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """Stand-in that the network reads instead of a mark.

    Attributes:
        name: The stand-in.
        mark: The mark, or several that touch each other.
        is_term: It ends with what stands for a term.
    """

    name: str
    mark: str
    is_term: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Loose:
    """A mark that is left out.

    Attributes:
        mark: Its text.
        place: Characters before it in what the network reads.
        has_space_before: There is space, or nothing, before it in the source.
        has_space_after: The same behind it, or a sign that ends a clause.
        is_inside: It is inside of a word.
        is_tight: It joins two words, as the sign of 20°C does; the network reads a space there.
    """

    mark: str
    place: int
    has_space_before: bool
    has_space_after: bool
    is_inside: bool = False
    is_tight: bool = False

    @property
    def is_opening(self) -> bool:
        """Whether it belongs to the word behind it."""
        if self.has_space_before == self.has_space_after:
            return not self.is_free and OPENING.match(self.mark) is not None
        return self.has_space_before

    @property
    def is_free(self) -> bool:
        """Whether it belongs to neither word: it has space around, or stands for itself."""
        is_alike = self.has_space_before == self.has_space_after
        return is_alike and (self.has_space_before or self.is_sign)

    @property
    def is_sign(self) -> bool:
        """Whether it says nothing of words, as tags and markup do."""
        return TAG_OR_MARKUP.match(self.mark) is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """Text that the network reads, with stand-ins for marks.

    Attributes:
        shown: That.
        stand_ins: In the order of the text.
        loose: Marks that are left out, likewise.
        marks: Texts of all marks, of those that touch each other as one, but where something else
            stands for all of it.
        casing: Casing that was taken off; None if none was.
    """

    shown: str
    stand_ins: tuple[StandIn, ...] = ()
    loose: tuple[Loose, ...] = ()
    marks: tuple[str, ...] = ()
    casing: Casing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A translation with its marks.

    Attributes:
        text: All marks of the source are in it, whatever the network wrote.
        is_lost: The network lost or doubled a stand-in, or changed the order of marks whose order
            is their meaning, and these marks stand anywhere; or nothing is left between two marks
            that were around words.
    """

    text: str
    is_lost: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A mark instead of a stretch of the translation, which may be empty.

    Attributes:
        start: Where the stretch begins.
        end: Where it ends.
        mark: The mark.
        stand_in: What stood there for it; None for a loose mark.
    """

    start: int
    end: int
    mark: str
    stand_in: StandIn | None = None
