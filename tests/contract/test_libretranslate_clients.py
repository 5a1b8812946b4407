"""Clients of LibreTranslate from PyPI, unmodified."""

import pytest
from deep_translator import LibreTranslator
from deep_translator.exceptions import ServerException
from libretranslatepy import LibreTranslateAPI

from support.running_server import RunningServer

TEXT = "The cat sees the river."


@pytest.fixture(scope="module")
def expected(server: RunningServer) -> str:
    with server.client() as client:
        reply = client.post("/translate", json={"q": TEXT, "source": "en", "target": "zh"})
    text: str = reply.json()["translatedText"]
    return text


def test_deep_translator_translates(server: RunningServer, expected: str) -> None:
    translator = LibreTranslator(source="en", target="zh", api_key="x", custom_url=f"{server.url}/")
    assert translator.translate(TEXT) == expected
    assert translator.translate_batch([TEXT, TEXT]) == [expected, expected]


def test_deep_translator_reports_our_refusal(server: RunningServer) -> None:
    translator = LibreTranslator(
        source="en", target="German", api_key="x", custom_url=f"{server.url}/"
    )
    with pytest.raises(ServerException):
        translator.translate(TEXT)


@pytest.mark.parametrize("key", [None, "a-key"])
def test_libretranslatepy_translates_and_lists_languages(
    server: RunningServer, expected: str, key: str | None
) -> None:
    api = LibreTranslateAPI(server.url, key)
    assert api.translate(TEXT, "en", "zh") == expected
    assert api.translate("Grüße & 100 %\n", "auto", "zh").endswith("\n")
    assert api.detect("猫看见河。") == [{"confidence": 100, "language": "zh-Hans"}]
    assert [language["code"] for language in api.languages()] == ["en", "zh-Hans"]
