"""Examples of the API's operations: a body that works, and the command that sends it.

Owns which operation has an example, out of its OpenAPI description: what has a body needs one that
is given there (`example`), and what wants a value in its path or query string has none.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ADDRESS = "127.0.0.1:8000"  # the page puts its own in this place
_JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A request that an operation answers.

    Attributes:
        method: In capitals.
        path: Of the operation.
        body: JSON over several lines; None of a request without one.
    """

    method: str
    path: str
    body: str | None

    @property
    def command(self) -> str:
        """The request as a command of curl."""
        words = ["curl", "-s", f"{_ADDRESS}{self.path}"]
        if self.method not in ("GET", "POST") or (self.method == "POST" and self.body is None):
            words[2:2] = ["-X", self.method]
        if self.body is None:
            return shlex.join(words)
        return f"{shlex.join([*words, '-H', f'content-type: {_JSON}', '-d'])} {_quoted(self.body)}"


def example_of(path: str, method: str, operation: Mapping[str, Any]) -> Example | None:
    """The example of an operation; None if it has none."""
    wants_values = any(item.get("required") for item in operation.get("parameters", ()))
    if "{" in path or wants_values:
        return None
    contents = operation.get("requestBody", {}).get("content", {})
    if not contents:
        return Example(method=method.upper(), path=path, body=None) if method == "get" else None
    example = contents.get(_JSON, {}).get("example")
    if example is None:
        return None
    body = json.dumps(example, ensure_ascii=False, indent=2)
    return Example(method=method.upper(), path=path, body=body)


def _quoted(text: str) -> str:
    """A word of a shell that keeps its line breaks."""
    return "'" + text.replace("'", "'\\''") + "'"
