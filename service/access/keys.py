"""API keys: generation, storage as hashes, parsing and lookup.

Owns the keys files and the comparison. Knows neither HTTP nor what a key opens, which is
`service.access.access`, nor when files are read again (`service.access.key_store`), nor what is
wrong in a line that is no TOML (`service.access.key_lines`). A file holds one line a key, as TOML:

    alice = { sha256 = "…64 hexadecimal digits…", requests_per_minute = 60, admin = true }

Only hashes are kept. One SHA-256 is enough, because a key is 256 random bits: a slow hash is
for secrets that can be guessed. So that no short password is ever taken for a key, what has
fewer than `MIN_KEY_LENGTH` characters opens nothing.
"""

import hmac
import os
import re
import secrets
import stat
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from model.errors import ConfigError
from service.access.key_lines import NAME_PATTERN, cause
from service.bounds import MAX_PER_MINUTE

MIN_KEY_LENGTH = 22
"""Characters that 128 bits have in base64."""
MAX_KEY_LENGTH = 256
MAX_KEYS = 1000
KEYS_SUFFIX = ".toml"

_PREFIX = "dragoman_"
_NUM_RANDOM_BYTES = 32
_NAME = re.compile(NAME_PATTERN)
_SHA256 = re.compile("[0-9a-f]{64}")
_LIMITS = ("requests_per_minute", "characters_per_minute")
_FIELDS = ("sha256", *_LIMITS, "admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """One API key by its hash, name and limits; never the key itself.

    Attributes:
        name: Who it was given to; it is written to the log.
        sha256: Of the key, 32 bytes.
        requests_per_minute: Its limit; None takes the server's.
        characters_per_minute: Its limit; None takes the server's.
        is_admin: It also opens the administration.
    """

    name: str
    sha256: bytes
    requests_per_minute: int | None = None
    characters_per_minute: int | None = None
    is_admin: bool = False

    def __repr__(self) -> str:
        return f"ApiKey({self.name}{', admin' if self.is_admin else ''})"

    def line(self) -> str:
        """The key's line of a keys file."""
        fields = [f'sha256 = "{self.sha256.hex()}"']
        fields += [
            f"{name} = {value}" for name in _LIMITS if (value := getattr(self, name)) is not None
        ]
        if self.is_admin:
            fields.append("admin = true")
        return f"{self.name} = {{ {', '.join(fields)} }}"


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Keys of a server; none means that it is open."""

    keys: tuple[ApiKey, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.keys)

    @property
    def has_admin(self) -> bool:
        """Whether a key opens the administration."""
        return any(key.is_admin for key in self.keys)

    def find(self, presented: str) -> ApiKey | None:
        """The key that `presented` is; every hash is compared, each in constant time."""
        if not MIN_KEY_LENGTH <= len(presented) <= MAX_KEY_LENGTH:
            return None
        digest = _digest(presented)
        found = None
        for key in self.keys:
            if hmac.compare_digest(key.sha256, digest):
                found = key
        return found


def new_key(random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> tuple[str, bytes]:
    """A fresh key of 256 random bits, and its SHA-256."""
    key = _PREFIX + random_bytes(_NUM_RANDOM_BYTES).hex()
    return key, _digest(key)


def check_name(name: str) -> str:
    """`name`, if it is a valid name of a key.

    Raises:
        ConfigError: It has other characters, or too many.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            "the name of a key has 1 to 64 letters, digits, hyphens and underscores;"
            f" this one has {len(name)} characters"
        )
    return name


def load_keys(
    path: Path | None, text: str = "", *, directory: Path | None = None, may_be_none: bool = False
) -> KeyRing:
    """The keys of a file, of the files of a directory, and of `text`, which is written like one.

    Args:
        path: A file of keys.
        text: Further keys.
        directory: Where every file whose name ends in `.toml` is a file of keys, but for hidden
            ones: what editors leave beside a file brings no key back.
        may_be_none: A file or directory that is gone has no keys, and none at all is no error.

    Raises:
        ConfigError: Something cannot be read or is not a keys file; the message names place and
            rule, never a value, which could be a key that was pasted in place of its hash.
    """
    found = [(key, "DRAGOMAN_API_KEYS") for key in parse_keys(text, "DRAGOMAN_API_KEYS")]
    if text and not found:
        raise ConfigError("DRAGOMAN_API_KEYS has no key")
    if path is not None:
        in_file = _read_keys(path, may_be_missing=may_be_none)
        # A named file means a closed server; an empty one would leave it open.
        if not in_file and not may_be_none:
            raise ConfigError(f"the keys file {path} has no key")
        found += in_file
    if directory is not None:
        files = keys_files(directory, may_be_missing=may_be_none)
        in_files = [key for one in files for key in _read_keys(one, may_be_missing=may_be_none)]
        if not in_files and not may_be_none:
            raise ConfigError(
                f"the directory of keys {directory} has no key: it has {len(files)} files whose"
                f" names end in {KEYS_SUFFIX}"
            )
        found += in_files
    if len(found) > MAX_KEYS:
        raise ConfigError(f"there are {len(found)} keys; the limit is {MAX_KEYS}")
    _check_distinct(found)
    return KeyRing(tuple(key for key, _ in found))


def keys_files(directory: Path, *, may_be_missing: bool = False) -> list[Path]:
    """The files of a directory that are read for keys, in order of their names.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        entries = sorted(directory.iterdir())
    except OSError as error:
        if may_be_missing and isinstance(error, FileNotFoundError):
            return []
        raise _unreadable(f"the directory of keys {directory}", directory, error) from error
    return [entry for entry in entries if entry.suffix == KEYS_SUFFIX and entry.name[0] != "."]


def _read_keys(path: Path, *, may_be_missing: bool) -> list[tuple[ApiKey, str]]:
    """The keys of a file, each with the file's name."""
    try:
        if path.exists() and not path.is_file():
            hint = "; name a directory with DRAGOMAN_API_KEYS_DIR" if path.is_dir() else ""
            raise ConfigError(f"the keys file {path} is no file{hint}")
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if may_be_missing:
            return []
        raise _unreadable(f"the keys file {path}", path, error) from error
    except OSError as error:
        raise _unreadable(f"the keys file {path}", path, error) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the keys file {path} cannot be read: not UTF-8") from error
    return [(key, str(path)) for key in parse_keys(content, str(path))]


def _unreadable(subject: str, path: Path, error: OSError) -> ConfigError:
    """The error's reason and, of permissions, which user owns the file and which one reads it."""
    problem = f"{subject} cannot be read: {error.strerror or error}"
    if not isinstance(error, PermissionError):
        return ConfigError(problem)
    needed = f"the server runs as user {os.geteuid()}, group {os.getegid()}"
    try:
        status = path.stat()
    except OSError:
        return ConfigError(f"{problem}; {needed}, which may not enter a directory above it")
    mode = stat.S_IMODE(status.st_mode)
    wanted = "0750" if stat.S_ISDIR(status.st_mode) else "0640"
    return ConfigError(
        f"{problem}; its mode is {mode:04o}, its owner {status.st_uid}:{status.st_gid}, and"
        f" {needed}: give it that group and the mode {wanted}"
    )


def parse_keys(text: str, source: str) -> tuple[ApiKey, ...]:
    """The keys in a file's text.

    Raises:
        ConfigError: As `load_keys`; `source` is how the message calls the text.
    """
    text = text.removeprefix("\ufeff")  # as editors of Windows begin a file
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of TOML; numbers and brackets without end
        # Its message can quote the line.
        place = re.search(r"\(at (line \d+, column \d+)\)", str(error))
        where = f" at {place[1]}" if place else ""
        why = cause(text, str(error))
        raise ConfigError(f"{source} is not valid TOML{where}{why and f': {why}'}") from None
    if len(tables) > MAX_KEYS:
        raise ConfigError(f"{source} has {len(tables)} keys; the limit is {MAX_KEYS}")
    return tuple(
        _parse_key(name, fields, f"{source}, key {number}")
        for number, (name, fields) in enumerate(tables.items(), 1)
    )


def _parse_key(name: str, fields: object, where: str) -> ApiKey:
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{where}: its name has other characters than letters, digits, hyphens and"
            " underscores, or more than 64"
        )
    where = f"{where} ({name})"
    if not isinstance(fields, dict):
        raise ConfigError(f'{where} must be a table: {name} = {{ sha256 = "…" }}')
    if unknown := [field for field in fields if field not in _FIELDS]:
        raise ConfigError(
            f"{where} has {len(unknown)} unknown fields; there are {', '.join(_FIELDS)}"
        )
    digest, is_admin = fields.get("sha256"), fields.get("admin", False)
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise ConfigError(f"{where}: sha256 must be 64 lower-case hexadecimal digits")
    if not isinstance(is_admin, bool):
        raise ConfigError(f"{where}: admin must be true or false")
    return ApiKey(
        name=name,
        sha256=bytes.fromhex(digest),
        is_admin=is_admin,
        requests_per_minute=_limit(fields, "requests_per_minute", where),
        characters_per_minute=_limit(fields, "characters_per_minute", where),
    )


def _limit(fields: dict[str, object], name: str, where: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_PER_MINUTE:
        raise ConfigError(f"{where}: {name} must be an integer from 1 to {MAX_PER_MINUTE}")
    return value


def _check_distinct(found: Sequence[tuple[ApiKey, str]]) -> None:
    """Return if no two keys, each with where it comes from, have one name or are the same."""
    names: dict[str, str] = {}
    digests: dict[bytes, str] = {}
    for key, source in found:
        if key.name in names:
            raise ConfigError(
                f"two keys have the name {key.name}: one in {names[key.name]}, one in {source}"
            )
        if key.sha256 in digests:
            raise ConfigError(f"{key.name} and {digests[key.sha256]} are the same key")
        names[key.name] = source
        digests[key.sha256] = key.name


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()
