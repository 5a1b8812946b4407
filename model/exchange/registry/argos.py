"""Argos Translate's index: packages → listings and offers.

Owns the layout of `index.json`, a list of packages with `code`, `from_code`, `to_code`,
`package_version` and `links`. The index has neither sizes nor checksums nor licences: a package is
asked for its size, and what it says of itself is read when it is converted.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from model.errors import InputError, RegistryError
from model.exchange.registry.documents import Documents
from model.exchange.registry.fields import Fields, objects_of
from model.exchange.registry.listing import (
    Content,
    Listing,
    Offer,
    RemoteFile,
    below,
    checked_files,
    checksum,
    linked,
)
from model.exchange.registry.names import ArgosName
from model.exchange.registry.urls import probed
from model.text.languages.tags import ARGOS_CODES, canonical_tag

ARGOS_VARIABLE = "DRAGOMAN_ARGOS_URL"
ARGOS_URL = "https://raw.githubusercontent.com/argosopentech/argospm-index/main"

_NUMBER = re.compile(r"[0-9]{1,18}")
_INDEX = "index.json"
_MAX_PACKAGE_BYTES = 2**33


class Argos:
    """The index, or a mirror of it.

    Args:
        base: The folder that has `index.json`; relative links in it are below it.
        documents: Way to the index.
    """

    def __init__(self, base: str, documents: Documents) -> None:
        self._base, self._documents = base, documents

    def find(self, name: ArgosName) -> Listing:
        """The listing of a pair's newest package.

        Raises:
            RegistryError: There is none, or nothing of it can be downloaded.
        """
        packages = [
            item
            for item in self._packages()
            if (item.text("from_code"), item.text("to_code")) == (name.source, name.target)
        ]
        if not packages:
            raise RegistryError(self._url(), f"has no package from {name.source} to {name.target}")
        return self._listing(name, max(packages, key=_version_key))

    def offers(self, source: str, target: str) -> tuple[Offer, ...]:
        """The packages of a direction, by canonical tags."""
        offers = []
        for item in self._packages():
            pair = _pair(item)
            if pair == (source, target):
                code = f"{item.text('from_code')}-{item.text('to_code')}"
                version = item.optional_text("package_version")
                note = "" if version is None else f"version {version}"
                offers.append(Offer(name=f"argos:{code}", pairs=(pair,), note=note))
        return tuple(offers)

    def _url(self) -> str:
        return below(self._base, _INDEX)

    def _packages(self) -> Iterator[Fields]:
        """Packages that translate; the index may hold other ones."""
        for item in objects_of(self._url(), "", self._documents.get(self._url())):
            is_translating = item.optional_text("type") in {None, "translate"}
            if is_translating and item.optional_text("from_code") and item.optional_text("to_code"):
                yield item

    def _listing(self, name: ArgosName, item: Fields) -> Listing:
        url = self._link(item)
        path = PurePosixPath(urlsplit(url).path).name
        content = probed(url, self._documents)
        stated = checksum("sha256", item.optional_text("sha256"), self._url())
        file = RemoteFile(
            path=path,
            url=url,
            stored=Content(size=content.size, checksum=stated),
            max_bytes=_MAX_PACKAGE_BYTES,
        )
        pair = _pair(item)
        names = (item.optional_text("from_name"), item.optional_text("to_name"))
        return Listing(
            name=str(name),
            folder=f"argos-{name.source}-{name.target}",
            version=item.optional_text("package_version") or content.version,
            registry="Argos Translate",
            files=checked_files((file,), self._url()),
            archive=path,
            pairs=() if pair is None else (pair,),
            has_exact_pairs=pair is not None,
            languages=tuple(each for each in names if each),
            description=f"Argos Translate's package {item.optional_text('code') or name}",
            url="https://www.argosopentech.com",
        )

    def _link(self, item: Fields) -> str:
        """The first link that can be followed; others are of other protocols."""
        links = item.texts("links")
        for link in links:
            if urlsplit(link).scheme in {"http", "https", "file", ""}:
                return linked(self._url(), link)
        raise item.error("links", f"has {len(links)} links, none of them to http or https")


def _pair(item: Fields) -> tuple[str, str] | None:
    try:
        source, target = (
            canonical_tag(ARGOS_CODES.get(code.lower(), code).replace("_", "-"))
            for code in (item.text("from_code"), item.text("to_code"))
        )
    except InputError:
        return None
    return source, target


def _version_key(item: Fields) -> tuple[int, ...]:
    """The numbers of a version: 1.10 is newer than 1.9, and what is no number is oldest."""
    parts = (item.optional_text("package_version") or "").split(".")
    return tuple(int(part) if _NUMBER.fullmatch(part) else -1 for part in parts[:8])
