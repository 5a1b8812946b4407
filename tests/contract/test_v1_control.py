"""What a caller controls of a translation, over the wire."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.running_server import RunningServer

TEXT = "The cat sees the river."


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def _post(client: httpx.Client, **values: object) -> httpx.Response:
    return client.post("/v1/translate", json={"texts": TEXT, "target": "zh-Hans"} | values)


def _ok(client: httpx.Client, **values: object) -> dict[str, Any]:
    reply = _post(client, **values)
    assert reply.status_code == 200, reply.text
    content: dict[str, Any] = reply.json()
    return content


def _texts(client: httpx.Client, **values: object) -> list[str]:
    return [one["text"] for one in _ok(client, **values)["translations"]]


def test_a_beginning_is_kept_as_it_was_written(client: httpx.Client) -> None:
    prefix = "我的朋友  {x}"
    (plain,) = _texts(client)
    (begun,) = _texts(client, target_prefix=prefix)
    assert begun.startswith(prefix)
    assert begun != plain
    both = _texts(client, texts=[TEXT, TEXT], target_prefix=["", prefix])
    assert both == [plain, begun]


def test_what_is_drawn_depends_on_seed_and_text_and_on_nothing_beside_it(
    client: httpx.Client,
) -> None:
    drawing = {"temperature": 3.0, "top_k": 128}
    (alone,) = _texts(client, **drawing, seed=5)
    crowd = _texts(client, texts=["My friend waits.", TEXT, TEXT], **drawing, seed=5)
    assert crowd[1:] == [alone, alone]
    assert len({_texts(client, **drawing, seed=seed)[0] for seed in range(5)}) > 1
    content = _ok(client, **drawing, alternatives=3)["translations"][0]
    assert len({content["text"], *content["alternatives"]}) > 1
    greedy = _texts(client, beam_size=1)
    assert _texts(client, top_k=1, seed=3) == greedy


def test_every_term_of_a_glossary_is_in_the_translation_and_named_by_its_segment(
    client: httpx.Client,
) -> None:
    glossary = [
        {"source": "cat", "target": "Qīng 7"},
        {"source": "River", "target": "河流", "case_sensitive": True},
    ]
    (translation,) = _ok(client, glossary=glossary)["translations"]
    assert "Qīng 7" in translation["text"]
    terms = [term for segment in translation["segments"] for term in segment["glossary"]]
    assert terms == [{"source": "cat", "target": "Qīng 7", "is_hit": True}]
    assert "glossary" not in _ok(client)["translations"][0]["segments"][0]


def test_every_segment_says_how_sure_the_model_was(client: httpx.Client) -> None:
    (segment,) = _ok(client, confidence=True, scores=True)["translations"][0]["segments"]
    assert 0.0 < segment["confidence"] <= 1.0
    assert len(segment["token_confidence"]) == len(segment["token_log_probs"])
    (plain,) = _ok(client)["translations"][0]["segments"]
    assert plain["confidence"] == segment["confidence"]
    assert "token_confidence" not in plain
    assert "confidence" not in _ok(client, texts="7.30")["translations"][0]["segments"][0]


def test_what_no_model_has_is_accepted_and_said(client: httpx.Client) -> None:
    assert _ok(client, formality="more")["unsupported"] == ["formality"]
    assert "unsupported" not in _ok(client, formality="default")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"target_prefix": ["a", "b"]}, "target_prefix has 2 texts; texts has 1"),
        ({"target_prefix": "a\nb"}, "target_prefix must be one line"),
        ({"target_prefix": "a\tb"}, "target_prefix has a tab; it must have none"),
        ({"glossary": [{"source": "a\tc", "target": "b"}]}, "source of a glossary entry has a"),
        ({"glossary": ["a"]}, "glossary[0] must be an object"),
        ({"glossary": [{"source": "a", "target": "b", "x": 1}]}, "glossary[0].x is unknown"),
        ({"target_prefix": "a" * 2001}, "target_prefix has 2001 characters; it must have at most"),
        ({"target_prefix": "word " * 300}, "target_prefix has"),
        ({"target_prefix": 3}, "target_prefix must be a string or a list of strings"),
        ({"temperature": 0}, "temperature is 0; it must be above 0"),
        ({"temperature": 11}, "temperature is 11; it must be at most 10"),
        ({"top_k": 129}, "top_k is 129; it must be at most 128"),
        ({"top_p": 1.5}, "top_p is 1.5; it must be at most 1"),
        ({"seed": -1, "top_k": 2}, "seed is -1; it must be at least 0"),
        ({"seed": 1}, "seed needs temperature, top_k or top_p"),
        ({"beam_groups": 1}, "beam_groups is 1; it must be at least 2"),
        ({"beam_groups": 17}, "beam_groups is 17; it must be at most 16"),
        ({"beam_groups": 3, "beam_size": 4}, "beam_size is 4; it must be a multiple of"),
        ({"beam_groups": 7, "alternatives": 14}, "beam_groups is 7; of equally large groups"),
        ({"beam_groups": 2, "top_k": 3}, "beam_groups is 2; what is drawn"),
        ({"diversity_penalty": 1.0}, "diversity_penalty is 1.0; it needs beam_groups"),
        ({"diversity_penalty": 0, "beam_groups": 2}, "diversity_penalty is 0; it must be above 0"),
        ({"diversity_penalty": 101, "beam_groups": 2}, "diversity_penalty is 101; it must be at"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram is -1; it must be at least 0"),
        ({"no_repeat_ngram": 17}, "no_repeat_ngram is 17; it must be at most 16"),
        ({"formality": "rude"}, "formality is rude; it must be default, more"),
        ({"glossary": [{"source": "a", "target": "b"}] * 501}, "glossary has"),
        ({"glossary": [{"source": "", "target": "b"}]}, "glossary[0].source has 0 characters"),
        ({"glossary": [{"source": "a", "target": "b" * 201}]}, "glossary[0].target has 201"),
        ({"glossary": [{"source": "a", "target": " "}]}, "target of a glossary entry must be"),
        ({"glossary": [{"source": "a"}]}, "glossary[0].target is missing"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_name_and_its_limit(
    client: httpx.Client, values: dict[str, object], message: str
) -> None:
    reply = _post(client, **values)
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"].startswith(message)


def test_with_diversity_alternatives_differ_more(client: httpx.Client) -> None:
    def texts(diversity: float) -> list[str]:
        content = _ok(client, alternatives=3, beam_size=16, diversity=diversity)
        translation = content["translations"][0]
        return [translation["text"], *translation["alternatives"]]

    def shared(found: list[str]) -> float:
        sets = [set(text) for text in found]
        return sum(len(one & other) / len(one | other) for one in sets for other in sets)

    near, far = texts(0.0), texts(1.0)
    assert near[0] == far[0]
    assert len(far) == len(set(far)) == 4
    assert shared(far) <= shared(near)
    assert _post(client, diversity=1.5).json()["error"].startswith("diversity is 1.5; it must be")


def test_groups_of_beams_give_alternatives_that_begin_otherwise(client: httpx.Client) -> None:
    values = {"alternatives": 3, "beam_groups": 4, "diversity_penalty": 100.0}
    (translation,) = _ok(client, **values)["translations"]
    texts = [translation["text"], *translation["alternatives"]]
    assert len(set(texts)) == 4
    beside = [TEXT, "The cat sees the river. " * 3, "Thank you."]
    assert _ok(client, texts=beside, **values)["translations"][0] == translation


def test_the_beam_of_groups_is_raised_to_a_multiple_of_them(client: httpx.Client) -> None:
    given = _ok(client, beam_groups=3, beam_size=6, alternatives=4)
    assert given["translations"] == _ok(client, beam_groups=3, alternatives=4)["translations"]


def test_no_ngram_comes_twice_where_none_may(client: httpx.Client) -> None:
    def found(**values: object) -> list[str]:
        return _texts(client, texts=" ".join(["cat"] * 30), **values)

    assert found(no_repeat_ngram=1) != found()
    assert found(no_repeat_ngram=0) == found()


def test_terms_are_kept_where_beams_are_divided(client: httpx.Client) -> None:
    glossary = [{"source": "cat", "target": "Qīng 7"}]
    (translation,) = _ok(client, glossary=glossary, beam_groups=2)["translations"]
    assert "Qīng 7" in translation["text"]


def test_terms_of_a_page_are_translated_inside_their_elements(client: httpx.Client) -> None:
    page = '<p>The <b class="x">cat</b> sees the river.</p><p>The <i>cat</i></p>'
    glossary = [{"source": "cat", "target": "Qīng 7"}]
    (translation,) = _ok(client, texts=page, format="html", glossary=glossary)["translations"]
    terms = [term for segment in translation["segments"] for term in segment["glossary"]]
    assert [(term["source"], term["is_hit"]) for term in terms] == [("cat", True)] * 2
    assert translation["text"].count("Qīng 7") == 2
    for tag in ('<b class="x">', "</b>", "<i>", "</i>"):
        assert translation["text"].count(tag) == 1
