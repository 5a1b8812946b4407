"""What LibreTranslate's own tests of its API ask for, behaviour by behaviour."""

import httpx
import pytest

pytestmark = pytest.mark.client("LibreTranslate's test_api")

HELLO = {"q": "Hello", "source": "en", "target": "de", "format": "text"}


def test_a_form_is_translated(http: httpx.Client) -> None:
    reply = http.post("/translate", data=HELLO)
    assert reply.status_code == 200
    assert reply.json()["translatedText"]


def test_a_list_is_translated_one_by_one(http: httpx.Client) -> None:
    reply = http.post("/translate", json=HELLO | {"q": ["Hello", "World"]})
    assert reply.status_code == 200
    translations = reply.json()["translatedText"]
    assert isinstance(translations, list)
    assert len(translations) == 2


def test_a_language_that_is_not_there_is_refused_by_name(http: httpx.Client) -> None:
    reply = http.post("/translate", data=HELLO | {"target": "zz"})
    assert (reply.status_code, reply.json()["error"]) == (400, "zz is not supported")


def test_a_missing_text_is_refused_by_name(http: httpx.Client) -> None:
    values = {name: value for name, value in HELLO.items() if name != "q"}
    reply = http.post("/translate", data=values)
    assert reply.status_code == 400
    assert reply.json()["error"] == "Invalid request: missing q parameter"


def test_a_language_is_detected(http: httpx.Client) -> None:
    reply = http.post("/detect", data={"q": "Hello"})
    assert reply.status_code == 200
    assert {"confidence", "language"} <= set(reply.json()[0])


def test_detection_needs_a_text(http: httpx.Client) -> None:
    reply = http.post("/detect")
    assert reply.status_code == 400
    assert "error" in reply.json()


def test_languages_are_listed(http: httpx.Client) -> None:
    reply = http.get("/languages")
    assert reply.status_code == 200
    assert {"code", "name"} <= set(reply.json()[0])


def test_health_is_ok_and_nothing_else(http: httpx.Client) -> None:
    reply = http.get("/health")
    assert (reply.status_code, reply.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/frontend/settings", "/spec"])
def test_a_page_finds_what_it_asks_for(http: httpx.Client, path: str) -> None:
    assert http.get(path).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/detect"), ("POST", "/languages"), ("POST", "/health"), ("POST", "/spec")],
)
def test_a_wrong_method_is_a_405(http: httpx.Client, method: str, path: str) -> None:
    assert http.request(method, path).status_code == 405
