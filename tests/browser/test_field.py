"""The text field: input methods, undo, and text that runs from right to left."""

import json
from typing import Any

import pytest

from support.translation_page import answer_in_capitals, wait_done, write

pytestmark = pytest.mark.browser

PAUSE_MS = 700  # longer than the pause after which is asked
ANDROID = "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36"


def _compose(session: Any, text: str) -> None:
    place = {"selectionStart": len(text), "selectionEnd": len(text)}
    session.send("Input.imeSetComposition", {"text": text, **place})


def test_a_word_that_is_still_composed_is_not_translated(new_page: Any) -> None:
    page = new_page()
    asked = answer_in_capitals(page)
    session = page.context.new_cdp_session(page)
    page.focus("#source")
    for text in ("n", "ni", "ni hao"):
        _compose(session, text)
    page.wait_for_timeout(PAUSE_MS)
    assert asked == []
    assert page.locator("#mirror").text_content() == "ni hao\n"
    session.send("Input.insertText", {"text": "你好"})
    wait_done(page, 1)
    assert asked == ["你好"]


def test_android_composes_every_word_and_is_waited_for_longer(new_page: Any) -> None:
    page = new_page(user_agent=ANDROID)
    asked = answer_in_capitals(page)
    session = page.context.new_cdp_session(page)
    page.focus("#source")
    _compose(session, "good")
    page.wait_for_timeout(PAUSE_MS)
    assert asked == []
    wait_done(page, 1)
    assert asked == ["good"]


def test_a_term_that_is_still_composed_is_not_kept(new_page: Any) -> None:
    page = new_page()
    session = page.context.new_cdp_session(page)
    page.click("#open-glossary")
    page.get_by_label("Word", exact=True).focus()
    _compose(session, "yinhang")
    kept = "localStorage.getItem('dragoman.glossary') ?? ''"
    assert page.evaluate(kept) == ""
    session.send("Input.insertText", {"text": "银行"})
    assert "银行" in page.evaluate(kept)
    assert "yinhang" not in page.evaluate(kept)


@pytest.mark.parametrize("control", ["#swap", "#clear"])
def test_a_text_that_was_taken_away_can_be_taken_back(new_page: Any, control: str) -> None:
    page = new_page()
    asked = answer_in_capitals(page)
    write(page, "Good morning.")
    page.click(control)
    assert page.input_value("#source") != "Good morning."
    kept = json.loads(page.evaluate("localStorage.getItem('dragoman.history')"))
    assert [one["text"] for one in kept] == ["Good morning."]
    page.focus("#source")
    page.keyboard.press("Control+z")
    assert page.input_value("#source") == "Good morning."
    page.wait_for_timeout(PAUSE_MS)
    assert asked[-1] == "Good morning."


def test_the_swap_keeps_the_focus(new_page: Any) -> None:
    page = new_page()
    answer_in_capitals(page)
    write(page, "Good morning.")
    page.focus("#swap")
    page.keyboard.press("Enter")
    assert page.input_value("#source") == "GOOD MORNING."
    assert page.evaluate("document.activeElement.id") == "swap"


def test_the_mirror_has_every_line_where_the_field_has_it(new_page: Any) -> None:
    page = new_page()
    page.fill("#source", "صباح الخير\nGood morning")
    styles = """['source', 'mirror'].map((id) => {
      const style = getComputedStyle(document.getElementById(id));
      return [style.direction, style.unicodeBidi, style.textAlign];
    })"""
    source, mirror = page.evaluate(styles)
    assert source == mirror
    assert source[0] == "rtl"


SIZES = """(() => {
  const field = document.getElementById('source');
  return [field.clientHeight, field.scrollHeight, innerHeight];
})()"""


def test_a_longer_text_and_its_translation_have_smaller_letters_alike(new_page: Any) -> None:
    page = new_page()
    answer_in_capitals(page)
    sizes = {}
    for number, text in enumerate(("A cat. ", "A cat. " * 100), start=1):
        write(page, text)
        wait_done(page, number)
        sizes[number] = {
            page.locator(part).evaluate("one => getComputedStyle(one).fontSize")
            for part in ("#source", "#mirror", "#output")
        }
    assert len(sizes[1]) == len(sizes[2]) == 1
    assert sizes[1] != sizes[2]


def test_a_text_that_is_far_too_long_is_laid_out_once_and_scrolls_in_its_field(
    new_page: Any,
) -> None:
    page = new_page()
    page.fill("#source", "Some words of a text. " * 5000)
    seen, whole, window = page.evaluate(SIZES)
    assert seen < window < whole
    assert page.locator("#mirror").text_content() == ""
    page.fill("#source", "Some words of a text.\n" * 30)
    seen, whole, _window = page.evaluate(SIZES)
    assert seen == whole
    assert page.locator("#mirror").text_content() == page.input_value("#source") + "\n"


def test_a_text_without_marks_is_translated_where_a_server_takes_so_long_ones(
    new_page: Any,
) -> None:
    def prepare(page: Any) -> None:
        page.route("**/openapi.json", lambda route: route.fulfill(json={"paths": {}}))

    page = new_page(prepare=prepare)
    answer_in_capitals(page)
    text = "Some words of a text.\n" * 1200
    assert write(page, text) == text.upper()
    assert page.locator("#mirror").text_content() == ""
