"""Validation errors of Pydantic as refusals: the field, its value, its limit, never a text.

Owns the translation of a `ValidationError` into one `RequestError`.
"""

from collections.abc import Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from service.errors import RequestError, Scalar, invalid, scalar

_WANTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "model_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "json_invalid": "JSON",
    "finite_number": "a finite number",
}
_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}
_LENGTHS = {
    "string_too_short": ("min_length", "at least"),
    "string_too_long": ("max_length", "at most"),
    "too_short": ("min_length", "at least"),
    "too_long": ("max_length", "at most"),
}


def unknown_field(name: str) -> RequestError:
    """A 400 for a field that is not in the contract; a name like a text is not repeated."""
    value = scalar(name)
    shown = f"field {value}" if isinstance(value, str) else "a field"
    return invalid(f"{shown} is unknown", value=value)


def request_error(error: ValidationError, *, within: str | None = None) -> RequestError:
    """The first validation error as a 400; `within` is the field that was read by itself."""
    detail = error.errors(include_url=False)[0]
    name = _place(detail["loc"] if within is None else (within, *detail["loc"]))
    kind = detail["type"]
    if kind == "missing":
        return invalid(f"{name} is missing", limit=name)
    if kind == "extra_forbidden":
        return invalid(f"{name} is unknown", value=scalar(str(detail["loc"][-1])))
    if name in ("texts", "target_prefix"):
        return invalid(f"{name} must be a string or a list of strings", limit="string or list")
    return _wrong_value(name, kind, detail)


def _place(location: Sequence[str | int]) -> str:
    """The field's name; of an entry of a glossary with its number and its own fields."""
    if not location:
        return "the request"
    first, *rest = location
    if first != "glossary":
        return str(first)
    return str(first) + "".join(map(_part, rest))


def _part(part: str | int) -> str:
    """An entry, or a field of it; a name like a text is not repeated."""
    if isinstance(part, int):
        return f"[{part}]"
    shown = scalar(part)
    return f".{shown}" if isinstance(shown, str) else f".(a field of {shown} characters)"


def _wrong_value(name: str, kind: str, detail: ErrorDetails) -> RequestError:
    value, context = detail["input"], detail.get("ctx", {})
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        limit: Scalar = context[key]
        message = f"{name} is {value}; it must be {words} {limit}"
        return invalid(message, value=scalar(value), limit=limit)
    if kind in _LENGTHS:
        key, words = _LENGTHS[kind]
        limit = context[key]
        unit = "characters" if isinstance(value, str) else "entries"
        message = f"{name} has {len(value)} {unit}; it must have {words} {limit}"
        return invalid(message, value=len(value), limit=limit)
    if kind == "literal_error":
        return _not_one_of(name, value, context["expected"])
    wanted = _WANTED.get(kind, "valid")
    return invalid(f"{name} must be {wanted}", value=_type_only(value), limit=wanted)


def _not_one_of(name: str, value: object, expected: str) -> RequestError:
    """A value that is not in a list; one like a text is not repeated."""
    shown, wanted = scalar(value), expected.replace("'", "")
    is_shown = isinstance(value, str) and shown == value != ""
    subject = f"{name} is {shown}; it" if is_shown else name
    return invalid(f"{subject} must be {wanted}", value=shown, limit=wanted)


def _type_only(value: object) -> Scalar:
    """A value of the wrong type: the number or truth value itself, of a text its length."""
    return len(value) if isinstance(value, str) else scalar(value)
