"""Documents that are zip archives: bounded reading of members, and archives with some replaced.

Owns what is refused of an archive: too many or too large members by what its directory declares
(no more is ever unpacked), encryption, packing that is not read, names that come twice, damage of
any member. What is wrong with a member is told with its name. Members that are not replaced are
copied. Names in UTF-8 are read as such whether or not the archive says so, and are written with its
saying so. What is in a member is for the formats to say.
"""

import copy
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from model.documents.markup.xml_events import Event, xml_events
from model.documents.notation.document import Document
from model.documents.notation.encoding import Encoded, decoded_markup
from model.documents.notation.limits import DocumentLimits, check_read
from model.documents.notation.template import Template, check_number
from model.errors import DocumentError, shown

_COMPOUND_FILE = bytes.fromhex("d0cf11e0a1b11ae1")
_IS_ENCRYPTED = 0x1
_IS_UTF8 = 0x800
_METHODS = frozenset({ZIP_STORED, ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA})
_BLOCK = 2**20
_DAMAGES = (
    BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, RuntimeError,
)  # fmt: skip


class Archive:
    """An archive in memory.

    Args:
        kind: Of the document, for its errors.
        data: The file.
        limits: On members and their sizes.

    Raises:
        DocumentError: It is no archive, encrypted, packed by a method that is not read, or beyond
            the limits.
    """

    def __init__(self, kind: str, data: bytes, limits: DocumentLimits) -> None:
        if data.startswith(_COMPOUND_FILE):
            raise DocumentError(kind, "is encrypted, or of an older format than its name says")
        self._kind = kind
        try:
            self._zip = ZipFile(io.BytesIO(data))
        except _DAMAGES as error:
            raise DocumentError(kind, f"is no zip archive: {error}") from error
        members = self._zip.infolist()
        if len(members) > limits.max_members:
            raise DocumentError(
                kind, f"has {len(members)} members; at most {limits.max_members} are read"
            )
        size = sum(member.file_size for member in members)
        if size > limits.max_unpacked_bytes:
            raise DocumentError(
                kind, f"unpacks to {size} bytes; at most {limits.max_unpacked_bytes} are read"
            )
        if any(member.flag_bits & _IS_ENCRYPTED for member in members):
            raise DocumentError(kind, "is encrypted")
        foreign = next((one for one in members if one.compress_type not in _METHODS), None)
        if foreign is not None:
            raise DocumentError(
                kind,
                f"has a member {shown(_name(foreign))} that is packed by method"
                f" {foreign.compress_type}; methods 0, 8, 12 and 14 are read",
            )
        for member in members:
            member.filename = _name(member)
        self._members = {member.filename: member for member in members}
        if len(self._members) < len(members):
            raise DocumentError(kind, "has two members of one name")

    @property
    def names(self) -> list[str]:
        """Names of the members, in order."""
        return list(self._members)

    def size(self, names: Sequence[str]) -> int:
        """Bytes of some members together."""
        return sum(self._members[name].file_size for name in names if name in self._members)

    def read(self, name: str) -> bytes:
        """The bytes of a member.

        Raises:
            DocumentError: There is none, or it is damaged.
        """
        if name not in self._members:
            raise DocumentError(self._kind, f"has no member {shown(name)}")
        return self._read(self._members[name])

    def check(self, names: Iterable[str]) -> None:
        """Read members and keep nothing of them.

        Raises:
            DocumentError: One is damaged.
        """
        for name in names:
            with self._unpacking(self._members[name]) as file:
                while file.read(_BLOCK):
                    pass

    def text(self, name: str) -> Encoded:
        """A member that is XML or HTML; errors as of `read`, and of its encoding."""
        data = self.read(name)
        with _in_member(name):
            return decoded_markup(self._kind, data)

    def events(self, name: str, limits: DocumentLimits) -> Iterator[Event]:
        """The events of a member that is XML; errors as of `text`, and of them."""
        text = self.text(name).text
        with _in_member(name):
            yield from xml_events(text, self._kind, limits)

    def rebuilt(self, replaced: Mapping[str, bytes]) -> bytes:
        """The archive with other bytes for some members."""
        output = io.BytesIO()
        with ZipFile(output, "w") as archive:
            archive.comment = self._zip.comment
            for name, member in self._members.items():
                new = copy.copy(member)
                new.extra = b""
                archive.writestr(new, replaced[name] if name in replaced else self._read(member))
        return output.getvalue()

    def _read(self, member: ZipInfo) -> bytes:
        with self._unpacking(member) as file:
            return file.read(member.file_size)  # without a size it would unpack first, then cut

    @contextmanager
    def _unpacking(self, member: ZipInfo) -> Iterator[IO[bytes]]:
        """A member, opened; what goes wrong while it is read is told."""
        try:
            with self._zip.open(member) as file:
                yield file
        except _DAMAGES as error:
            raise DocumentError(
                self._kind, f"has a damaged member {shown(member.filename)}: {error}"
            ) from error


@contextmanager
def _in_member(name: str) -> Iterator[None]:
    """Whatever is wrong is said to be so in a member."""
    try:
        yield
    except DocumentError as error:
        problem = f"has a member {shown(name)} that {error.problem}"
        raise DocumentError(error.kind, problem) from error


def _name(member: ZipInfo) -> str:
    """The name of a member; macOS and others write UTF-8 and do not say so."""
    if member.flag_bits & _IS_UTF8:
        return member.filename
    try:
        return member.filename.encode("cp437").decode()
    except UnicodeError:
        return member.filename


def archived_document(
    kind: str,
    archive: Archive,
    names: Sequence[str],
    limits: DocumentLimits,
    read: Callable[[str, str], Template],
) -> Document:
    """A document whose texts are in some members of an archive.

    Args:
        kind: Its kind.
        archive: It.
        names: Those members, in the order of reading.
        limits: On the number of texts.
        read: From a member's name and text to its template.
    """
    check_read(kind, archive.size(names), limits)
    encoded = {name: archive.text(name) for name in names}
    templates: dict[str, Template] = {}
    for name, member in encoded.items():
        with _in_member(name):
            templates[name] = read(name, member.text)
    texts = tuple(text for template in templates.values() for text in template.texts)
    if len(texts) > limits.max_texts:
        raise DocumentError(kind, f"has {len(texts)} texts; at most {limits.max_texts} are read")
    # What is only copied: a damaged picture would else be found when all is translated.
    archive.check(name for name in archive.names if name not in encoded)

    def rebuild(translations: Sequence[str], language: str | None = None) -> bytes:
        check_number(texts, translations)
        language = language if texts else None
        replaced: dict[str, bytes] = {}
        done = 0
        for name, template in templates.items():
            own = translations[done : done + len(template.texts)]
            done += len(template.texts)
            is_said = language is not None and template.says_language
            if is_said or tuple(own) != template.texts:
                replaced[name] = encoded[name].encoded(template.rebuilt(own, language))
        return archive.rebuilt(replaced)

    return Document(kind=kind, texts=texts, rebuild=rebuild)
