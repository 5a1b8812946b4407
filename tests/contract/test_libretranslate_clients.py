"""Clients of LibreTranslate from PyPI, unmodified."""

import pytest
from deep_translator import LibreTranslator
from deep_translator.exceptions import ServerException
from libretranslate_aio import BadRequestError, LibreTranslate
from libretranslatepy import LibreTranslateAPI
from translate import Translator

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


def test_libretranslate_aio_has_every_answer_in_its_shape(
    server: RunningServer, expected: str
) -> None:
    with LibreTranslate(server.url, api_key="a-key") as client:
        found = client.translate([TEXT, "7.30"], "auto", "zh", alternatives=1)
        assert found.translated_text == [expected, "7.30"]
        assert [one.language for one in found.detected_language] == ["en", "en"]
        assert [len(texts) <= 1 for texts in found.alternatives] == [True, True]
        assert client.detect(TEXT)[0].language == "en"
        assert [language.code for language in client.languages()] == ["en", "zh-Hans"]
        assert client.suggest(TEXT, "猫看见河。", "en", "zh")
        assert client.frontend_settings().char_limit == 20_000
        assert client.health()
        with pytest.raises(BadRequestError, match="zz is not supported"):
            client.translate(TEXT, "en", "zz")


@pytest.mark.parametrize("source", ["en", "autodetect"])
def test_translate_asks_and_detects(server: RunningServer, expected: str, source: str) -> None:
    translator = Translator(provider="libre", from_lang=source, to_lang="zh", base_url=server.url)
    assert translator.translate(TEXT) == expected
