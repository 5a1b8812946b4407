"""Documentation page: the OpenAPI document for people, with examples that can be tried.

Owns `/docs`, and `/spec`, where LibreTranslate has the document. Everything in the page is escaped;
its style sheet and its script, which sends the examples, are files of `service.web`, and its policy
lets it load these alone. It says what `/openapi.json` says. Which operation has an example is
`service.api.operations.examples`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from service.api.operations.examples import Example, example_of
from service.http.headers import PAGE_POLICY
from service.http.replies import JsonReply

_REFERENCE = "#/components/schemas/"
_CODE = re.compile("`([^`]+)`")
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
        headers = {"content-security-policy": PAGE_POLICY}
        return HTMLResponse(render_page(document()), headers=headers)

    @router.get("/spec", include_in_schema=False)
    async def spec() -> JsonReply:
        return JsonReply(document())

    return router


def render_page(document: Mapping[str, Any]) -> str:
    """The page of an OpenAPI document; everything in it is escaped."""
    info = document["info"]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    operations = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = document.get("components", {}).get("schemas", {})
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<link rel="icon" href="assets/icon.svg" type="image/svg+xml">',
        '<link rel="stylesheet" href="assets/base.css">',
        '<link rel="stylesheet" href="assets/docs.css">',
        '<script src="assets/theme.js"></script>',
        '<script type="module" src="assets/docs.js"></script></head>',
        f"<body><header><h1>{title}</h1>",
        *(f"<p>{_prose(words)}</p>" for words in info.get("description", "").split("\n\n")),
        '<p>For programs: <a href="openapi.json">openapi.json</a></p>',
        '<form class="key" hidden><label for="key">API key, where the server wants one</label>',
        '<input id="key" type="password" autocomplete="off"></form></header>',
        *_contents(operations),
        "<main>",
    ]
    for one in operations:
        parts += _operation(*one)
    for name, schema in schemas.items():
        heading = f'<h2 id="{escape(name)}">{escape(name)}</h2>'
        parts += ['<section class="schema">', heading, *_schema(schema), "</section>"]
    return "\n".join(parts) + "</main></body></html>"


def _contents(operations: list[tuple[str, str, Mapping[str, Any]]]) -> Iterator[str]:
    yield '<nav aria-label="Operations"><ul>'
    for path, method, operation in operations:
        words = _prose(operation.get("summary", ""))
        link = f'<a href="#{_anchor(path, method)}"><code>{_heading(path, method)}</code></a>'
        yield f"<li>{link} {words}</li>"
    yield "</ul></nav>"


def _heading(path: str, method: str) -> str:
    return f"{escape(method.upper())} {escape(path)}"


def _anchor(path: str, method: str) -> str:
    return escape(f"{method}{path}")


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield "<section>"
    yield f'<h2 id="{_anchor(path, method)}">{_heading(path, method)}</h2>'
    yield f"<p>{_prose(operation.get('summary', ''))}</p>"
    if operation.get("security"):
        yield "<p>Takes an API key, where the server has any.</p>"
    example = example_of(path, method, operation)
    if example is not None:
        yield from _example(example)
    parameters = operation.get("parameters", ())
    if parameters:
        rows = [
            (item["name"], _type(item["schema"]), item.get("description", ""))
            for item in parameters
        ]
        in_path = all(item.get("in") == "path" for item in parameters)
        place = "path" if in_path else "query string"
        yield from (f"<h3>Parameters in the {place}</h3>", _table(rows))
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
    yield "</section>"


def _example(example: Example) -> Iterator[str]:
    """The command, and a form that the page's script makes work."""
    yield "<h3>Example</h3>"
    yield f'<pre class="command" tabindex="0">{escape(example.command)}</pre>'
    name = escape(f"{example.method} {example.path}")
    method, path = escape(example.method), escape(example.path)
    yield f'<form class="try" data-method="{method}" data-path="{path}" hidden>'
    if example.body is not None:
        rows = example.body.count("\n") + 1
        yield f'<textarea rows="{rows}" spellcheck="false" aria-label="Body of {name}">'
        yield f"{escape(example.body)}</textarea>"
    yield f'<p><button class="button" aria-label="Try it: {name}">Try it</button>'
    yield "<output></output></p>"
    yield f'<pre class="answer" tabindex="0" aria-label="Answer of {name}" hidden></pre></form>'


def _answer_type(answer: Mapping[str, Any]) -> str:
    contents = answer.get("content", {}).items()
    return ", ".join(_type(content.get("schema", {})) or escape(kind) for kind, content in contents)


def _schema(schema: Mapping[str, Any]) -> Iterator[str]:
    """A table of an object's fields; of anything else its type."""
    yield f"<p>{_prose(schema.get('description', ''))}</p>"
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
        f"<tr><td><code>{escape(name)}</code><td>{kind}<td>{_prose(description)}"
        for name, kind, description in rows
    )
    return f"<table>{''.join(cells)}</table>"


def _prose(text: str) -> str:
    """Words of the document as HTML: what stands between backticks is code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


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
    elif schema.get("properties"):
        words = f"object of {', '.join(map(escape, schema['properties']))}"
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
