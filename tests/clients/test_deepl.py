"""Clients of DeepL for Python."""

import re
import subprocess
import sys
from pathlib import Path

import deepl
import pytest

from support.real_clients import Live

TEXT = "Where is the station?"
GERMAN = "Guten Tag, wie geht es Ihnen?"

deepl_python = pytest.mark.client("deepl (Python)")


@pytest.fixture(scope="module")
def client(live: Live) -> deepl.DeepLClient:
    return deepl.DeepLClient(live.key, server_url=live.url)


@deepl_python
@pytest.mark.parametrize("target", ["DE", "ZH", "ZH-HANS"])
def test_deepl_translates(live: Live, client: deepl.DeepLClient, target: str) -> None:
    found = client.translate_text(TEXT, source_lang="EN", target_lang=target)
    expected = live.translated(TEXT, "en", target.lower())
    assert (found.text, found.billed_characters) == (expected, len(TEXT))


@deepl_python
@pytest.mark.parametrize("target", ["EN-GB", "EN-US"])
def test_deepl_detects_the_language_of_each_text(
    live: Live, client: deepl.DeepLClient, target: str
) -> None:
    german, english, chinese = client.translate_text([GERMAN, TEXT, "谢谢。"], target_lang=target)
    found = [one.detected_source_lang for one in (german, english, chinese)]
    assert found == ["DE", "EN", "ZH"]
    assert (german.text, english.text) == (live.translated(GERMAN, "de", "en"), TEXT)


@deepl_python
@pytest.mark.parametrize("splitting", list(deepl.SplitSentences))
def test_deepl_takes_ways_of_splitting(
    live: Live, client: deepl.DeepLClient, splitting: deepl.SplitSentences
) -> None:
    found = client.translate_text(TEXT, target_lang="DE", split_sentences=splitting)
    assert found.text == live.translated(TEXT, "en", "de")


@deepl_python
@pytest.mark.parametrize("model_type", list(deepl.ModelType))
def test_deepl_is_told_the_type_of_model(
    client: deepl.DeepLClient, model_type: deepl.ModelType
) -> None:
    found = client.translate_text(TEXT, target_lang="DE", model_type=model_type)
    assert found.model_type_used in {"quality_optimized", "latency_optimized"}


@deepl_python
def test_deepl_takes_wishes(live: Live, client: deepl.DeepLClient) -> None:
    found = client.translate_text(
        TEXT,
        target_lang="DE",
        formality=deepl.Formality.PREFER_LESS,
        preserve_formatting=True,
        context="He has just arrived in this town.",
    )
    assert found.text == live.translated(TEXT, "en", "de")


@deepl_python
@pytest.mark.parametrize("kind", ["html", "xml"])
def test_deepl_gets_its_tags_back(client: deepl.DeepLClient, kind: str) -> None:
    text = "<p>Where is the <b>station</b>?</p>"
    found = client.translate_text(text, target_lang="DE", tag_handling=kind, ignore_tags=["x"])
    assert re.findall("<.*?>", found.text) == ["<p>", "<b>", "</b>", "</p>"]


@deepl_python
@pytest.mark.parametrize("name", ["text.txt", "page.html"])
def test_deepl_translates_a_document(
    live: Live, client: deepl.DeepLClient, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(f"{TEXT}\n", encoding="utf-8")
    status = client.translate_document_from_filepath(
        tmp_path / name, tmp_path / f"new-{name}", source_lang="EN", target_lang="DE"
    )
    assert status.done
    assert (tmp_path / f"new-{name}").read_text("utf-8").strip() == live.translated(
        TEXT, "en", "de"
    )


@deepl_python
def test_deepl_lists_languages(client: deepl.DeepLClient) -> None:
    assert [one.code for one in client.get_source_languages()] == ["DE", "EN", "ZH"]
    targets = [one.code for one in client.get_target_languages()]
    assert targets == ["DE", "EN-GB", "EN-US", "ZH", "ZH-HANS"]


@deepl_python
def test_deepl_reads_its_usage(client: deepl.DeepLClient) -> None:
    before = client.get_usage().character.count
    client.translate_text(TEXT, target_lang="DE")
    usage = client.get_usage()
    assert usage.character.count == before + len(TEXT)
    assert not usage.any_limit_reached


@deepl_python
def test_deepl_uses_a_glossary(client: deepl.DeepLClient) -> None:
    pairs = {(one.source_lang, one.target_lang) for one in client.get_glossary_languages()}
    assert {("en", "de"), ("de", "zh")} <= pairs
    made = client.create_glossary("places", "EN", "DE", {"station": "Haltepunkt"})
    assert [one.glossary_id for one in client.list_glossaries()] == [made.glossary_id]
    assert "Haltepunkt" in client.translate_text_with_glossary(TEXT, made).text
    client.delete_glossary(made)
    assert client.list_multilingual_glossaries() == []


@deepl_python
def test_deepl_knows_a_wrong_key(live: Live) -> None:
    with pytest.raises(deepl.AuthorizationException):
        deepl.DeepLClient("wrong", server_url=live.url).translate_text(TEXT, target_lang="DE")


@deepl_python
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target_lang": "XX"}, "target_lang"),
        ({"target_lang": "DE", "source_lang": "XX"}, "source_lang"),
        ({"target_lang": "DE", "formality": "more"}, "formality"),
        ({"target_lang": "DE", "split_sentences": "never"}, "split_sentences"),
    ],
)
def test_deepl_reports_a_refusal(
    client: deepl.DeepLClient, options: dict[str, str], words: str
) -> None:
    with pytest.raises(deepl.DeepLException, match=words) as caught:
        client.translate_text(TEXT, **options)
    assert caught.value.http_status_code == 400


@deepl_python
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["text", "--to", "DE", TEXT], "?"),
        (["languages"], "ZH-HANS: Chinese (simplified)"),
        (["usage"], "Characters:"),
    ],
)
def test_deepls_command_prints_the_answer(live: Live, arguments: list[str], words: str) -> None:
    command = [sys.executable, "-m", "deepl", "--server-url", live.url, "--auth-key", live.key]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert words in done.stdout


@pytest.mark.client("deep-translator (DeepL)")
def test_deep_translator_has_no_place_for_an_address() -> None:
    pytest.skip("its addresses of DeepL are constants")


@pytest.mark.client("translate (DeeplProvider)")
def test_translate_has_no_place_for_an_address() -> None:
    pytest.skip("its addresses of DeepL are constants")
