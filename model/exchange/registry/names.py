"""Names of models: what a person may write, and what it means.

Owns the forms and their syntax. Whether there is such a model, the registry says.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from model.errors import ConfigError, InputError, shown
from model.text.languages.tags import lenient_tag

FORMS = (
    "hf:OWNER/NAME or OWNER/NAME, each with @REVISION if wanted (Hugging Face)",
    "firefox:de-en, with /tiny, /base-memory or /base if wanted",
    "argos:en-de or argos:translate-en_de",
    "opus:en-de/opus-2020-02-26.zip or opus:https://….zip",
    "https://….zip or ….argosmodel, with #sha256=… if wanted",
    "a path that begins with /, ./ or ~",
)
ARCHIVE_SUFFIXES = (".zip", ".argosmodel")

_HUB_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_-])?"
_REVISION_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_REVISION = rf"({_REVISION_PART}(?:/{_REVISION_PART}){{0,9}})"
_HUB = re.compile(rf"({_HUB_PART}/{_HUB_PART})(?:@{_REVISION})?")
_HUB_PAGE = re.compile(
    rf"https://huggingface\.co/({_HUB_PART}/{_HUB_PART})(?:/tree/{_REVISION})?/?"
)
_PAIR = re.compile(r"([A-Za-z]{2,8}(?:_[A-Za-z]{4})?)-([A-Za-z]{2,8}(?:_[A-Za-z]{4})?)")
_FIREFOX_CODE = r"([A-Za-z]+(?:-[A-Z][A-Za-z]{3}|_[A-Za-z]{4})?)"
_FIREFOX = re.compile(f"{_FIREFOX_CODE}-{_FIREFOX_CODE}")
_ARCHITECTURE = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_ARGOS_CODE = re.compile(r"translate-([a-z]{2,8})_([a-z]{2,8})", re.IGNORECASE)
_OPUS = re.compile(r"[A-Za-z0-9_+-]{1,100}/[A-Za-z0-9][A-Za-z0-9._+-]{0,100}\.zip")
_CHECKSUM = re.compile(r"sha256=([0-9a-f]{64})")
_HOME = "~"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubName:
    """A repository of the Hugging Face hub.

    Attributes:
        repository: `owner/name`.
        revision: A branch, a tag or a commit.
    """

    repository: str
    revision: str = "main"

    def __str__(self) -> str:
        return f"hf:{self.repository}" + ("" if self.revision == "main" else f"@{self.revision}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FirefoxName:
    """A pair of the Firefox Translations registry.

    Attributes:
        source: Canonical tag (`de`, `zh-Hant`; the registry writes `zh_hant`).
        target: Likewise.
        architecture: `tiny`, `base-memory`, `base`; None takes the best of what is released.
    """

    source: str
    target: str
    architecture: str | None = None

    def __str__(self) -> str:
        size = "" if self.architecture is None else f"/{self.architecture}"
        return f"firefox:{self.source}-{self.target}{size}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgosName:
    """A package of the Argos index, by its languages as the index writes them."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"argos:{self.source}-{self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpusName:
    """A release of OPUS-MT: `pair/file.zip` below its folder of models."""

    path: str

    def __str__(self) -> str:
        return f"opus:{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveName:
    """An archive at a URL.

    Attributes:
        url: Without a fragment.
        sha256: That its bytes must have; None where it is not known.
        is_opus: Whether it is a release of OPUS-MT, whose licence is known.
    """

    url: str
    sha256: str | None = None
    is_opus: bool = False

    def __str__(self) -> str:
        return ("opus:" if self.is_opus else "") + self.url


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalName:
    """A folder or an archive that is here already."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)


ModelName = HubName | FirefoxName | ArgosName | OpusName | ArchiveName | LocalName


def parse_name(text: str) -> ModelName:
    """What a name means.

    Raises:
        ConfigError: It means nothing, or more than one thing; the message lists the forms.
    """
    scheme, colon, rest = text.partition(":")
    if match := _HUB_PAGE.fullmatch(text):
        return HubName(repository=match[1], revision=match[2] or "main")
    if colon and rest.startswith("//"):
        return _archive(text)
    if colon:
        return _of_registry(scheme, rest, text)
    if text.startswith(("/", "./", "../", _HOME)) or text in {".", ".."}:
        return LocalName(path=Path(text).expanduser() if text[0] == _HOME else Path(text))
    if match := _HUB.fullmatch(text):
        if os.path.lexists(text):
            raise ConfigError(f"{text} is also a path here: write ./{text} or hf:{text}")
        return HubName(repository=match[1], revision=match[2] or "main")
    if os.path.lexists(text):
        return LocalName(path=Path(text))
    raise unknown(text)


def unknown(text: str) -> ConfigError:
    """The error that a name means nothing, to be raised."""
    return ConfigError(f"{shown(text)} is no name of a model; names are: {'; '.join(FORMS)}")


def _of_registry(scheme: str, rest: str, text: str) -> ModelName:
    if scheme == "hf" and (match := _HUB.fullmatch(rest)):
        return HubName(repository=match[1], revision=match[2] or "main")
    if scheme == "firefox" and (firefox := _firefox(rest)):
        return firefox
    if scheme == "argos" and (match := _ARGOS_CODE.fullmatch(rest) or _PAIR.fullmatch(rest)):
        return ArgosName(source=match[1].lower(), target=match[2].lower())
    if scheme == "opus" and _OPUS.fullmatch(rest):
        return OpusName(path=rest)
    if scheme == "opus" and "://" in rest:
        return _archive(rest, is_opus=True)
    raise unknown(text)


def _firefox(rest: str) -> FirefoxName | None:
    pair, slash, architecture = rest.partition("/")
    match = _FIREFOX.fullmatch(pair)
    if match is None or (slash and not _ARCHITECTURE.fullmatch(architecture)):
        return None
    try:
        source, target = lenient_tag(match[1]), lenient_tag(match[2])
    except InputError:
        return None
    return FirefoxName(source=source, target=target, architecture=architecture or None)


def _archive(text: str, *, is_opus: bool = False) -> ArchiveName:
    url, _, fragment = text.partition("#")
    try:
        parts = urlsplit(url)
        has_password = "@" in parts.netloc
    except ValueError as error:
        raise unknown(text) from error
    if has_password:
        raise ConfigError("the URL has a user name or a password in it; it would be written down")
    if parts.scheme not in {"http", "https", "file"}:
        raise unknown(text)
    if not parts.path.endswith(ARCHIVE_SUFFIXES):
        raise ConfigError(
            f"{shown(url)} does not end in {' or '.join(ARCHIVE_SUFFIXES)}, so it is no archive"
        )
    match = _CHECKSUM.fullmatch(fragment)
    if fragment and match is None:
        raise ConfigError(f"#{shown(fragment)} is no checksum such as #sha256= and 64 digits")
    return ArchiveName(url=url, sha256=match[1] if match else None, is_opus=is_opus)
