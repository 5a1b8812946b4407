"""Files of the web page, from the package: their bytes, media types and entity tags.

Owns which files there are and what is known of each. How they are answered is
`service.web.routes`; what the page does is `static/`, plain HTML, CSS and ES modules.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePosixPath

PAGE_NAME = "index.html"
MEDIA_TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFile:
    """A file of the page.

    Attributes:
        content: Its bytes.
        media_type: What a browser is told it is.
        etag: Entity tag: quoted, and the same for the same bytes.
    """

    content: bytes
    media_type: str
    etag: str


def load_static_files() -> dict[str, StaticFile]:
    """Every file of the page by its name; there are no folders among them.

    Raises:
        FileNotFoundError: The package was installed without its files.
    """
    folder = files("service.web") / "static"
    return {
        entry.name: static_file(entry.name, entry.read_bytes())
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if PurePosixPath(entry.name).suffix in MEDIA_TYPES
    }


def static_file(name: str, content: bytes) -> StaticFile:
    """A file of one of the known media types."""
    return StaticFile(
        content=content,
        media_type=MEDIA_TYPES[PurePosixPath(name).suffix],
        etag=f'"{sha256(content).hexdigest()[:32]}"',
    )
