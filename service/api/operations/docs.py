"""Documentation page: the OpenAPI document as plain HTML.

Owns `/docs`, and `/spec`, where LibreTranslate has the document. The page has no script, loads
nothing, and its one style sheet is named by hash in its Content-Security-Policy; it says what
`/openapi.json` says, for people.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from html import escape
from typing import Any

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from service.http.replies import JsonReply

_STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff }
code, h2, pre { font-family: ui-monospace, monospace }
h2 { font-size: 1.1rem; border-top: 1px solid #ccc; padding-top: 1rem; margin-top: 2rem }
h3 { font-size: 1rem; margin: 1rem 0 .25rem }
table { border-collapse: collapse; width: 100% }
td, th { border-bottom: 1px solid #eee; padding: .25rem .75rem .25rem 0; text-align: left;
  vertical-align: top }
pre { white-space: pre-wrap; font: inherit }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 }
  td, th, h2 { border-color: #444 } a { color: #8bf } }
"""
_STYLE_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_REFERENCE = "#/components/schemas/"
_LIMITS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} items",
    "default": "default {}",
}


def build_router(document: Callable[[], Mapping[str, Any]]) -> APIRouter:
    """The routes of the page and of the document.

    Args:
        document: Makes the OpenAPI document, or remembers it.
    """
    router = APIRouter()

    @router.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(render_page(document()), headers={"content-security-policy": _POLICY})

    @router.get("/spec", include_in_schema=False)
    async def spec() -> JsonReply:
        return JsonReply(document())

    return router


def render_page(document: Mapping[str, Any]) -> str:
    """The page of an OpenAPI document; everything in it is escaped."""
    info = document["info"]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>',
        '<meta name="viewport" content="width=device-width">',
        f"<style>{_STYLE}</style><h1>{title}</h1>",
        f"<pre>{escape(info.get('description', ''))}</pre>",
        '<p>For programs: <a href="/openapi.json">/openapi.json</a></p>',
    ]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts += _operation(path, method, operation)
    schemas = document.get("components", {}).get("schemas", {})
    for name, schema in schemas.items():
        parts += [f'<h2 id="{escape(name)}">{escape(name)}</h2>', *_schema(schema)]
    return "\n".join(parts) + "</html>"


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2>{escape(method.upper())} {escape(path)}</h2>"
    yield f"<p>{escape(operation.get('summary', ''))}</p>"
    if operation.get("security"):
        yield "<p>Takes an API key, where the server has any.</p>"
    parameters = operation.get("parameters", ())
    if parameters:
        rows = [
            (item["name"], _type(item["schema"]), item.get("description", ""))
            for item in parameters
        ]
        yield from ("<h3>Parameters in the query string</h3>", _table(rows))
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"<h3>Body: <code>{escape(kind)}</code></h3>"
        yield from _schema(content["schema"])
    yield "<h3>Answers</h3>"
    yield _table(
        [
            (status, _answer_type(answer), answer.get("description", ""))
            for status, answer in operation["responses"].items()
        ]
    )


def _answer_type(answer: Mapping[str, Any]) -> str:
    contents = answer.get("content", {}).items()
    return ", ".join(_type(content.get("schema", {})) or escape(kind) for kind, content in contents)


def _schema(schema: Mapping[str, Any]) -> Iterator[str]:
    """A table of an object's fields; of anything else its type."""
    yield f"<p>{escape(schema.get('description', ''))}</p>"
    properties = schema.get("properties")
    if properties is None:
        yield f"<p>{_type(schema)}</p>"
        return
    required = schema.get("required", ())
    yield _table(
        [
            (
                f"{name} (required)" if name in required else name,
                _type(field),
                field.get("description", ""),
            )
            for name, field in properties.items()
        ]
    )


def _table(rows: list[tuple[str, str, str]]) -> str:
    """Rows of a name, a type that is HTML already, and a description."""
    cells = (
        f"<tr><td><code>{escape(name)}</code><td>{kind}<td>{escape(description)}"
        for name, kind, description in rows
    )
    return f"<table>{''.join(cells)}</table>"


def _type(schema: Mapping[str, Any]) -> str:
    """A schema's type and limits in few words, as HTML."""
    if reference := schema.get("$ref"):
        name = escape(str(reference).removeprefix(_REFERENCE))
        return f'<a href="#{name}">{name}</a>'
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        words = " or ".join(_type(choice) for choice in choices)
    elif "enum" in schema:
        words = " or ".join(escape(repr(value)) for value in schema["enum"])
    elif "const" in schema:
        words = escape(repr(schema["const"]))
    elif schema.get("type") == "array":
        words = f"list of {_type(schema.get('items', {}))}"
    else:
        words = escape(str(schema.get("type", "")))
    limits = [
        escape(text.format(value))
        for key, text in _LIMITS.items()
        if (value := schema.get(key)) is not None
    ]
    return ", ".join([words, *limits])
