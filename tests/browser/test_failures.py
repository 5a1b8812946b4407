import re
from collections.abc import Iterator
from typing import Any

import pytest

from support.running_server import ROOT, RunningServer, running_server
from support.translation_page import answer_in_capitals, notice, shown, wait_done, write

pytestmark = pytest.mark.browser

TEXT = "Good morning."


def _refusal(status: int, code: str, **values: object) -> dict[str, Any]:
    content = {"error": "words of the server", "code": code, "value": None, "limit": None} | values
    return {"status": status, "json": content}


def _fill(page: Any, text: str = TEXT) -> None:
    page.select_option("#from", "en")
    page.select_option("#to", "de")
    page.fill("#source", text)


def test_a_full_server_is_asked_again_when_it_says(new_page: Any) -> None:
    page = new_page()
    answers = [_refusal(429, "overloaded") | {"headers": {"retry-after": "1"}}]

    def answer(route: Any) -> None:
        route.fulfill(**answers.pop()) if answers else route.continue_()

    page.route("**/v1/translate", answer)
    _fill(page)
    assert "too much to do" in notice(page)
    assert "Next try in" in notice(page)
    wait_done(page, 1)
    assert shown(page)
    assert page.locator("#notice").is_hidden()


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (_refusal(413, "too_long", value=60000, limit=20000), "60,000, where 20,000 is the most"),
        (_refusal(400, "unknown_language"), "cannot do this: words of the server"),
        (_refusal(504, "deadline"), "took too long"),
        (_refusal(500, "internal"), "Something went wrong on the server"),
        ({"status": 502, "body": "<html>Bad Gateway"}, "is starting"),
        (_refusal(503, "restarting") | {"headers": {"retry-after": "60"}}, "is starting"),
    ],
)
def test_a_failure_is_told_in_plain_words(new_page: Any, refusal: Any, words: str) -> None:
    page = new_page()
    page.route("**/v1/translate", lambda route: route.fulfill(**refusal))
    _fill(page)
    assert words in notice(page)
    assert page.locator("#output").get_attribute("aria-busy") is None
    page.unroute("**/v1/translate")
    page.fill("#source", f"{TEXT} ")
    wait_done(page, 1)
    assert page.locator("#notice").is_hidden()


def test_a_text_beyond_the_limit_is_not_sent(new_page: Any) -> None:
    page = new_page()
    requests: list[str] = []
    page.on("request", lambda one: requests.append(one.url))
    _fill(page, "word " * 5000)
    assert "25,000, where 20,000 is the most" in notice(page)
    assert page.locator("#count").inner_text() == "25,000 / 20,000"
    page.wait_for_timeout(500)
    page.keyboard.press("Control+Enter")
    page.wait_for_timeout(200)
    assert not [url for url in requests if "translate" in url]
    assert page.locator("#notice").is_visible()


def test_a_proxy_that_reaches_no_server_is_asked_again(new_page: Any) -> None:
    page = new_page()
    answers: list[dict[str, Any]] = [{"status": 502, "body": "<html>Bad Gateway"}]
    page.route(
        "**/v1/translate",
        lambda route: route.fulfill(**answers.pop()) if answers else route.continue_(),
    )
    _fill(page)
    assert "Next try in" in notice(page)
    wait_done(page, 1)


def test_a_long_wait_that_the_server_wants_is_told(new_page: Any) -> None:
    page = new_page()
    refusal = _refusal(429, "limited") | {"headers": {"retry-after": "80"}}
    page.route("**/v1/translate", lambda route: route.fulfill(**refusal))
    _fill(page)
    assert "too much to do" in notice(page)
    seen = page.locator("#notice-text [aria-hidden]")
    assert re.fullmatch(r"Try again in (80|79) s\.", seen.inner_text().strip())
    said = page.locator("#notice-text .hidden-text").inner_text()
    assert said.strip() == "Try again in 80 s."
    page.wait_for_selector("#notice-text [aria-hidden]:text('78 s')")
    page.select_option("#to", "zh-Hans")
    assert page.locator("#notice").is_hidden()


DESK = {"width": 1280, "height": 720}
PHONE = {"width": 360, "height": 740}
LOW = {"width": 640, "height": 300}


def _is_in_sight(page: Any, selector: str) -> bool:
    """Whether an element lies in the window, and nothing over it."""
    return bool(
        page.locator(selector).evaluate(
            """one => {
              const { left, right, top, bottom } = one.getBoundingClientRect();
              const over = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
              return top >= 0 && bottom <= innerHeight && one.contains(over);
            }"""
        )
    )


@pytest.mark.parametrize("viewport", [DESK, PHONE, LOW], ids=["desk", "phone", "low"])
def test_a_failure_is_seen_wherever_a_long_text_is_written(
    new_page: Any, viewport: dict[str, int]
) -> None:
    page = new_page(viewport=viewport)
    text = "A sentence of a long text. " * 160
    answer_in_capitals(page)
    write(page, text)
    page.evaluate("window.scrollTo(0, 0)")
    assert _is_in_sight(page, "#open-file") == (viewport is not LOW)
    assert _is_in_sight(page, "#copy") == (viewport is DESK)
    page.unroute("**/v1/translate")
    refusal = _refusal(503, "restarting") | {"headers": {"retry-after": "60"}}
    page.route("**/v1/translate", lambda route: route.fulfill(**refusal))
    page.focus("#source")
    page.keyboard.press("Control+End")
    page.keyboard.type("word")
    assert "is starting" in notice(page)
    assert page.evaluate("window.scrollY") > 500
    assert _is_in_sight(page, "#notice")
    caret = """(() => {
      const range = document.createRange();
      const mirror = document.getElementById('mirror').firstChild;
      range.setStart(mirror, mirror.length - 2);
      range.setEnd(mirror, mirror.length - 1);
      return range.getBoundingClientRect().bottom;
    })()"""
    foot = page.locator(".foot").first.bounding_box()
    assert page.evaluate(caret) < min(foot["y"], viewport["height"]) + 1  # of a pixel, a part


def test_without_a_connection_it_says_so_and_goes_on_by_itself(new_page: Any) -> None:
    page = new_page()
    page.context.set_offline(True)
    _fill(page)
    assert "cannot be reached" in notice(page)
    page.context.set_offline(False)
    wait_done(page, 1)
    assert page.locator("#notice").is_hidden()


def test_a_translation_of_another_text_is_dimmed_while_there_is_none_of_this_one(
    new_page: Any,
) -> None:
    page = new_page()
    _fill(page)
    wait_done(page, 1)
    page.context.set_offline(True)
    page.fill("#source", "Thank you.")
    assert "cannot be reached" in notice(page)
    assert page.locator("#output.is-stale").count() == 1
    page.context.set_offline(False)
    wait_done(page, 2)
    assert page.locator("#output.is-stale").count() == 0


def test_a_translation_of_what_is_too_long_now_is_dimmed(new_page: Any) -> None:
    page = new_page()
    _fill(page)
    wait_done(page, 1)
    page.fill("#source", "word " * 5000)
    assert page.locator("#output.is-stale").count() == 1


def test_what_stands_there_after_a_stop_is_dimmed_and_can_be_asked_for(new_page: Any) -> None:
    page = new_page()
    _fill(page)
    wait_done(page, 1)
    held: list[Any] = []
    page.route("**/v1/translate", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks a handler
    page.select_option("#to", "zh-Hans")
    page.click("#stop")
    assert page.locator("#output.is-stale").count() == 1
    page.unroute("**/v1/translate")
    page.click("#translate")
    wait_done(page, 2)
    assert page.locator("#output.is-stale").count() == 0


def test_a_slow_answer_is_told_and_can_be_stopped(new_page: Any) -> None:
    page = new_page()
    held: list[Any] = []
    page.route("**/v1/translate", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks a handler
    _fill(page)
    page.wait_for_selector("#stop:not([hidden])")
    assert "longer than usual" in page.locator("#state").inner_text()
    page.click("#stop")
    assert page.locator("#state").inner_text() == "Stopped."
    assert page.locator("#output").get_attribute("aria-busy") is None
    page.unroute("**/v1/translate")
    page.keyboard.press("Control+Enter")
    wait_done(page, 1)


def test_a_server_that_starts_is_waited_for(new_page: Any) -> None:
    answers = [_refusal(503, "booting")]

    def prepare(page: Any) -> None:
        page.route(
            "**/languages",
            lambda route: route.fulfill(**answers.pop()) if answers else route.continue_(),
        )

    page = new_page(prepare=prepare)
    assert page.locator("#to option").count() >= 2
    assert page.locator("#notice").is_hidden()


def test_detection_that_is_off_asks_for_a_language(new_page: Any) -> None:
    page = new_page()
    page.route("**/v1/translate", lambda route: route.fulfill(**_refusal(403, "detection_off")))
    page.fill("#source", TEXT)
    assert "does not detect languages" in notice(page)
    assert page.locator("#key-form").is_hidden()


KEY = "a-key-of-more-than-22-characters"


@pytest.fixture(scope="module")
def closed_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    from hashlib import sha256

    log = tmp_path_factory.mktemp("closed") / "log.jsonl"
    keys = f'alice = {{ sha256 = "{sha256(KEY.encode()).hexdigest()}" }}'
    with running_server(ROOT / "checkpoints/en-de-small", log, DRAGOMAN_API_KEYS=keys) as server:
        yield server


def test_a_key_is_asked_for_used_and_forgotten_with_the_tab(
    new_page: Any, closed_site: RunningServer
) -> None:
    page = new_page(url=closed_site.url)
    _fill(page)
    assert "wants an API key" in notice(page)
    page.fill("#key", "wrong-key-of-more-than-22-characters")
    page.press("#key", "Enter")
    page.wait_for_selector("#notice[data-kind=key_wrong]")
    assert "not accepted" in notice(page)
    page.fill("#key", KEY)
    page.click("#key-form button")
    wait_done(page, 1)
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")
    assert write(page, TEXT)
    assert KEY not in page.evaluate("JSON.stringify(localStorage)")


def test_a_key_that_no_header_can_hold_is_not_accepted(new_page: Any) -> None:
    page = new_page()
    page.click("#open-settings")
    page.fill("#settings-key", "schlüssel-Ω")
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    _fill(page)
    assert "not accepted" in notice(page)
