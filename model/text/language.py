"""Language tags: BCP-47 (RFC 5646) well-formedness and canonical case.

Owns the spelling of a tag and nothing else: aliases (`zh`, `zt`, `pb`) and names live in the
API adapters, and which languages are translated is a checkpoint's own list.
"""

import re

from model.errors import InputError

MAX_TAG_LENGTH = 64

# RFC 5646, section 2.1: langtag, without the grandfathered tags. Every alternative starts
# after a hyphen and has a bounded length, so matching is linear.
_TAG = re.compile(
    r"(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})"  # language, extended language
    r"(?:-[a-z]{4})?"  # script
    r"(?:-(?:[a-z]{2}|[0-9]{3}))?"  # region
    r"(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"  # variants
    r"(?:-[0-9a-wyz](?:-[a-z0-9]{2,8})+)*"  # extensions
    r"(?:-x(?:-[a-z0-9]{1,8})+)?",  # private use
    re.IGNORECASE | re.ASCII,
)


def canonical_tag(tag: str) -> str:
    """The tag in canonical case: `EN` → `en`, `zh-hans` → `zh-Hans`, `pt_BR` is refused.

    The rule is that of RFC 5646, section 2.1.1: a region is upper case, a script has a
    capital, everything else, and whatever follows a singleton, is lower case.

    Raises:
        InputError: The tag is not well-formed.
    """
    if len(tag) > MAX_TAG_LENGTH:
        raise InputError(
            f"the language tag has {len(tag)} characters; at most {MAX_TAG_LENGTH} are allowed",
            value=len(tag),
            limit=MAX_TAG_LENGTH,
        )
    if _TAG.fullmatch(tag) is None:
        raise InputError(
            f"{tag!r} is not a well-formed language tag such as 'en', 'zh-Hans' or 'pt-BR'",
            value=tag,
            limit="a BCP-47 language tag",
        )
    first, *rest = tag.lower().split("-")
    parts, is_after_singleton = [first], False
    for part in rest:
        is_after_singleton = is_after_singleton or len(part) == 1
        parts.append(part if is_after_singleton else _cased(part))
    return "-".join(parts)


def primary_language(tag: str) -> str:
    """The language alone, in lower case: `zh-Hans` → `zh`."""
    return tag.partition("-")[0].lower()


def _cased(part: str) -> str:
    if len(part) == 2:
        return part.upper()
    if len(part) == 4 and part.isalpha():
        return part.capitalize()
    return part
