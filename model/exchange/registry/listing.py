"""Listing of one model in a registry, and the refusal of what no listing may say.

Owns the types, and the refusals that hold for every registry: names of files that leave the folder
or hide in it, sizes without bound, addresses of another kind than the registry's own. Does not own
any registry's layout.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urljoin, urlsplit

from model.errors import RegistryError, shown

MAX_FILES = 1_000
MAX_FILE_BYTES = 2**38
"""256 GiB: no translation model is near."""

_MAX_NAME_BYTES = 200  # leaves room for what is put around a name while the file grows
_MAX_PATH_CHARACTERS = 1_000
_OPAQUE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_CHECKSUM_DIGITS = {"sha256": 64, "git-sha1": 40}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checksum:
    """Checksum of a file's bytes.

    Attributes:
        kind: SHA-256; or git's name of a blob, SHA-1 over `blob <size>`, a zero byte and the bytes.
        digest: Hexadecimal, in lower case.
    """

    kind: Literal["sha256", "git-sha1"]
    digest: str

    def __post_init__(self) -> None:
        """See `Raises` of `checksum`."""
        digits = set(self.digest)
        if len(self.digest) != _CHECKSUM_DIGITS[self.kind] or digits - set("0123456789abcdef"):
            raise ValueError(f"{shown(self.digest)} is no {self.kind} checksum")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Bytes that a file must have.

    Attributes:
        size: In bytes; None where the registry does not say.
        checksum: None where the registry does not say.
    """

    size: int | None = None
    checksum: Checksum | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """One file of a model.

    Attributes:
        path: Where it goes, below the model's folder.
        url: Where it is.
        stored: The bytes that come.
        unpacked: The bytes that they are once unpacked with gzip; None where they stay as they are.
            Some servers unpack on the way, so either may come.
        max_bytes: The most that may come, and that may be there once unpacked.
    """

    path: str
    url: str
    stored: Content = Content()
    unpacked: Content | None = None
    max_bytes: int = MAX_FILE_BYTES

    @property
    def final(self) -> Content:
        """The bytes of the file that is kept."""
        return self.stored if self.unpacked is None else self.unpacked

    @property
    def known_bytes(self) -> int:
        """Bytes on the disk at most at once, as far as the registry says."""
        packed = 0 if self.unpacked is None else self.unpacked.size or 0
        return (self.stored.size or 0) + packed


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A published score.

    Attributes:
        metric: "BLEU", "COMET", as it was published.
        value: Likewise: COMET may be of 1 or of 100.
        test_set: What was translated.
        pair: Of a multilingual model, the direction; "" otherwise.
    """

    metric: str
    value: float
    test_set: str
    pair: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One model, as its registry describes it.

    Attributes:
        name: What it was asked for by, in its full form.
        folder: Suggested name of the folder it becomes ("opus-mt-en-de").
        version: Names these very files: a commit, a version, part of a checksum.
        registry: For people ("Hugging Face").
        files: What is downloaded.
        archive: Name of the file that holds the model; None where the folder does.
        licence: Of the weights, as the registry says; None where it does not.
        pairs: Source and target tags, canonical; empty where only the files tell.
        has_exact_pairs: Whether the model has these directions and no other; else its files say
            more, such as of which script.
        languages: For people, where there are no pairs.
        scores: Published ones.
        description: One line for people.
        url: Its page.
    """

    name: str
    folder: str
    version: str
    registry: str
    files: tuple[RemoteFile, ...]
    archive: str | None = None
    licence: str | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    has_exact_pairs: bool = False
    languages: tuple[str, ...] = ()
    scores: tuple[Score, ...] = ()
    description: str = ""
    url: str = ""

    @property
    def known_bytes(self) -> int:
        """Bytes of the download, as far as the registry says."""
        return sum(file.stored.size or file.final.size or 0 for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A model that could be had: a row of what a registry has for a direction.

    Attributes:
        name: What `parse_name` takes.
        pairs: Directions, canonical; empty for one with many languages.
        licence: As far as the registry says without being asked for more.
        size: Of the download in bytes, likewise.
        score: A published one, likewise.
        note: What else tells it from others ("tiny", "4.2M downloads").
    """

    name: str
    pairs: tuple[tuple[str, str], ...]
    licence: str | None = None
    size: int | None = None
    score: Score | None = None
    note: str = ""


def checksum(kind: Literal["sha256", "git-sha1"], digest: str | None, url: str) -> Checksum | None:
    """A registry's checksum, None where it says none.

    Raises:
        RegistryError: It is none of that kind.
    """
    if digest is None:
        return None
    try:
        return Checksum(kind=kind, digest=digest.lower())
    except ValueError as error:
        raise RegistryError(url, str(error)) from error


def checked_files(files: Sequence[RemoteFile], url: str) -> tuple[RemoteFile, ...]:
    """Files of a listing, once none of them can harm.

    Raises:
        RegistryError: There are none, or too many; a name leaves the folder or stands twice; a size
            is beyond all bounds.
    """
    if not 1 <= len(files) <= MAX_FILES:
        raise RegistryError(url, f"lists {len(files)} files; 1 to {MAX_FILES} are possible")
    seen: set[str] = set()
    for file in files:
        if problem := path_problem(file.path):
            raise RegistryError(url, f"lists a file {shown(file.path)}, which {problem}")
        key = unicodedata.normalize("NFC", file.path).casefold()
        if key in seen:
            raise RegistryError(url, f"lists {shown(file.path)} twice")
        seen.add(key)
        size = max(file.stored.size or 0, file.final.size or 0)
        if size > file.max_bytes:
            problem = f"of {size} bytes; at most {file.max_bytes} are downloaded"
            raise RegistryError(url, f"lists a file {shown(file.path)} {problem}")
    return tuple(files)


def path_problem(path: str) -> str | None:
    """Why a name of a file is refused, to follow "which"; None if it is a plain one."""
    parts = path.split("/")
    if len(path) > _MAX_PATH_CHARACTERS or any(
        len(part.encode(errors="replace")) > _MAX_NAME_BYTES for part in parts
    ):
        return f"is longer than {_MAX_NAME_BYTES} bytes"
    if leaves_folder(path):
        return "leaves the folder"
    if any(part.startswith((".", "~")) for part in parts):
        return "is hidden"
    if "\\" in path or ":" in path or any(unicodedata.category(sign) in _OPAQUE for sign in path):
        return "has signs that no name needs"
    return None


def leaves_folder(path: str) -> bool:
    """Whether a path is absolute, or has parts that are no names."""
    return any(part in {"", ".", ".."} for part in path.replace("\\", "/").split("/"))


def below(base: str, path: str) -> str:
    """The URL of a path below a base, whether the base ends in a slash or not; signs are quoted."""
    return f"{base.rstrip('/')}/{quote(path)}"


def linked(document_url: str, link: str) -> str:
    """The address that a document links to, relative links resolved.

    Raises:
        RegistryError: It is no http or https, or a local file that no local document names, or it
            has a password in it.
    """
    try:
        url = urljoin(document_url, link)
        parts, own = urlsplit(url), urlsplit(document_url)
        has_password = "@" in parts.netloc
    except ValueError as error:
        raise RegistryError(document_url, f"links to {shown(link)}: {error}") from error
    allowed = {"http", "https"} | ({"file"} if own.scheme == "file" else set())
    if parts.scheme not in allowed or has_password:
        raise RegistryError(document_url, f"links to {shown(link)}, which is not followed")
    return url


def file_url(path: Path) -> str:
    """A local path as a URL."""
    return path.absolute().as_uri()
