import json
import shlex

from service.api.operations.examples import Example, example_of


def test_a_body_is_sent_as_it_is_shown_whatever_is_in_it() -> None:
    body = {"q": 'it\'s $HOME\n"x" 猫'}
    operation = {"requestBody": {"content": {"application/json": {"schema": {}, "example": body}}}}
    example = example_of("/translate", "post", operation)
    assert example is not None
    *words, sent = shlex.split(example.command)
    assert words == [
        "curl",
        "-s",
        "127.0.0.1:8000/translate",
        "-H",
        "content-type: application/json",
        "-d",
    ]
    assert json.loads(sent) == body


def test_what_cannot_be_sent_as_it_is_has_no_example() -> None:
    form = {"requestBody": {"content": {"multipart/form-data": {"schema": {}}}}}
    assert example_of("/v1/documents", "post", form) is None
    assert example_of("/v1/models/{name}/load", "post", {}) is None
    assert example_of("/v1/models/{name}", "get", {}) is None
    wants_kind = {"parameters": [{"name": "kind", "in": "query", "required": True}]}
    assert example_of("/languages", "get", wants_kind) is None
    assert example_of("/admin/reload", "post", {}) is None
    assert example_of("/health", "get", {}) == Example(method="GET", path="/health", body=None)
