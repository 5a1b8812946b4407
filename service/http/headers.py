"""Security headers of every answer.

Owns them and nothing else; the edge sets them, and the protocol on what it refuses itself. An
answer may bring a value of its own: pages have a policy that lets them load their files.
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

# What a page of this server may load: what the server has, and nothing that is written into the
# page. Trusted types forbid scripts to make markup of text.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
