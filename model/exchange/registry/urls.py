"""Archives at URLs, and releases of OPUS-MT, which are some.

Owns what can be known of a file that no registry describes: its size and its validator, by asking
the server for the headers alone.
"""

import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from model.errors import InputError, RegistryError
from model.exchange.registry.documents import Documents
from model.exchange.registry.listing import (
    Content,
    Listing,
    RemoteFile,
    below,
    checked_files,
    checksum,
)
from model.exchange.registry.names import ArchiveName, OpusName
from model.exchange.registry.retries import check_status
from model.exchange.registry.transport import Reply, content_length
from model.text.languages.tags import canonical_tag

OPUS_VARIABLE = "DRAGOMAN_OPUS_URL"
OPUS_URL = "https://object.pouta.csc.fi/OPUS-MT-models"
OPUS_LICENCE = "CC-BY-4.0"

_MAX_ARCHIVE_BYTES = 2**36
_NO_HEAD = {403, 405, 501}
_TWO_CODES = re.compile(r"([a-z]{2,3})-([a-z]{2,3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Facts of a file that a server tells before it sends it.

    Attributes:
        size: In bytes; None if it does not say.
        version: Of the file, by its validator; of its address where it has none.
    """

    size: int | None
    version: str


def probed(url: str, documents: Documents) -> Probe:
    """Ask for the headers of a file.

    Raises:
        RegistryError: It is not there.
        UnreachableError: There is no answer.
    """

    def ask() -> Probe:
        reply = documents.transport.request(url, method="HEAD")
        if reply.status in _NO_HEAD:  # some servers sign addresses for one method only
            reply.close()
            return _probe(url, None)
        check_status(reply, url)
        reply.close()
        return _probe(url, reply)

    return documents.retries.run(ask)


def find_archive(name: ArchiveName, documents: Documents) -> Listing:
    """The listing of an archive.

    Raises:
        RegistryError: It is not there.
    """
    found = probed(name.url, documents)
    path = PurePosixPath(urlsplit(name.url).path)
    file = RemoteFile(
        path=path.name,
        url=name.url,
        stored=Content(size=found.size, checksum=checksum("sha256", name.sha256, name.url)),
        max_bytes=_MAX_ARCHIVE_BYTES,
    )
    return Listing(
        name=str(name),
        folder=f"opus-mt-{path.parent.name}" if name.is_opus else path.stem,
        version=name.sha256[:16] if name.sha256 else found.version,
        registry="OPUS-MT" if name.is_opus else urlsplit(name.url).hostname or "this machine",
        files=checked_files((file,), name.url),
        archive=path.name,
        licence=OPUS_LICENCE if name.is_opus else None,
        pairs=_pairs(path.parent.name) if name.is_opus else (),
        description=path.name,
        url=name.url,
    )


def find_opus(name: OpusName, base: str, documents: Documents) -> Listing:
    """The listing of a release of OPUS-MT.

    Raises:
        RegistryError: It is not there.
    """
    archive = ArchiveName(url=below(base, name.path), is_opus=True)
    return replace(find_archive(archive, documents), name=str(name))


def _probe(url: str, reply: Reply | None) -> Probe:
    size = None if reply is None else content_length(reply.headers)
    tag = None if reply is None else reply.headers.get("ETag")
    validator = tag or f"{url} {size}"
    return Probe(size=size, version=hashlib.sha256(validator.encode()).hexdigest()[:16])


def _pairs(folder: str) -> tuple[tuple[str, str], ...]:
    """The direction that a folder of OPUS-MT says: `en-de`."""
    match = _TWO_CODES.fullmatch(folder)
    if match is None:
        return ()
    try:
        return ((canonical_tag(match[1]), canonical_tag(match[2])),)
    except InputError as error:
        raise RegistryError(folder, "names no languages") from error
