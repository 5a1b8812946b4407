"""Beginning of what is to be translated, by which its language is seen.

Owns how far is read for it. Which language that is, `service.cli.arguments.directions` asks.
"""

import re
from collections.abc import Iterable

_NUM_TEXTS = 50
"""That are wanted."""
_MAX_TEXTS = 100_000
"""That are read for them: tables have long beginnings of empty cells, lists of numbers."""
_LETTER = re.compile(r"[^\W\d_]")


def beginning(texts: Iterable[str]) -> str | None:
    """The first texts with letters, each on its line; empty where no text has any.

    Args:
        texts: All that there are, in order; no more are taken than are needed.

    Returns:
        None where so many texts have none that what comes behind them is not known.
    """
    found: list[str] = []
    for number, text in enumerate(texts):
        if number == _MAX_TEXTS:
            return "\n".join(found) if found else None
        if _LETTER.search(text):
            found.append(text)
            if len(found) == _NUM_TEXTS:
                break
    return "\n".join(found)
