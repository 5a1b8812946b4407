import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from support.running_server import RunningServer
from support.translation_page import answer_word_by_word, num_done, shown, wait_done, write

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request

pytestmark = pytest.mark.browser

GERMAN = "Wir müssen jetzt nach Hause gehen."
ENGLISH = "We have to go home now."


def _watch(page: "Page", requests: list["Request"]) -> None:
    page.on("request", lambda one: requests.append(one) if "/v1/translate" in one.url else None)


def test_a_text_is_translated_as_the_api_translates_it(new_page: Any, site: RunningServer) -> None:
    page = new_page()
    assert write(page, GERMAN, source="de", target="en") == ENGLISH
    with site.client() as client:
        values = {"texts": GERMAN, "source": "de", "target": "en", "alternatives": 3}
        reply = client.post("/v1/translate", json=values).json()["translations"][0]
    assert reply["text"] == ENGLISH
    assert page.locator("#alternative-list button").all_text_contents() == reply["alternatives"]
    assert "en-de-small" in page.locator("#state").inner_text()
    assert page.locator("#output").get_attribute("lang") == "en"


def test_the_language_is_detected_and_named(new_page: Any) -> None:
    page = new_page()
    write(page, "Guten Tag, wie geht es Ihnen?", source="auto", target="en")
    assert re.match(r"German, \d+ % sure", page.locator("#detected").inner_text())
    assert "Chinese" in page.locator("#from").inner_text()


def test_typing_cancels_what_is_not_wanted_any_more(new_page: Any) -> None:
    page = new_page()
    requests: list[Request] = []
    cancelled: list[str] = []
    held: list[Any] = []
    _watch(page, requests)
    page.on("requestfailed", lambda one: cancelled.append(one.post_data or ""))
    page.route("**/v1/translate", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks a handler
    page.select_option("#from", "en")
    page.select_option("#to", "de")
    for text in ("The", "The cat", "The cat sleeps."):
        page.fill("#source", text)
        page.wait_for_timeout(450)  # longer than the pause after which is asked
    assert [json.loads(one.post_data)["texts"] for one in requests] == [
        ["The"],
        ["The cat"],
        ["The cat sleeps."],
    ]
    assert [json.loads(one)["texts"] for one in cancelled] == [["The"], ["The cat"]]
    held[-1].continue_()
    wait_done(page, 1)
    assert shown(page)
    assert num_done(page) == 1


def test_quick_typing_asks_once(new_page: Any) -> None:
    page = new_page()
    requests: list[Request] = []
    _watch(page, requests)
    page.select_option("#to", "de")
    page.locator("#source").press_sequentially("Good morning.", delay=15)
    wait_done(page, 1)
    assert len(requests) == 1


def _without_live(page: Any) -> "list[Request]":
    """Switch translation while typing off, choose German; requests from then on."""
    requests: list[Request] = []
    _watch(page, requests)
    page.click("#open-settings")
    page.uncheck("#live")
    page.keyboard.press("Escape")
    page.select_option("#to", "de")
    return requests


def test_without_live_translation_it_waits_for_the_keys(new_page: Any) -> None:
    page = new_page()
    requests = _without_live(page)
    page.fill("#source", "Good morning.")
    page.wait_for_timeout(600)
    assert requests == []
    assert "Ctrl" in page.locator("#state").inner_text()
    page.keyboard.press("Control+Enter")
    wait_done(page, 1)
    assert len(requests) == 1


def test_the_swap_translates_back(new_page: Any) -> None:
    page = new_page()
    write(page, GERMAN, source="auto", target="en")
    page.click("#swap")
    wait_done(page, 2)
    assert page.input_value("#source") == ENGLISH
    assert (page.input_value("#from"), page.input_value("#to")) == ("en", "de")


def test_the_swap_keeps_a_text_that_is_not_translated_yet(new_page: Any) -> None:
    page = new_page()
    write(page, GERMAN, source="de", target="en")
    page.route("**/v1/translate", lambda _route: None)  # never answered
    page.fill("#source", "Thank you.")
    page.click("#swap")
    assert page.input_value("#source") == "Thank you."
    assert (page.input_value("#from"), page.input_value("#to")) == ("en", "de")


def test_the_translation_of_another_text_is_not_copied(new_page: Any) -> None:
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    write(page, GERMAN, source="de", target="en")
    page.click("#copy")
    page.wait_for_selector("#state:text('Copied.')")
    assert page.evaluate("navigator.clipboard.readText()") == ENGLISH
    page.evaluate("navigator.clipboard.writeText('before')")
    page.route("**/v1/translate", lambda _route: None)  # never answered
    page.fill("#source", "Guten Tag.")
    page.click("#copy")
    page.wait_for_selector("#state:text('There is no translation of this text yet.')")
    assert page.evaluate("navigator.clipboard.readText()") == "before"


def test_an_alternative_takes_the_place_of_the_translation(new_page: Any) -> None:
    page = new_page()
    best = write(page, GERMAN, source="de", target="en")
    other = page.locator("#alternative-list button").nth(1).inner_text()
    page.locator("#alternative-list button").nth(1).click()
    assert shown(page) == other
    assert best in page.locator("#alternative-list button").all_text_contents()


def test_words_that_belong_together_are_marked_on_both_sides(new_page: Any) -> None:
    page = new_page()
    write(page, GERMAN, source="de", target="en")
    page.locator("#output .word", has_text="home").hover()
    assert page.locator("#output .is-marked").all_text_contents() == ["home"]
    assert "Hause" in page.locator("#mirror .is-marked").all_text_contents()
    page.locator("#output .word", has_text="now").hover()
    assert "jetzt" in page.locator("#mirror .is-marked").all_text_contents()
    box = page.locator("#mirror .word", has_text="Hause").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("#output .is-marked:text('home')")


def test_the_word_map_has_a_row_for_every_word(new_page: Any) -> None:
    page = new_page()
    write(page, GERMAN, source="de", target="en")
    page.click("#word-map summary")
    page.wait_for_selector(".map tbody th")
    words = page.locator("#output .word").all_text_contents()
    assert page.locator(".map tbody th").all_text_contents() == words
    assert page.locator(".map td[class^=level-]").count() >= len(words) - 1
    assert "% sure" in page.locator(".map td[class^=level-]").first.text_content()


def test_the_heat_map_is_asked_for_when_it_is_opened(new_page: Any) -> None:
    page = new_page()
    requests: list[Request] = []
    _watch(page, requests)
    write(page, GERMAN, source="de", target="en")
    done = num_done(page)
    page.focus("#heat-map summary")
    page.keyboard.press("Enter")
    wait_done(page, done + 1)
    asked = ["attention" in json.loads(one.post_data or "") for one in requests]
    assert asked == [False, True]
    words = page.locator("#output .word").all_text_contents()
    assert page.locator("#heat-scroll tbody th").all_text_contents() == words
    cells = page.locator("#heat-scroll td[class^=level-]")
    assert cells.count() > len(words)
    assert all("% of its attention" in text for text in cells.all_text_contents())
    page.route("**/v1/translate", lambda route: _without_attention(route))  # noqa: PLW0108  # as above
    write(page, ENGLISH, source="en", target="de")
    assert page.locator("#heat-scroll").inner_text() == (
        "For this sentence the server does not tell it."
    )


def _without_attention(route: Any) -> None:
    reply = route.fetch()
    content = reply.json()
    for segment in content["translations"][0]["segments"]:
        segment["attention"] = None
    route.fulfill(response=reply, json=content)


def _with_a_failed_check(route: Any) -> None:
    reply = route.fetch()
    content = reply.json()
    content["translations"][0]["segments"][0]["quality"]["failed"] = ["numbers", "new_check"]
    route.fulfill(response=reply, json=content)


def test_what_a_check_found_is_told(new_page: Any) -> None:
    page = new_page()

    page.route("**/v1/translate", _with_a_failed_check)
    write(page, "There are 17 trees.")
    said = page.locator("#flag-list").inner_text()
    assert "The numbers differ." in said
    assert "(new_check)" in said
    assert page.locator("#output .has-flag").count() == 1


MARKUP = [
    '<img src=x onerror="window.hacked=1"> is an image.',
    "<script>window.hacked=1</script>",
    "\"><svg onload='window.hacked=1'>",
    "javascript:window.hacked=1",
    "{{constructor.constructor('window.hacked=1')()}}",
]


@pytest.mark.parametrize("text", MARKUP)
def test_markup_in_a_text_is_text(new_page: Any, text: str) -> None:
    page = new_page()
    page.add_init_script("window.hacked = 0")
    write(page, text)
    page.click("#word-map summary") if page.locator("#word-map").is_visible() else None
    page.wait_for_timeout(1700)  # until it is in the history
    page.click("#open-history")
    assert text in page.locator("#history-list").inner_text()
    assert page.evaluate("window.hacked") in (0, None)
    for selector in ("#output", "#mirror", "#history-list", "#alternative-list", "#flag-list"):
        tags = page.locator(selector).evaluate(
            "one => [...one.querySelectorAll('*')].map(x => x.tagName)"
        )
        assert set(tags) <= {"SPAN", "LI", "BUTTON", "STRONG", "Q"}


@pytest.mark.parametrize("text", MARKUP[:2])
def test_markup_in_an_answer_is_text(new_page: Any, text: str) -> None:
    page = new_page()
    evil = {"text": text, "segments": [], "alternatives": [text]}
    content = {
        "translations": [evil],
        "source": text,
        "target": "de",
        "models": [text],
        "usage": {},
    }
    page.route("**/v1/translate", lambda route: route.fulfill(json=content))
    assert write(page, "Hello") == text
    assert text in page.locator("#state").inner_text()
    assert page.evaluate("window.hacked") is None


def test_the_policy_would_stop_what_slipped_through(new_page: Any) -> None:
    page = new_page(expected="requires 'TrustedHTML'")
    tried = """() => { try { document.body.innerHTML = '<b>x</b>'; return 'done'; }
                       catch (error) { return error.name; } }"""
    # Asked in the page's own world, as a script of it would: the policy refuses, and says so.
    assert page.evaluate(tried) == "TypeError"


def test_emoji_and_line_breaks_stay_where_they_are(new_page: Any) -> None:
    page = new_page()
    text = "Good morning 😀!\n\n  Thank you."
    translated = write(page, text)
    assert "😀" in translated
    assert "\n\n  " in translated
    assert page.locator("#mirror").text_content() == f"{text}\n"


def test_without_live_translation_a_button_translates(new_page: Any) -> None:
    page = new_page()
    requests = _without_live(page)
    assert page.locator("#translate").is_hidden()
    page.fill("#source", "Good morning.")
    page.click("#open-glossary")
    page.get_by_label("Word", exact=True).fill("morning")
    page.get_by_label("Translation of the word").fill("Frühe")
    page.click("#use-terms")
    page.wait_for_timeout(600)
    assert requests == []
    page.click("#translate")
    wait_done(page, 1)
    assert len(requests) == 1
    assert page.locator("#translate").is_hidden()
    page.select_option("#to", "zh-Hans")
    assert page.locator("#output.is-stale").count() == 1
    page.select_option("#to", "de")
    assert page.locator("#output.is-stale").count() == 0


def test_without_live_translation_the_heat_map_sends_no_new_text(new_page: Any) -> None:
    page = new_page()
    requests = _without_live(page)
    page.fill("#source", "Hello friends.")
    page.click("#translate")
    wait_done(page, 1)
    page.fill("#source", "Hello friends. My private note.")
    page.click("#heat-map summary")
    page.wait_for_timeout(600)
    assert len(requests) == 1
    page.fill("#source", "Hello friends.")
    page.click("#heat-map summary")
    page.click("#heat-map summary")
    wait_done(page, 2)


@pytest.mark.parametrize(("locale", "target"), [("en-GB", "en"), ("de-AT", "en")])
def test_the_swap_of_a_text_that_is_in_the_language_already_translates_it(
    new_page: Any, locale: str, target: str
) -> None:
    page = new_page(locale=locale)
    text = "Guten Tag, wie geht es Ihnen?"
    assert write(page, text, source="auto", target="de") == text
    page.click("#swap")
    wait_done(page, 2)
    assert (page.input_value("#from"), page.input_value("#to")) == ("de", target)
    assert page.input_value("#source") == text


def test_the_sentence_of_the_word_map_stays_when_the_heat_map_comes(new_page: Any) -> None:
    page = new_page()
    write(page, "Good morning. Thank you. Good night.")
    page.click("#word-map summary")
    page.select_option("#map-segment", "2")
    page.click("#heat-map summary")
    wait_done(page, 2)
    assert page.input_value("#map-segment") == "2"
    words = page.locator("#map-scroll tbody th").all_text_contents()
    assert words == page.locator("#output .segment").nth(2).locator(".word").all_text_contents()
    write(page, "Good morning. Thank you. Good evening.")
    assert page.input_value("#map-segment") == "0"


def test_every_line_of_a_translation_runs_as_its_own_letters_do(new_page: Any) -> None:
    page = new_page()
    answer_word_by_word(page, "iPhone 12\nمرحبا أيها العالم الجميل.")
    write(page, "iPhone 12\nHello beautiful world.")
    pane = page.locator("#output").bounding_box()
    middle = pane["x"] + pane["width"] / 2
    boxes = [
        page.locator("#output .word", has_text=word).bounding_box()
        for word in ("iPhone", "مرحبا", "الجميل")
    ]
    latin, first, last = [box["x"] for box in boxes]
    assert latin < middle < last < first
    styles = "one => getComputedStyle(one).unicodeBidi"
    for selector in ("#output", "#alternative-list button"):
        assert page.locator(selector).first.evaluate(styles) == "plaintext"


LANG = "one => one.closest('[lang]').lang"


def test_every_text_says_its_language(new_page: Any) -> None:
    page = new_page()
    assert page.locator("#source").evaluate(LANG) == "en"  # of the page, for the words in the field
    page.route("**/v1/translate", _with_a_failed_check)
    write(page, GERMAN + " Guten Tag.", source="auto", target="zh-Hans")
    page.click("#word-map summary")
    for selector, tag in (
        ("#source", "de"),
        ("#mirror", "de"),
        ("#output", "zh-Hans"),
        ("#alternative-list button", "zh-Hans"),
        ("#map-segment option", "de"),
        ("#map-scroll thead th", "de"),
        ("#map-scroll tbody th", "zh-Hans"),
        ("#map-scroll td[class] .hidden-text", "en"),
        ("#flag-list q", "de"),
    ):
        assert page.locator(selector).first.evaluate(LANG) == tag, selector
    page.select_option("#from", "de")
    wait_done(page, 2)
    page.click("#open-history")
    entry = page.locator("#history-list .entry span")
    assert [entry.nth(n).evaluate(LANG) for n in (0, 1)] == ["de", "zh-Hans"]
    page.keyboard.press("Escape")
    page.click("#clear")
    assert page.locator("#source").evaluate(LANG) == "en"
