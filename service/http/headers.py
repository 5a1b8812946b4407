"""Security headers of every answer.

Owns them and nothing else; the edge sets them, and the protocol on what it refuses itself. An
answer may bring a value of its own: the documentation has one small style sheet.
"""

from collections.abc import Mapping
from types import MappingProxyType

SECURITY_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        # Translations are private text: no cache keeps them.
        "cache-control": "no-store",
        # Nothing here is a page: nothing is loaded, nothing is framed.
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
)
