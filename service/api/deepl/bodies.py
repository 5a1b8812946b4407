"""Bodies of DeepL's contract as the OpenAPI document describes them: each is JSON or a form.

Owns the shape of that description. Which fields there are is `service.api.deepl.request`,
`service.api.deepl.dictionaries` and `service.api.deepl.documents`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"


def content(
    required: Sequence[str],
    properties: Mapping[str, Any],
    example: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A body of one type, by its fields.

    Args:
        required: Names of those that have to be there.
        properties: Their schemas.
        example: One that is answered as it stands; None where there is no such one.
    """
    schema = {"type": "object", "required": list(required), "properties": dict(properties)}
    return {"schema": schema} | ({} if example is None else {"example": dict(example)})


def json_or_form(json: dict[str, Any], form: dict[str, Any] | None = None) -> dict[str, Any]:
    """The `requestBody` of an operation, of two of `content`.

    Args:
        json: As JSON.
        form: As a form; None where its fields are the same.
    """
    contents = {JSON_TYPE: json, FORM_TYPE: json if form is None else form}
    return {"requestBody": {"required": True, "content": contents}}
