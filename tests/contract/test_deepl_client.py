"""DeepL's own client for Python, unmodified."""

import deepl
import pytest
from deepl.api_data import MultilingualGlossaryDictionaryEntries

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


def test_a_glossary_is_kept_used_and_forgotten(client: deepl.DeepLClient, expected: str) -> None:
    pairs = client.get_glossary_languages()
    assert [(one.source_lang, one.target_lang) for one in pairs] == [("en", "zh")]
    entries = {"cat": "Qīng 7", "a dog": "狗"}
    made = client.create_glossary("animals", "EN", "ZH-HANS", entries)
    assert (made.name, made.source_lang, made.target_lang, made.ready, made.entry_count) == (
        *("animals", "EN", "ZH", True, 2),
    )
    assert client.get_glossary_entries(made) == entries
    assert client.get_glossary(made.glossary_id).creation_time == made.creation_time
    assert made.glossary_id in [one.glossary_id for one in client.list_glossaries()]
    found = client.translate_text_with_glossary([TEXT, "7.30"], made)
    assert "Qīng 7" in found[0].text
    assert "Qīng 7" not in expected
    client.delete_glossary(made)
    for forgotten in (client.get_glossary, client.get_glossary_entries, client.delete_glossary):
        with pytest.raises(deepl.GlossaryNotFoundException):
            forgotten(made.glossary_id)
    with pytest.raises(deepl.DeepLException, match="no such glossary"):
        client.translate_text_with_glossary(TEXT, made)


def test_a_glossary_comes_as_comma_separated_values(client: deepl.DeepLClient) -> None:
    made = client.create_glossary_from_csv("csv", "en", "zh", 'cat,"Qīng, 7",en,zh\r\ndog,狗\r\n')
    assert client.get_glossary_entries(made) == {"cat": "Qīng, 7", "dog": "狗"}
    client.delete_glossary(made)
    with pytest.raises(deepl.DeepLException, match="line 2 has the source"):
        client.create_glossary_from_csv("csv", "en", "zh", "cat,一\ncat,二")


def test_a_multilingual_glossary_is_kept_changed_and_forgotten(client: deepl.DeepLClient) -> None:
    def dictionary(entries: dict[str, str]) -> MultilingualGlossaryDictionaryEntries:
        return MultilingualGlossaryDictionaryEntries("EN", "ZH", entries)

    made = client.create_multilingual_glossary("animals", [dictionary({"cat": "Qīng 7"})])
    (info,) = made.dictionaries
    assert (made.name, info.source_lang, info.target_lang, info.entry_count) == (
        *("animals", "EN", "ZH", 1),
    )
    assert client.update_multilingual_glossary_name(made, "beasts").name == "beasts"
    client.update_multilingual_glossary_dictionary(made, dictionary({"dog": "狗"}))
    (kept,) = client.get_multilingual_glossary_entries(made, "en", "zh").dictionaries
    assert kept.entries == "cat\tQīng 7\ndog\t狗"
    found = client.translate_text(TEXT, source_lang="EN", target_lang="ZH-HANS", glossary=made)
    assert "Qīng 7" in found.text
    replaced = client.replace_multilingual_glossary_dictionary(made, dictionary({"river": "河9"}))
    assert replaced.entry_count == 1
    several = [client.create_glossary("more", "EN", "ZH", {"river": "江8", "cat": "猫7"}), made]
    found = client.translate_text(TEXT, source_lang="EN", target_lang="ZH", glossary_ids=several)
    assert "江8" in found.text
    assert "猫7" in found.text
    client.delete_glossary(several[0])
    (listed,) = client.list_multilingual_glossaries()
    assert (listed.glossary_id, listed.name) == (made.glossary_id, "beasts")
    client.delete_multilingual_glossary_dictionary(made, replaced)
    assert client.get_multilingual_glossary(made.glossary_id).dictionaries == []
    assert client.list_glossaries() == []
    client.delete_multilingual_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_multilingual_glossary(made.glossary_id)
