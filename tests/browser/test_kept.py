"""What the browser keeps: history, choices, glossary."""

import json
from typing import Any

import pytest

from support.translation_page import num_done, wait_done, write

pytestmark = pytest.mark.browser

TEXT = "Good morning."
SETTLED_MS = 1700


def _reload(page: Any) -> None:
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")


def test_a_translation_is_kept_here_alone_and_comes_back(new_page: Any) -> None:
    page = new_page()
    write(page, TEXT)
    page.wait_for_timeout(SETTLED_MS)
    _reload(page)
    assert page.input_value("#source") == ""
    page.click("#open-history")
    page.click("#history-list .entry")
    wait_done(page, 1)
    assert page.input_value("#source") == TEXT
    assert (page.input_value("#from"), page.input_value("#to")) == ("en", "de")


def test_the_history_is_bounded_cleared_and_off(new_page: Any) -> None:
    page = new_page()
    entries = [
        {"source": "en", "target": "de", "text": f"text {n}", "translation": "x"} for n in range(50)
    ]
    page.evaluate(
        f"localStorage.setItem('dragoman.history', JSON.stringify({json.dumps(entries)}))"
    )
    _reload(page)
    write(page, TEXT)
    page.wait_for_timeout(SETTLED_MS)
    page.click("#open-history")
    assert page.locator("#history-list li").count() == 50
    page.locator("#history-list li .icon").first.click()
    assert page.locator("#history-list li").count() == 49
    page.click("#clear-history")
    assert page.locator("#history-empty").is_visible()
    page.uncheck("#keep-history")
    page.keyboard.press("Escape")
    write(page, f"{TEXT} Thank you.")
    page.wait_for_timeout(SETTLED_MS)
    assert page.evaluate("localStorage.getItem('dragoman.history')") is None


def test_a_translation_that_is_just_there_is_cleared_with_the_others(new_page: Any) -> None:
    page = new_page()
    write(page, TEXT)
    page.click("#open-history")
    assert page.locator("#history-list li").count() == 1
    page.click("#clear-history")
    page.wait_for_timeout(SETTLED_MS)
    assert page.evaluate("localStorage.getItem('dragoman.history')") is None


def test_a_translation_that_comes_while_the_history_is_open_is_shown_and_cleared(
    new_page: Any,
) -> None:
    page = new_page()
    write(page, TEXT)
    held: list[Any] = []
    page.route("**/v1/translate", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks a handler
    _answer_beside_the_history(page, held, "Thank you.", 2)
    page.wait_for_function("() => document.querySelectorAll('#history-list li').length === 2")
    page.keyboard.press("Escape")
    _answer_beside_the_history(page, held, "Good night.", 3)
    page.click("#clear-history")
    page.wait_for_timeout(SETTLED_MS)
    assert page.evaluate("localStorage.getItem('dragoman.history')") is None


def _answer_beside_the_history(page: Any, held: list[Any], text: str, number: int) -> None:
    """Write a text, open the history while it is translated, and let the answer come."""
    held.clear()
    page.fill("#source", text)
    page.wait_for_selector("#output.is-waiting")
    page.click("#open-history")
    held[0].continue_()
    wait_done(page, number)


def _second_tab(page: Any) -> Any:
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector("html[data-ready]", state="attached")
    return other


def _kept_texts(page: Any) -> list[str]:
    kept = json.loads(page.evaluate("localStorage.getItem('dragoman.history')") or "[]")
    return [one["text"] for one in kept]


def test_a_history_that_another_tab_cleared_stays_cleared(new_page: Any) -> None:
    page = new_page()
    write(page, TEXT)
    page.wait_for_timeout(SETTLED_MS)
    other = _second_tab(page)
    other.click("#open-history")
    assert other.locator("#history-list li").count() == 1
    page.click("#open-history")
    page.click("#clear-history")
    other.wait_for_selector("#history-empty:not([hidden])")
    other.keyboard.press("Escape")
    write(other, "Thank you.")
    other.wait_for_timeout(SETTLED_MS)
    assert _kept_texts(page) == ["Thank you."]
    page.wait_for_selector("#history-list :text('Thank you.')")


def test_a_history_that_is_cleared_takes_what_another_tab_was_about_to_keep(new_page: Any) -> None:
    page = new_page()
    write(page, TEXT)
    page.wait_for_timeout(SETTLED_MS)
    page.click("#open-history")
    other = _second_tab(page)
    write(other, "Thank you.")
    page.click("#clear-history")
    other.wait_for_timeout(SETTLED_MS)
    assert _kept_texts(other) == []


def test_tabs_keep_one_history_and_one_switch(new_page: Any) -> None:
    page = new_page()
    other = _second_tab(page)
    write(page, TEXT)
    write(other, "Thank you.")
    other.wait_for_timeout(SETTLED_MS)
    assert sorted(_kept_texts(page)) == [TEXT, "Thank you."]
    page.click("#open-history")
    page.uncheck("#keep-history")
    write(other, "The cat sleeps.")
    other.wait_for_timeout(SETTLED_MS)
    assert _kept_texts(page) == []
    other.click("#open-history")
    assert not other.is_checked("#keep-history")


def test_without_storage_the_page_has_a_history_until_it_is_closed(new_page: Any) -> None:
    deny = """Object.defineProperty(window, 'localStorage', {
      get() { throw new DOMException('no', 'SecurityError'); },
    });"""
    page = new_page(prepare=lambda page: page.add_init_script(deny))
    write(page, TEXT)
    page.wait_for_timeout(SETTLED_MS)
    page.click("#open-history")
    assert page.locator("#history-list li").count() == 1
    page.uncheck("#keep-history")
    page.keyboard.press("Escape")
    write(page, "Thank you.")
    page.wait_for_timeout(SETTLED_MS)
    page.click("#open-history")
    assert page.locator("#history-list li").count() == 0
    assert not page.is_checked("#keep-history")


@pytest.mark.parametrize("junk", ["{", "null", "[1]", '{"a": 1}', '"x"'])
def test_junk_in_the_storage_changes_nothing(new_page: Any, junk: str) -> None:
    page = new_page()
    for name in ("history", "glossary", "pair", "theme", "live", "interface", "keep_history"):
        page.evaluate(
            "([name, junk]) => localStorage.setItem(`dragoman.${name}`, junk)", [name, junk]
        )
    _reload(page)
    assert write(page, TEXT)


def test_a_browser_without_storage_translates(new_page: Any) -> None:
    deny = """for (const name of ['localStorage', 'sessionStorage'])
      Object.defineProperty(window, name, {
        get() { throw new DOMException('no', 'SecurityError'); },
      });"""
    page = new_page(prepare=lambda page: page.add_init_script(deny))
    assert write(page, TEXT)


def test_the_languages_are_remembered(new_page: Any) -> None:
    page = new_page()
    page.select_option("#from", "zh-Hans")
    page.select_option("#to", "en")
    _reload(page)
    assert (page.input_value("#from"), page.input_value("#to")) == ("zh-Hans", "en")


def _with_glossary(page: Any) -> None:
    def describe(route: Any) -> None:
        reply = route.fetch()
        content = reply.json()
        schema = content["paths"]["/v1/translate"]["post"]["requestBody"]["content"]
        schema["application/json"]["schema"]["properties"]["glossary"] = {"type": "array"}
        route.fulfill(response=reply, json=content)

    page.route("**/openapi.json", describe)


def test_a_glossary_is_edited_kept_by_pair_and_sent(new_page: Any) -> None:
    page = new_page(prepare=_with_glossary)
    sent: list[Any] = []

    def answer(route: Any) -> None:
        values = json.loads(route.request.post_data)
        sent.append(values.pop("glossary", None))
        reply = route.fetch(post_data=json.dumps(values))
        route.fulfill(response=reply)

    page.route("**/v1/translate", answer)
    write(page, TEXT)
    assert sent == [None]
    page.click("#open-glossary")
    word, rendering = (
        page.get_by_label("Word", exact=True),
        page.get_by_label("Translation of the word"),
    )
    assert (word.get_attribute("lang"), rendering.get_attribute("lang")) == ("en", "de")
    word.fill("morning")
    rendering.fill("Frühe")
    page.get_by_label("Exact case").check()
    done = num_done(page)
    page.click("#use-terms")
    page.wait_for_timeout(500)
    wait_done(page, done)
    assert sent[-1] == [{"source": "morning", "target": "Frühe", "case_sensitive": True}]
    page.select_option("#to", "zh-Hans")
    page.wait_for_timeout(600)
    assert sent[-1] is None
    _reload(page)
    page.select_option("#from", "en")
    page.select_option("#to", "de")
    page.click("#open-glossary")
    assert page.get_by_label("Translation of the word").input_value() == "Frühe"


def test_without_glossaries_of_the_server_there_is_no_editor(new_page: Any) -> None:
    def without(page: Any) -> None:
        page.route("**/openapi.json", lambda route: route.fulfill(json={"paths": {}}))

    page = new_page(prepare=without)
    assert page.locator("#open-glossary").is_hidden()
    assert write(page, TEXT)


def test_the_server_translates_as_the_glossary_says(new_page: Any) -> None:
    page = new_page()
    write(page, "Wir müssen jetzt nach Hause gehen.", source="de", target="en")
    page.click("#open-glossary")
    page.get_by_label("Word", exact=True).fill("Hause")
    page.get_by_label("Translation of the word").fill("homestead")
    page.click("#use-terms")
    page.wait_for_selector("#glossary-report:not([hidden])")
    assert "Used: Hause → homestead." in page.locator("#glossary-hits").inner_text()
    assert "homestead" in page.locator("#output").inner_text()


class _Detected:
    """A server that takes a text for one language after the other, and what it was asked with."""

    def __init__(self, sources: dict[str, list[str]]) -> None:
        self.sources = sources
        self.sent: list[tuple[str, list[str]]] = []

    def prepare(self, page: Any) -> None:
        page.route("**/v1/translate", self._answer)

    def _answer(self, route: Any) -> None:
        values = json.loads(route.request.post_data)
        [text] = values["texts"]
        terms = [one["target"] for one in values.get("glossary", [])]
        source = self.sources[text][len(self.sent) % len(self.sources[text])]
        self.sent.append((text, terms))
        detected = {"language": source, "confidence": 90}
        one = {"text": text.upper(), "segments": [], "alternatives": [], "detected": detected}
        route.fulfill(json={"translations": [one], "target": values["target"], "models": []})


def _keep_terms(page: Any, terms: dict[str, list[dict[str, str]]]) -> None:
    page.evaluate("terms => localStorage.setItem('dragoman.glossary', terms)", json.dumps(terms))
    _reload(page)


def test_terms_given_before_a_language_is_known_stay_when_one_is(new_page: Any) -> None:
    server = _Detected({"Die Bank": ["de"], "Die Bank ist": ["de"]})
    page = new_page(prepare=server.prepare)
    page.select_option("#to", "en")
    page.click("#open-glossary")
    page.get_by_label("Word", exact=True).fill("Bank")
    page.get_by_label("Translation of the word").fill("bench")
    page.click("#use-terms")
    write(page, "Die Bank", source="auto", target="en")
    write(page, "Die Bank ist", source="auto", target="en")
    assert server.sent == [("Die Bank", ["bench"]), ("Die Bank ist", ["bench"])]
    page.click("#open-glossary")
    assert page.get_by_label("Translation of the word").input_value() == "bench"
    page.get_by_label("Remove this word").click()
    page.wait_for_timeout(600)
    assert server.sent[2:] == [("Die Bank ist", [])]
    assert page.evaluate("localStorage.getItem('dragoman.glossary')") == "{}"


def _term(page: Any, number: int, source: str, target: str) -> None:
    page.get_by_label("Word", exact=True).nth(number).fill(source)
    page.get_by_label("Translation of the word").nth(number).fill(target)


def _kept_terms(page: Any) -> dict[str, list[tuple[str, str]]]:
    kept = json.loads(page.evaluate("localStorage.getItem('dragoman.glossary')") or "{}")
    return {pair: [(one["source"], one["target"]) for one in terms] for pair, terms in kept.items()}


def test_terms_of_two_tabs_come_together(new_page: Any) -> None:
    page = new_page()
    for name, tag in (("#from", "de"), ("#to", "en")):
        page.select_option(name, tag)
    other = _second_tab(page)
    page.click("#open-glossary")
    other.click("#open-glossary")
    _term(page, 0, "Bank", "bench")
    _term(other, 0, "Haus", "homestead")
    both = {("Bank", "bench"), ("Haus", "homestead")}
    page.wait_for_function("() => document.querySelectorAll('#term-list .term').length === 2")
    assert set(_kept_terms(page)["de>en"]) == both
    _term(page, 0, "Bank", "bank")
    other.get_by_label("Word", exact=True).nth(1).wait_for()
    assert set(_kept_terms(page)["de>en"]) == {("Bank", "bank"), ("Haus", "homestead")}


def test_a_term_of_another_tab_counts_where_the_editor_was_never_opened(new_page: Any) -> None:
    server = _Detected({"Die Bank": ["de"]})
    page = new_page(prepare=server.prepare)
    write(page, "Die Bank", source="de", target="en")
    other = _second_tab(page)
    other.click("#open-glossary")
    _term(other, 0, "Bank", "bench")
    page.wait_for_timeout(SETTLED_MS)
    assert server.sent == [("Die Bank", []), ("Die Bank", ["bench"])]


def test_a_term_that_another_tab_removed_does_not_come_back(new_page: Any) -> None:
    page = new_page()
    terms = [{"source": "Bank", "target": "bench"}, {"source": "Haus", "target": "homestead"}]
    for name, tag in (("#from", "de"), ("#to", "en")):
        page.select_option(name, tag)
    _keep_terms(page, {"de>en": terms, "en>de": terms})
    other = _second_tab(page)
    page.click("#open-glossary")
    other.click("#open-glossary")
    page.get_by_label("Remove this word").first.click()
    other.wait_for_function("() => document.querySelectorAll('#term-list .term').length === 1")
    other.click("#add-term")
    _term(other, 1, "Hof", "yard")
    assert _kept_terms(page) == {
        "de>en": [("Haus", "homestead"), ("Hof", "yard")],
        "en>de": [("Bank", "bench"), ("Haus", "homestead")],
    }


def test_of_equal_words_that_of_the_language_counts(new_page: Any) -> None:
    server = _Detected({"Die Bank": ["de"]})
    page = new_page(prepare=server.prepare)
    every, own = [{"source": "Bank", "target": "bank"}], [{"source": "Bank", "target": "bench"}]
    _keep_terms(page, {"de>en": own, "auto>en": every})
    write(page, "Die Bank", source="auto", target="en")
    wait_done(page, 2)
    assert server.sent == [("Die Bank", ["bank"]), ("Die Bank", ["bank", "bench"])]  # last counts


def test_a_text_in_another_language_is_asked_for_once_more_without_the_terms(new_page: Any) -> None:
    server = _Detected({"Die Bank": ["de"], "银行": ["zh-Hans"]})
    page = new_page(prepare=server.prepare)
    _keep_terms(page, {"de>en": [{"source": "Bank", "target": "bench"}]})
    write(page, "Die Bank", source="auto", target="en")
    wait_done(page, 2)
    write(page, "银行", source="auto", target="en")
    wait_done(page, 4)
    page.wait_for_timeout(600)
    assert server.sent[2:] == [("银行", ["bench"]), ("银行", [])]


def test_a_server_that_takes_a_text_for_ever_other_languages_is_asked_twice(new_page: Any) -> None:
    server = _Detected({"Bank": ["de", "zh-Hans"]})
    page = new_page(prepare=server.prepare)
    _keep_terms(page, {"de>en": [{"source": "Bank", "target": "bench"}]})
    write(page, "Bank", source="auto", target="en")
    wait_done(page, 2)
    page.wait_for_timeout(900)
    assert [terms for _, terms in server.sent] == [[], ["bench"]]


def test_a_term_of_a_spreadsheet_is_one_line(new_page: Any) -> None:
    server = _Detected({"Die Bank": ["de"]})
    page = new_page(prepare=server.prepare)
    _keep_terms(page, {"de>en": [{"source": "Bank", "target": "\tthe\t\u2028bench\u0085"}]})
    write(page, "Die Bank", source="de", target="en")
    assert server.sent == [("Die Bank", ["the bench"])]
