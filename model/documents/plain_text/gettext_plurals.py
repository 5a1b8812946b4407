"""Forms of a plural in a catalogue: which are made of the singular, and which of the plural.

Owns what the header's rule (`Plural-Forms`) says of the number 1. A form that 1 alone has is made
of the singular; where all numbers have the same, it is made of the plural. A form that 1 shares
with some (0 in French, 21 in Russian) is made of the singular if that says whatever the plural
says, as "%d file" does: "One file" would be wrong of the others.
"""

import gettext
import re
from collections import Counter
from dataclasses import dataclass

from model.text.marks.finding import find_marks

_RULE = re.compile(r"^Plural-Forms:[^\n]*?\bplural[ \t]*+=[ \t]*+([^;\n]++)", re.MULTILINE)
_MAX_NUMBER = 1_000
"""Up to which the rule is asked, as GNU gettext does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluralRule:
    """What the form of the number 1 is.

    Attributes:
        form: Which; None where no rule says it, and it is taken for the first.
        is_shared: Other numbers have it too.
        is_only: All have it.
    """

    form: int | None = None
    is_shared: bool = False
    is_only: bool = False

    def is_of_singular(self, form: int, num_forms: int, singular: str, plural: str) -> bool:
        """Whether a form is made of the singular, in an entry of so many forms.

        Of two forms without a rule the first is for 1 alone, of more nobody knows. One that the
        entry does not have is the first, as gettext reads it.
        """
        is_known = self.form is not None and self.form < num_forms
        if num_forms == 1 or self.is_only or form != (self.form if is_known else 0):
            return False
        is_shared = self.is_shared if is_known else num_forms > 2
        return not is_shared or not _lacks(singular, plural)


def plural_rule(header: str) -> PluralRule:
    """The rule of a catalogue, from what its header says; an empty one if that has none to ask."""
    found = _RULE.search(header)
    if found is None:
        return PluralRule()
    try:
        form_of = gettext.c2py(found[1])
        forms = [form_of(number) for number in range(_MAX_NUMBER + 1)]
    except (ValueError, SyntaxError, ArithmeticError):  # a template's EXPRESSION; 1/0
        return PluralRule()
    alike = forms.count(forms[1])
    return PluralRule(form=forms[1], is_shared=alike > 1, is_only=alike == len(forms))


def _lacks(singular: str, plural: str) -> bool:
    """Whether the plural has a placeholder that the singular does not have."""
    said, wanted = (
        Counter(text[one.start : one.end] for one in find_marks(text) if one.kind == "placeholder")
        for text in (singular, plural)
    )
    return bool(wanted - said)
