"""Control of a translation beside its languages: its beginning, and its terms.

Owns the types, and how a beginning that the caller has written and the network's words behind
it become one text. What a network is fed of a beginning are tokens, which may spell it in another
way (spaces, characters without a piece); the text keeps it as it was written. Glossaries are
`model.text.constraints.glossary`.
"""

from dataclasses import dataclass

from model.text.constraints.glossary import Glossary

MAX_PREFIX_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """Of one text.

    Attributes:
        target_prefix: What the translation of its first segment begins with; empty: anything.
        glossary: What its terms have to be translated as; None: anything.
    """

    target_prefix: str = ""
    glossary: Glossary | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Beginning of the translation of a segment.

    Attributes:
        text: As it was written.
        token_ids: As the network is fed it, stand-ins instead of its marks.
    """

    text: str
    token_ids: tuple[int, ...]

    def joined(self, rest: str) -> str:
        """It and what the network wrote behind it, which may begin with a space."""
        if self.text[-1:].isspace():
            rest = rest.lstrip()
        return (self.text + rest).rstrip()
