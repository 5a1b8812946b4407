"""DeepL's own client for Python, unmodified."""

import deepl
import pytest

from support.markup_trees import tree_of
from support.running_server import RunningServer

TEXT = "The cat sees the river."


@pytest.fixture(scope="module")
def client(server: RunningServer) -> deepl.DeepLClient:
    return deepl.DeepLClient("a-key", server_url=server.url)


@pytest.fixture(scope="module")
def expected(server: RunningServer) -> str:
    with server.client() as client:
        reply = client.post("/translate", json={"q": TEXT, "source": "en", "target": "zh"})
    text: str = reply.json()["translatedText"]
    return text


def test_texts_are_translated(client: deepl.DeepLClient, expected: str) -> None:
    found = client.translate_text(TEXT, target_lang="ZH")
    assert (found.text, found.detected_source_lang) == (expected, "EN")
    assert (found.billed_characters, found.model_type_used) == (len(TEXT), None)
    both = client.translate_text(iter([TEXT, "7.30"]), source_lang="en", target_lang="ZH-HANS")
    assert [one.text for one in both] == [expected, "7.30"]


def test_options_are_taken(client: deepl.DeepLClient, expected: str) -> None:
    for splitting in deepl.SplitSentences:
        found = client.translate_text(
            TEXT,
            source_lang=deepl.Language.ENGLISH,
            target_lang=deepl.Language.CHINESE,
            split_sentences=splitting,
            preserve_formatting=True,
            formality=deepl.Formality.PREFER_MORE,
            context="Animals.",
            extra_body_parameters={"debug": "1"},
        )
        assert found.text == expected
    for model_type in deepl.ModelType:
        found = client.translate_text(TEXT, target_lang="zh", model_type=model_type)
        assert found.model_type_used in {"quality_optimized", "latency_optimized"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target_lang": "XX"}, "target_lang.*not supported"),
        ({"target_lang": "ZH", "source_lang": "XX"}, "source_lang.*not supported"),
        ({"target_lang": "ZH", "formality": "more"}, "Target language.*formality"),
        ({"target_lang": "ZH", "formality": "invalid"}, "formality"),
        ({"target_lang": "ZH", "split_sentences": "invalid"}, "split_sentences"),
        ({"target_lang": "ZH", "tag_handling": "invalid"}, "tag_handling"),
        ({"target_lang": "ZH", "tag_handling": "xml", "outline_detection": True}, "parsing failed"),
    ],
)
def test_refusals_are_told_in_its_exceptions(
    client: deepl.DeepLClient, options: dict[str, str], words: str
) -> None:
    with pytest.raises(deepl.DeepLException, match=words) as caught:
        client.translate_text(f"{TEXT} <", **options)
    assert caught.value.http_status_code == 400
    assert not caught.value.should_retry


@pytest.mark.parametrize("kind", ["html", "xml"])
def test_tags_come_back(client: "deepl.DeepLClient", kind: str) -> None:
    text = "The <b>cat</b> sees <x>the river</x>. <i>Nobody</i> waits."
    found = client.translate_text(
        text,
        target_lang="ZH",
        tag_handling=kind,
        tag_handling_version="v2",
        outline_detection=False,
        splitting_tags="p,q",
        non_splitting_tags=["i"],
        ignore_tags=["x", "y"],
    )
    assert tree_of(found.text) == tree_of(text)
    assert "<x>the river</x>" in found.text
    assert 0 < found.billed_characters < len(text)


def test_languages_and_usage_are_told(client: deepl.DeepLClient) -> None:
    assert [one.code for one in client.get_source_languages()] == ["EN"]
    targets = client.get_target_languages()
    assert [one.code for one in targets] == ["ZH", "ZH-HANS"]
    assert not any(one.supports_formality for one in targets)
    usage = client.get_usage()
    assert usage.character.valid
    assert not usage.any_limit_reached


def test_there_are_no_glossaries(client: deepl.DeepLClient) -> None:
    assert client.get_glossary_languages() == []
    assert client.list_glossaries() == []
    assert client.list_multilingual_glossaries() == []
