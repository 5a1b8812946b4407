from typing import Any

import pytest

from support.translation_page import answer_word_by_word, shown, wait_done, write

pytestmark = pytest.mark.browser

TEXT = "Wir müssen jetzt nach Hause gehen."
FOCUSED = "document.activeElement.id"


def _tab(page: Any, times: int) -> list[str]:
    order = []
    for _ in range(times):
        page.keyboard.press("Tab")
        order.append(page.evaluate(FOCUSED))
    return order


def test_the_focus_goes_through_the_page_as_it_is_read(new_page: Any) -> None:
    page = new_page()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the link past the header
    assert page.evaluate(FOCUSED) == "source"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(FOCUSED) == "to"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(FOCUSED) == "swap"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(FOCUSED) == "from"
    assert _tab(page, 5) == ["swap", "to", "source", "open-file", "output"]


def test_everything_can_be_done_with_keys_alone(new_page: Any) -> None:
    page = new_page()
    page.keyboard.press("Alt+Shift+T")
    page.keyboard.type("Thank you for your help.")
    wait_done(page, 1)
    best = shown(page)
    other = page.locator("#alternative-list button").first.inner_text()
    page.keyboard.press("Alt+Shift+1")
    assert shown(page) == other
    page.keyboard.press("Alt+Shift+1")
    assert shown(page) == best
    page.keyboard.press("Alt+Shift+S")
    wait_done(page, 2)
    assert page.input_value("#source") == best
    page.keyboard.press("Alt+Shift+H")
    assert page.locator("#history-dialog").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#history-dialog").is_hidden()
    assert page.evaluate(FOCUSED) == "source"


def test_the_translation_is_copied(new_page: Any) -> None:
    page = new_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    translated = write(page, TEXT, source="de", target="en")
    page.keyboard.press("Alt+Shift+C")
    page.wait_for_function("() => document.getElementById('state').textContent === 'Copied.'")
    assert page.evaluate("navigator.clipboard.readText()") == translated


def test_arrow_keys_go_from_word_to_word_and_say_where_each_comes_from(new_page: Any) -> None:
    page = new_page()
    write(page, TEXT, source="de", target="en")
    words = page.locator("#output .word").all_text_contents()
    page.focus("#output")
    for word in words:
        page.keyboard.press("ArrowRight")
        assert page.locator("#output .is-marked").text_content() == word
        assert page.locator("#announcer").text_content().startswith(word)
    said = page.locator("#announcer").text_content()
    page.keyboard.press("ArrowLeft")
    assert page.locator("#announcer").text_content() != said
    page.keyboard.press("Escape")
    assert page.locator(".is-marked").count() == 0


def test_the_caret_in_the_text_marks_its_translation(new_page: Any) -> None:
    page = new_page()
    write(page, TEXT, source="de", target="en")
    page.focus("#source")
    page.evaluate("document.getElementById('source').setSelectionRange(23, 23)")
    page.keyboard.press("ArrowRight")
    assert page.locator("#output .is-marked").all_text_contents() == ["home"]


def test_shortcuts_are_shown(new_page: Any) -> None:
    page = new_page()
    page.click("#open-shortcuts")
    assert page.locator("#shortcut-list dt").count() == page.locator("#shortcut-list dd").count()
    assert "Swap the languages" in page.locator("#shortcut-list").inner_text()


AS_A_MAC = """Object.defineProperty(navigator, 'userAgentData', {
  get: () => ({ platform: 'macOS' }),
});"""


def test_on_a_mac_the_keys_are_those_that_write_nothing(new_page: Any) -> None:
    page = new_page(prepare=lambda page: page.add_init_script(AS_A_MAC))
    write(page, TEXT, source="de", target="en")
    page.keyboard.press("Alt+Shift+S")  # writes a character there
    assert page.input_value("#to") == "en"
    assert page.locator("#swap").get_attribute("aria-keyshortcuts") == "Control+Alt+S"
    first = page.locator("#alternative-list button").first
    assert first.get_attribute("aria-keyshortcuts") == "Control+Alt+1"
    page.click("#open-shortcuts")
    keys = page.locator("#shortcut-list dt").all_inner_texts()
    assert "⌃ ⌥ S" in keys
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Alt+S")
    assert page.input_value("#to") == "de"


def test_an_alternative_leaves_the_focus_in_the_text(new_page: Any) -> None:
    page = new_page()
    write(page, TEXT, source="de", target="en")
    page.focus("#source")
    page.keyboard.press("Alt+Shift+1")
    assert page.evaluate(FOCUSED) == "source"
    page.locator("#alternative-list button").nth(1).focus()
    page.keyboard.press("Enter")
    focused = "[...document.querySelectorAll('#alternative-list button')]"
    assert page.evaluate(f"{focused}.indexOf(document.activeElement)") == 1


def test_the_focus_is_not_lost_with_the_button_that_had_it(new_page: Any) -> None:
    page = new_page()
    page.select_option("#to", "de")
    held: list[Any] = []
    page.route("**/v1/translate", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks a handler
    page.fill("#source", "Thank you.")
    page.wait_for_selector("#stop:not([hidden])")
    page.focus("#stop")
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUSED) == "translate"
    page.route("**/v1/translate", lambda route: route.fulfill(status=500, json={"error": "x"}))
    page.keyboard.press("Enter")
    page.wait_for_selector("#notice-action:visible")
    assert page.evaluate(FOCUSED) == "output"
    page.focus("#notice-action")
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUSED) == "output"


def test_a_way_that_does_not_lead_back_is_said_where_it_is_seen(new_page: Any) -> None:
    def prepare(page: Any) -> None:
        names = [("de", ["en"]), ("en", [])]
        known = [{"code": tag, "name": tag, "targets": targets} for tag, targets in names]
        page.route("**/languages", lambda route: route.fulfill(json=known))

    page = new_page(prepare=prepare)
    page.click("#swap")
    assert "no translation in the other direction" in page.locator("#state").inner_text()


def test_the_word_that_arrow_keys_have_come_to_is_in_sight(new_page: Any) -> None:
    page = new_page(viewport={"width": 360, "height": 400})
    write(page, "\n".join([TEXT] * 12), source="de", target="en")
    page.focus("#output")
    page.evaluate("window.scrollTo(0, 0)")
    page.keyboard.press("ArrowLeft")  # the last word
    box = page.locator("#output .is-marked").bounding_box()
    assert box["y"] + box["height"] <= 401


def test_arrow_keys_go_where_they_point_in_text_that_runs_from_right_to_left(
    new_page: Any,
) -> None:
    page = new_page()
    answer_word_by_word(page, "مرحبا أيها العالم\nHello iPhone world")
    write(page, "one two three\nfour five six")
    page.focus("#output")
    marked = page.locator("#output .is-marked")
    for word in ["مرحبا", "أيها", "العالم", "Hello"]:
        page.keyboard.press("ArrowLeft")
        assert marked.text_content() == word
    page.keyboard.press("ArrowRight")
    assert marked.text_content() == "iPhone"
    for word in ["Hello", "العالم"]:
        page.keyboard.press("ArrowLeft")
        assert marked.text_content() == word
    page.keyboard.press("ArrowRight")
    assert marked.text_content() == "أيها"
    page.keyboard.press("ArrowDown")
    assert marked.text_content() == "العالم"


def test_the_focus_stays_on_an_alternative_when_the_text_is_translated_anew(
    new_page: Any,
) -> None:
    page = new_page()
    write(page, TEXT, source="de", target="en")
    page.locator("#alternative-list button").nth(1).focus()
    page.keyboard.press("Control+Enter")
    wait_done(page, 2)
    focused = "[...document.querySelectorAll('#alternative-list button')]"
    assert page.evaluate(f"{focused}.indexOf(document.activeElement)") == 1
