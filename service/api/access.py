"""Access: who asks, and whether that opens what is asked for.

Owns the way from a request to a key, and the three refusals: 401 without a key, 403 with a
wrong one, 404 for an administration that nobody can open. Keys themselves are `service.keys`.
"""

from starlette.requests import Request

from service.errors import Problem, RequestError
from service.keys import ApiKey, KeyRing


class Access:
    """Opens the server to those who may use it.

    Args:
        keys: All keys; none leaves translation open and the administration shut.
    """

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys

    def __repr__(self) -> str:
        return f"Access({len(self._keys.keys)} keys)"

    def check_admin(self, request: Request) -> None:
        """Return if the request's key opens the administration.

        Raises:
            RequestError: 404 where no key does; 401 without a key; 403 with another.
        """
        if not self._keys.has_admin:
            raise RequestError(
                Problem(status=404, code="not_found", message="there is nothing at this path")
            )
        key = self._by_header(request)
        if key is None:
            raise missing_key()
        if not key.is_admin:
            raise forbidden("this API key does not open the administration")

    def _by_header(self, request: Request) -> ApiKey | None:
        """The key of `Authorization: Bearer KEY`; None when there is none."""
        scheme, _, presented = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        return self._known(presented.strip())

    def _known(self, presented: str) -> ApiKey:
        key = self._keys.find(presented)
        if key is None:
            raise forbidden("Invalid API key")
        return key


def missing_key() -> RequestError:
    """A 401: nobody said who asks."""
    return RequestError(
        Problem(
            status=401,
            code="key_required",
            message="an API key is required: send it as Authorization: Bearer KEY",
        )
    )


def forbidden(message: str) -> RequestError:
    """A 403: a key was sent, but it does not open this."""
    return RequestError(Problem(status=403, code="invalid_api_key", message=message))
