"""The methods that a path does not have: a 405 that lists those that it has.

Starlette answers such a request with the methods of one route; a path that several routes share has
more (RFC 9110, section 15.5.6).
"""

from collections import defaultdict
from collections.abc import Iterable

from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send


class OtherMethods:
    """Answer to every method that no route of a path has.

    Args:
        methods: Those that they have.
    """

    def __init__(self, methods: Iterable[str]) -> None:
        self._allow = ", ".join(sorted(methods))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # ASGI
        """Refuse a request.

        Raises:
            HTTPException: A 405.
        """
        raise HTTPException(405, headers={"allow": self._allow})


def refusals(routes: Iterable[BaseRoute]) -> list[Route]:
    """Routes to be tried after all others: of each path that several of `routes` share."""
    methods = defaultdict(list)
    for route in routes:
        if isinstance(route, Route):
            methods[route.path].append(route.methods or set())
    return [
        Route(path, OtherMethods(set().union(*found)), include_in_schema=False)
        for path, found in methods.items()
        if len(found) > 1
    ]
