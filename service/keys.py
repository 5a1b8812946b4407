"""API keys: how they are made, kept, read and recognised.

Owns the keys file and the comparison. Knows neither HTTP nor what a key opens; that is
`service.api.access`. A file holds one line a key, as TOML:

    alice = { sha256 = "…64 hexadecimal digits…", requests_per_minute = 60, admin = true }

Only hashes are kept. One SHA-256 is enough, because a key is 256 random bits: a slow hash is
for secrets that can be guessed. So that no short password is ever taken for a key, what has
fewer than `MIN_KEY_LENGTH` characters opens nothing.
"""

import hmac
import re
import secrets
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from model.errors import ConfigError

MIN_KEY_LENGTH = 22
"""Characters that 128 bits have in base64."""
MAX_KEY_LENGTH = 256
MAX_KEYS = 1000
MAX_LIMIT = 1_000_000_000

_PREFIX = "dragoman_"
_NUM_RANDOM_BYTES = 32
_NAME = re.compile("[A-Za-z0-9_-]{1,64}")
_SHA256 = re.compile("[0-9a-f]{64}")
_LIMITS = ("requests_per_minute", "characters_per_minute")
_FIELDS = ("sha256", *_LIMITS, "admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """One key, without the key.

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
    """All keys of a server; none means that it is open."""

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
    """`name`, if a key can have it.

    Raises:
        ConfigError: It has other characters, or too many.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            "the name of a key has 1 to 64 letters, digits, hyphens and underscores;"
            f" this one has {len(name)} characters"
        )
    return name


def load_keys(path: Path | None, text: str = "") -> KeyRing:
    """The keys of a file and those of `text`, which is written like one.

    Raises:
        ConfigError: Something is not a keys file; the message names place and rule, never a
            value, which could be a key that was pasted in place of its hash.
    """
    keys = parse_keys(text, "DRAGOMAN_API_KEYS")
    if text and not keys:
        raise ConfigError("DRAGOMAN_API_KEYS has no key")
    if path is not None:
        try:
            if path.exists() and not path.is_file():
                raise ConfigError(f"the keys file {path} is no file")
            content = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            raise ConfigError(f"the keys file {path} cannot be read: {reason}") from error
        keys += parse_keys(content, str(path))
        if not keys:
            # Whoever names a file wants a closed server; an empty one would leave it open.
            raise ConfigError(f"the keys file {path} has no key")
    _check_distinct(keys)
    return KeyRing(keys)


def parse_keys(text: str, source: str) -> tuple[ApiKey, ...]:
    """The keys in a file's text.

    Raises:
        ConfigError: As `load_keys`; `source` is how the message calls the text.
    """
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of TOML; numbers and brackets without end
        # Its message can quote the line.
        place = re.search(r"\(at (line \d+, column \d+)\)", str(error))
        where = f" at {place[1]}" if place else ""
        raise ConfigError(f"{source} is not valid TOML{where}") from None
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
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_LIMIT:
        raise ConfigError(f"{where}: {name} must be an integer from 1 to {MAX_LIMIT}")
    return value


def _check_distinct(keys: tuple[ApiKey, ...]) -> None:
    names: set[str] = set()
    digests: dict[bytes, str] = {}
    for key in keys:
        if key.name in names:
            raise ConfigError(f"two keys have the name {key.name}")
        if key.sha256 in digests:
            raise ConfigError(f"{key.name} and {digests[key.sha256]} are the same key")
        names.add(key.name)
        digests[key.sha256] = key.name


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()
