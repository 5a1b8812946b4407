"""Names of routes in metrics, logs and spans: the template of a path, never the path itself.

Owns that a path with a value in it has the name of its template, and that there are no more names
than routes.
"""

from collections.abc import Iterable

from starlette.routing import compile_path

UNMATCHED_ROUTE = "unmatched"


class RouteNames:
    """Names of the routes of one application.

    Args:
        paths: Of the routes; one with a value is a template such as `/models/{name}`.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        every = list(paths)
        self._plain = frozenset(path for path in every if "{" not in path)
        compiled = [compile_path(path) for path in every if "{" in path]
        self._templates = [(pattern, name) for pattern, name, _ in compiled]

    def of(self, path: str) -> str:
        """The name of the route that a path leads to; `UNMATCHED_ROUTE` if to none."""
        if path in self._plain:
            return path
        for pattern, name in self._templates:
            if pattern.match(path):
                return name
        return UNMATCHED_ROUTE
