"""Clients of LibreTranslate for Python."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError

import httpx
import pytest
import translate
from deep_translator import LibreTranslator
from deep_translator.exceptions import AuthorizationException, ServerException
from libretranslate_aio import (
    AsyncLibreTranslate,
    BadRequestError,
    ForbiddenError,
    LibreTranslate,
)
from libretranslatepy import LibreTranslateAPI
from translate.exceptions import TranslationError

from support.real_clients import Live

TEXT = "Where is the station?"
GERMAN = "Guten Tag, wie geht es Ihnen?"
CODES = ["de", "en", "zh-Hans"]

libretranslatepy = pytest.mark.client("libretranslatepy")
libretranslate_aio = pytest.mark.client("libretranslate-aio")
deep_translator = pytest.mark.client("deep-translator (Libre)")
translate_libre = pytest.mark.client("translate (LibreProvider)")
transpolibre = pytest.mark.client("transpolibre")


@libretranslatepy
@pytest.mark.parametrize("has_key", [False, True])
def test_libretranslatepy_translates(live: Live, has_key: bool) -> None:
    api = LibreTranslateAPI(live.url, live.key if has_key else None)
    assert api.translate(TEXT, "en", "de") == live.translated(TEXT, "en", "de")


@libretranslatepy
def test_libretranslatepy_translates_from_auto(live: Live) -> None:
    found = LibreTranslateAPI(live.url).translate(GERMAN, "auto", "en")
    assert found == live.translated(GERMAN, "de", "en")


@libretranslatepy
def test_libretranslatepy_translates_through_a_pivot(live: Live) -> None:
    assert LibreTranslateAPI(live.url).translate(GERMAN, "de", "zh")


@libretranslatepy
def test_libretranslatepy_detects(live: Live) -> None:
    first = LibreTranslateAPI(live.url).detect(GERMAN)[0]
    assert first["language"] == "de"
    assert first["confidence"] > 50


@libretranslatepy
@pytest.mark.parametrize("has_key", [False, True])
def test_libretranslatepy_lists_languages(live: Live, has_key: bool) -> None:
    languages = LibreTranslateAPI(live.url, live.key if has_key else None).languages()
    assert sorted(language["code"] for language in languages) == CODES


@libretranslatepy
@pytest.mark.parametrize(("key", "target", "status"), [("wrong", "de", 403), (None, "zz", 400)])
def test_libretranslatepy_reports_a_refusal(
    live: Live, key: str | None, target: str, status: int
) -> None:
    with pytest.raises(HTTPError) as caught:
        LibreTranslateAPI(live.url, key).translate(TEXT, "en", target)
    assert caught.value.code == status
    caught.value.close()


@libretranslate_aio
@pytest.mark.parametrize("texts", [TEXT, [TEXT, "Hello"]])
def test_libretranslate_aio_translates(live: Live, texts: str | list[str]) -> None:
    with LibreTranslate(live.url, api_key=live.key) as client:
        found = client.translate(texts, "en", "de")
    one = live.translated(TEXT, "en", "de")
    assert found.translated_text == one or found.translated_text[0] == one


@libretranslate_aio
def test_libretranslate_aio_translates_without_blocking(live: Live) -> None:
    async def both() -> list[object]:
        async with AsyncLibreTranslate(live.url) as client:
            calls = (client.translate(TEXT, "en", target) for target in ("de", "zh"))
            return [found.translated_text for found in await asyncio.gather(*calls)]

    expected = [live.translated(TEXT, "en", target) for target in ("de", "zh")]
    assert asyncio.run(both()) == expected


@libretranslate_aio
def test_libretranslate_aio_is_told_what_was_detected_and_alternatives(live: Live) -> None:
    with LibreTranslate(live.url) as client:
        found = client.translate(GERMAN, "auto", "en", alternatives=2)
    assert found.detected_language is not None
    assert found.detected_language.language == "de"
    assert 0 < len(found.alternatives) <= 2


@libretranslate_aio
def test_libretranslate_aio_gets_its_tags_back(live: Live) -> None:
    with LibreTranslate(live.url) as client:
        found = client.translate("<p>Where is the <b>station</b>?</p>", "en", "de", format="html")
    assert re.findall("<.*?>", found.translated_text) == ["<p>", "<b>", "</b>", "</p>"]


@libretranslate_aio
def test_libretranslate_aio_translates_a_file(
    live: Live, http: httpx.Client, tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    with LibreTranslate(live.url) as client:
        found = client.translate_file(tmp_path / "text.txt", "en", "de")
    reply = http.get(found.translated_file_url)
    assert (reply.status_code, reply.text) == (200, live.translated(TEXT, "en", "de"))


@libretranslate_aio
def test_libretranslate_aio_detects_and_lists(live: Live) -> None:
    with LibreTranslate(live.url) as client:
        assert client.detect(GERMAN)[0].language == "de"
        assert sorted(language.code for language in client.languages()) == CODES


@libretranslate_aio
def test_libretranslate_aio_suggests(live: Live) -> None:
    with LibreTranslate(live.url) as client:
        assert client.suggest("Hello", "Hallo", "en", "de") is True


@libretranslate_aio
def test_libretranslate_aio_reads_settings_and_health(live: Live) -> None:
    with LibreTranslate(live.url) as client:
        assert client.health() is True
        settings = client.frontend_settings()
    assert settings.api_keys
    assert not settings.key_required
    assert settings.language.source.code == "auto"


@libretranslate_aio
@pytest.mark.parametrize(
    ("key", "target", "refusal"), [("wrong", "de", ForbiddenError), (None, "zz", BadRequestError)]
)
def test_libretranslate_aio_reports_a_refusal(
    live: Live, key: str | None, target: str, refusal: type[Exception]
) -> None:
    with LibreTranslate(live.url, api_key=key) as client, pytest.raises(refusal):
        client.translate(TEXT, "en", target)


def _deep(live: Live, target: str = "de", key: str | None = None) -> LibreTranslator:
    return LibreTranslator(
        source="en", target=target, api_key=key or live.key, custom_url=f"{live.url}/"
    )


@deep_translator
def test_deep_translator_translates(live: Live) -> None:
    expected = [live.translated(TEXT, "en", target) for target in ("de", "zh")]
    assert [_deep(live, target).translate(TEXT) for target in ("de", "Chinese")] == expected


@deep_translator
def test_deep_translator_translates_a_batch(live: Live) -> None:
    expected = [live.translated(text, "en", "de") for text in (TEXT, "Hello")]
    assert _deep(live).translate_batch([TEXT, "Hello"]) == expected


@deep_translator
def test_deep_translator_translates_a_file(live: Live, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    found = _deep(live).translate_file(str(tmp_path / "text.txt"))
    assert found == live.translated(TEXT, "en", "de")


@deep_translator
def test_deep_translator_reports_a_refusal(live: Live) -> None:
    with pytest.raises(AuthorizationException):
        _deep(live, key="wrong").translate(TEXT)
    with pytest.raises(ServerException):
        _deep(live, target="German").translate("a" * 20_001)


def _translate(live: Live, source: str = "en", target: str = "de") -> translate.Translator:
    return translate.Translator(
        provider="libre", from_lang=source, to_lang=target, base_url=live.url
    )


@translate_libre
def test_translate_translates(live: Live) -> None:
    assert _translate(live).translate(TEXT) == live.translated(TEXT, "en", "de")


@translate_libre
def test_translate_detects_the_language_first(live: Live) -> None:
    found = _translate(live, "autodetect", "en").translate(GERMAN)
    assert found == live.translated(GERMAN, "de", "en")


@translate_libre
def test_translate_sends_long_text_in_pieces(live: Live) -> None:
    assert len(_translate(live).translate(" ".join([TEXT] * 60))) > 1_000


@translate_libre
def test_translate_reports_a_refusal(live: Live) -> None:
    with pytest.raises(TranslationError):
        _translate(live, target="zz").translate(TEXT)


def _transpolibre(live: Live, *arguments: str) -> str:
    """What the command printed."""
    places = [str(live.clients / "python/bin"), str(Path(sys.executable).parent)]
    program = shutil.which("transpolibre", path=os.pathsep.join(places))
    if program is None:
        pytest.skip("it is not installed: .ci/clients says why")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [program, "--url", live.url, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@transpolibre
def test_transpolibre_lists_languages(live: Live) -> None:
    printed = _transpolibre(live, "--list")
    assert all(f"Code: {code}" in printed for code in CODES)


@transpolibre
def test_transpolibre_fills_a_catalogue(live: Live, tmp_path: Path) -> None:
    entries = [f'msgid "{TEXT}"', 'msgstr ""', "", 'msgid "Hello"', 'msgstr "Servus"']
    head = ['msgid ""', 'msgstr "Content-Type: text/plain; charset=UTF-8\\n"', ""]
    file = tmp_path / "de.po"
    file.write_text("\n".join([*head, *entries, ""]), encoding="utf-8")
    _transpolibre(live, "--source-lang", "en", "--target-lang", "de", "--file", str(file))
    written = file.read_text(encoding="utf-8")
    assert f'msgid "{TEXT}"\nmsgstr "{live.translated(TEXT, "en", "de")}"' in written
    assert 'msgid "Hello"\nmsgstr "Servus"' in written


@transpolibre
def test_transpolibre_keeps_the_address_of_a_link(live: Live, tmp_path: Path) -> None:
    file = tmp_path / "zh.po"
    link = "`the station <https://example.org/a>`_"
    lines = ['msgid ""', 'msgstr "Content-Type: text/plain; charset=UTF-8\\n"', ""]
    file.write_text("\n".join([*lines, f'msgid "{link}"', 'msgstr ""', ""]), encoding="utf-8")
    _transpolibre(live, "--target-lang", "zh", "--file", str(file))
    expected = f"`{live.translated('the station', 'en', 'zh')} <https://example.org/a>`_"
    assert f'msgstr "{expected}"' in file.read_text(encoding="utf-8")
