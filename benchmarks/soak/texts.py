"""Distinct English sentences and paragraphs, as many as are needed, always the same ones."""

from itertools import islice, product

_SUBJECTS = (
    "The old captain",
    "My sister",
    "A young teacher",
    "The man next door",
    "Our best friend",
    "The new doctor",
    "Nobody in the village",
    "A tall woman",
)
_VERBS = (
    "has seen",
    "is looking for",
    "forgot about",
    "wants to sell",
    "will repair",
    "was painting",
    "never liked",
    "still remembers",
)
_OBJECTS = (
    "the blue boat",
    "a bag of apples",
    "the broken window",
    "an old photograph",
    "the garden gate",
    "two long letters",
    "the kitchen clock",
    "a small white dog",
)
_ENDS = (
    ".",
    " this morning.",
    " since the summer of 1987.",
    ", but the shop was closed when the train arrived.",
    " and went home without a word.",
    " near the station?",
    " because it had rained all night.",
    "!",
)


def sentences(num: int) -> list[str]:
    """`num` distinct sentences of 4 to 20 words.

    Raises:
        ValueError: There are not so many.
    """
    parts = product(_ENDS, _OBJECTS, _VERBS, _SUBJECTS)
    found = [f"{who} {does} {what}{end}" for end, what, does, who in islice(parts, num)]
    if len(found) < num:
        raise ValueError(f"{num} sentences were asked for; there are {len(found)}")
    return found


def paragraphs(num: int, *, num_sentences: int) -> list[str]:
    """`num` distinct texts of `num_sentences` sentences each."""
    lines = sentences(num * num_sentences)
    return [" ".join(lines[start::num]) for start in range(num)]
