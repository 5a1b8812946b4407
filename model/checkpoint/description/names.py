"""Checks of the names that people read: those of checkpoints, corpora and licences."""

import unicodedata

from model.errors import shown

MAX_NAME_CHARACTERS = 1_000
_CONTROLS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def name_problem(name: str) -> str | None:
    """The problem of a name, to follow its place: "is …; it must …". None if there is none.

    Control characters move a terminal's cursor, end a line of a log, or turn the direction of what
    follows.
    """
    if len(name) > MAX_NAME_CHARACTERS:
        return f"has {len(name)} characters; at most {MAX_NAME_CHARACTERS} are possible"
    if any(unicodedata.category(character) in _CONTROLS for character in name):
        return f"is {shown(name)}; it must have no control characters"
    return None


def plain_name(text: str) -> str:
    """A stranger's text as a name without such a problem; it may be empty."""
    visible = "".join(
        character
        for character in " ".join(text.split())
        if unicodedata.category(character) not in _CONTROLS
    )
    return " ".join(visible.split())[:MAX_NAME_CHARACTERS].rstrip()
