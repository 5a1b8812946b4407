"""Headers of a request, as every request looks a few of them up.

Owns that a look costs no mapping and, where there is no such header, no exception. What a header
means is its reader's.
"""

from starlette.types import Scope


def header_of(scope: Scope, name: bytes, default: str = "") -> str:
    """The first header of a name, which is given in small letters."""
    for given, value in scope["headers"]:
        if given == name:
            text: str = value.decode("latin-1")
            return text
    return default


def headers_of(scope: Scope, name: bytes) -> list[str]:
    """All headers of a name, in order."""
    return [value.decode("latin-1") for given, value in scope["headers"] if given == name]
