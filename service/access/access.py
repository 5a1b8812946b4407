"""Access checks of a request: authentication, authorisation and rate limits.

Owns the way from a request to a caller, and its refusals: 401 without a key, 403 with a wrong
one, 404 for an administration that no key opens, 429 over a limit. Keys themselves are
`service.access.keys`, counting is `service.access.rates` and `service.access.character_counts`,
addresses are `service.access.addresses`.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from fastapi import Depends
from fastapi.security import HTTPBearer
from starlette.requests import Request

from model.errors import ConfigError
from service.access.addresses import client_of
from service.access.character_counts import CharacterCounts
from service.access.key_store import KeyStore
from service.access.keys import ApiKey
from service.errors import Problem, RequestError, too_long
from service.headers import header_of, headers_of
from service.networks import Network
from service.telemetry.request_context import context_of

_BEARER = HTTPBearer(auto_error=False, description="A key, where the server has any.")
DOCUMENTED = Depends(_BEARER)
"""Says in the OpenAPI document that a route takes a key; `Access` is what reads it."""

LIMITED = "rate_limited"
"""Code of the refusals of a caller who has had what a minute allows."""

MAX_KEYLESS = 10
"""Of an address that is over its limit, so many times the limit are read to look for a key."""

_KEYLESS = "keyless_requests"
_USE_HEADER = "; with a key send it as Authorization: Bearer KEY"
_SCHEMES = frozenset({"bearer", "deepl-auth-key"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPolicy:
    """Rules of a server for callers, beside the keys themselves.

    Attributes:
        key_required: Whether a translation needs a key; None: where there are keys.
        metrics_key_required: Whether /metrics needs one.
        requests_per_minute: Of a key that names no other limit, and of an address without a
            key; None is no limit.
        characters_per_minute: Likewise.
        trusted_proxies: Networks whose X-Forwarded-For is believed.
    """

    key_required: bool | None = None
    metrics_key_required: bool = False
    requests_per_minute: int | None = None
    characters_per_minute: int | None = None
    trusted_proxies: tuple[Network, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Caller that a request counts for, with its rate limits.

    Attributes:
        identity: A key's name or an address, each with its kind before it.
        has_key: A key was shown.
        requests_per_minute: None is no limit.
        characters_per_minute: None is no limit.
    """

    identity: str
    requests_per_minute: int | None
    characters_per_minute: int | None
    has_key: bool = False

    @property
    def number(self) -> int:
        """A number for it that says nothing of it, the same in every process."""
        return int.from_bytes(blake2b(self.identity.encode(), digest_size=7).digest(), "big")


class Limiter(Protocol):
    """Counter of what each caller spends within a minute."""

    async def spend(self, kind: str, identity: str, *, limit: int, cost: int = 1) -> float | None:
        """As of `service.access.rates.RateLimiter`."""

    async def give_back(self, kind: str, identity: str, *, limit: int) -> None:
        """Likewise."""


class Counts(Protocol):
    """Sums of characters by caller."""

    def add(self, identity: str, num_characters: int) -> None:
        """Count characters for a caller."""

    def of(self, identity: str) -> int:
        """The characters of a caller."""


class Access:
    """Checks of callers by their keys or addresses.

    Args:
        policy: What is open, the limits, the trusted proxies.
        limiter: Counts.
        keys: All keys, as they are when a request comes. A store that never had one leaves
            translation open and the administration shut.
        counts: What callers have translated; None keeps that here.

    Raises:
        ConfigError: A key is required and there is none.
    """

    def __init__(
        self,
        policy: AccessPolicy,
        limiter: Limiter,
        keys: KeyStore,
        counts: Counts | None = None,
    ) -> None:
        for name in ("key_required", "metrics_key_required"):
            if getattr(policy, name) and not keys.is_guarded:
                raise ConfigError(
                    f"DRAGOMAN_{name.upper()} is true, but there is no key; name a file of them"
                    " with DRAGOMAN_API_KEYS_FILE, or a directory with DRAGOMAN_API_KEYS_DIR"
                )
        self._policy = policy
        self._keys = keys
        self._limiter = limiter
        self._counts = CharacterCounts() if counts is None else counts

    def __repr__(self) -> str:
        return f"Access({self._keys!r})"

    @property
    def takes_keys(self) -> bool:
        """There are keys that a caller may show."""
        return self._keys.is_guarded

    @property
    def needs_key(self) -> bool:
        """A translation needs a key."""
        return self._keys.is_guarded and self._policy.key_required is not False

    def check_admin(self, request: Request) -> None:
        """Return if the request's key opens the administration.

        Raises:
            RequestError: 404 where no key does; 401 without a key; 403 with another.
        """
        if not self._keys.ring.has_admin:
            raise RequestError(
                Problem(status=404, code="not_found", message="there is nothing at this path")
            )
        key = self._known(request, _bearer(request))
        if key is None:
            raise _missing_key()
        if not key.is_admin:
            raise _forbidden("this API key does not open the administration")

    def check_metrics(self, request: Request) -> None:
        """Return if the request may read the metrics.

        Raises:
            RequestError: 401 or 403 where they need a key.
        """
        if self._policy.metrics_key_required and not self._known(request, _bearer(request)):
            raise _missing_key()

    async def admit(self, request: Request) -> Caller | None:
        """The caller by what is known before the body is read; counts one request of theirs.

        Returns:
            None when a key may still come with the query string or the body; the request counts
            for its address until it has come. Of an address that is over its limit some more are
            waited for, which only a key excuses.

        Raises:
            RequestError: A 403 or 429.
        """
        if _bearer(request) is None and self._keys.is_guarded:
            await self._spend_until_key(request)
            return None
        return await self.admit_by_header(request)

    async def admit_by_header(self, request: Request) -> Caller:
        """The caller where a key comes with the header alone; counts one request of theirs.

        One that is refused counts for its address.

        Raises:
            RequestError: A 401, 403 or 429.
        """
        try:
            key = self._known(request, _bearer(request))
            if key is None:
                self._check_not_required()
        except RequestError:
            await self._spend_request(self._anonymous(request))
            raise
        caller = self._anonymous(request) if key is None else _caller(key, self._policy)
        await self._spend_request(caller)
        return caller

    async def admit_with(self, request: Request, api_key: object) -> Caller:
        """The caller by a value that came for a key after `admit` had found none.

        Raises:
            RequestError: A 401, 403 or 429.
        """
        anonymous = self._anonymous(request)  # it was counted
        over_limit = context_of(request).over_limit
        presented = None
        if api_key not in (None, ""):
            # Something else than a string, such as two keys, is a wrong key.
            presented = api_key if isinstance(api_key, str) else ""
        try:
            key = self._known(request, presented)
            if key is None:
                self._check_not_required()
        except RequestError:
            if over_limit is None:
                raise
            key = None
        if key is None:
            if over_limit is not None:
                raise RequestError(over_limit)
            return anonymous
        kind, limit = "requests", anonymous.requests_per_minute
        if limit is not None:
            if over_limit is not None:
                kind, limit = _KEYLESS, limit * MAX_KEYLESS
            await self._limiter.give_back(kind, anonymous.identity, limit=limit)
        caller = _caller(key, self._policy)
        await self._spend_request(caller)
        return caller

    async def spend_characters(self, caller: Caller, num_characters: int) -> None:
        """Count the characters of a request that has passed every other check.

        Raises:
            RequestError: A 429, or a 413 when no minute would be long enough.
        """
        limit = caller.characters_per_minute
        if limit is not None and num_characters > limit:
            raise too_long(
                f"the texts have {num_characters} characters; the limit is {limit} a minute",
                value=num_characters,
                limit=limit,
            )
        if limit is not None and num_characters:
            await self._spend("characters", caller, limit=limit, cost=num_characters)
        self._counts.add(caller.identity, num_characters)

    def num_characters(self, caller: Caller) -> int:
        """Characters that a caller was let translate since the server started."""
        return self._counts.of(caller.identity)

    def _check_not_required(self) -> None:
        if self.needs_key:
            raise _missing_key()

    def _known(self, request: Request, presented: str | None) -> ApiKey | None:
        """The key that was presented; None when none was, or the server has none."""
        if presented is None or not self._keys.is_guarded:
            return None
        key = self._keys.ring.find(presented)
        if key is None:
            raise _forbidden("Invalid API key")
        context_of(request).key_name = key.name
        return key

    def _anonymous(self, request: Request) -> Caller:
        policy = self._policy
        address = client_of(
            request.client.host if request.client else None,
            headers_of(request.scope, b"x-forwarded-for"),
            policy.trusted_proxies,
        )
        return Caller(
            identity=f"address:{address}",
            requests_per_minute=policy.requests_per_minute,
            characters_per_minute=policy.characters_per_minute,
        )

    async def _spend_until_key(self, request: Request) -> None:
        """Count a request for its address, or with those that only a key excuses.

        Who shares an address with strangers can translate with a key in the body, and strangers
        have no more bodies read than that takes.

        Raises:
            RequestError: A 429: there are too many of both.
        """
        anonymous = self._anonymous(request)
        try:
            await self._spend_request(anonymous)
        except RequestError as error:
            limit = (anonymous.requests_per_minute or 0) * MAX_KEYLESS
            await self._spend(_KEYLESS, anonymous, limit=limit, cost=1)
            context_of(request).over_limit = error.problem

    async def _spend_request(self, caller: Caller) -> None:
        limit = caller.requests_per_minute
        if limit is not None:
            await self._spend("requests", caller, limit=limit, cost=1)

    async def _spend(self, kind: str, caller: Caller, *, limit: int, cost: int) -> None:
        seconds = await self._limiter.spend(kind, caller.identity, limit=limit, cost=cost)
        if seconds is not None:
            what = f"{limit} {kind.replace('_', ' ')} a minute"
            whose = "" if caller.has_key else " for this address"
            advice = _USE_HEADER if kind == _KEYLESS else ""
            raise RequestError(
                Problem(
                    status=429,
                    code=LIMITED,
                    message=f"Slowdown: the limit is {what}{whose}{advice}",
                    value=cost,
                    limit=limit,
                    retry_after_seconds=seconds,
                )
            )


def _caller(key: ApiKey, policy: AccessPolicy) -> Caller:
    return Caller(
        identity=f"key:{key.name}",
        has_key=True,
        requests_per_minute=key.requests_per_minute or policy.requests_per_minute,
        characters_per_minute=key.characters_per_minute or policy.characters_per_minute,
    )


def _bearer(request: Request) -> str | None:
    """The key in `Authorization: Bearer …` or `DeepL-Auth-Key …`; None without such a header."""
    scheme, _, presented = header_of(request.scope, b"authorization").partition(" ")
    return presented.strip() if scheme.lower() in _SCHEMES else None


def _missing_key() -> RequestError:
    return RequestError(
        Problem(
            status=401,
            code="key_required",
            message="an API key is required: send it as Authorization: Bearer KEY,"
            " to /translate also as api_key",
        )
    )


def key_required(name: str, num_bytes: int, limit: int) -> RequestError:
    """A 401 for what is too large to be searched for a key."""
    return RequestError(
        Problem(
            status=401,
            code="key_required",
            message=f"{name} has {num_bytes} bytes; without an API key in the header the limit is"
            f" {limit}: send the key as Authorization: Bearer KEY",
            value=num_bytes,
            limit=limit,
        )
    )


def _forbidden(message: str) -> RequestError:
    return RequestError(Problem(status=403, code="invalid_api_key", message=message))
