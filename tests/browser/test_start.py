"""The start of the page: what the server has is asked for until it is known."""

from collections.abc import Callable
from typing import Any

import pytest

from support.translation_page import notice, write

pytestmark = pytest.mark.browser

READY = "html[data-ready]"


def _failing(pattern: str, num: int, **answer: Any) -> tuple[Callable[[Any], None], list[float]]:
    """A preparation of the page: the first answers are this one; and when each was asked for."""
    times: list[float] = []

    def fail(route: Any) -> None:
        times.append(len(times))
        route.fulfill(**answer) if len(times) <= num else route.continue_()

    return lambda page: page.route(pattern, fail), times


@pytest.mark.parametrize("status", [429, 502, 504])
def test_whatever_the_languages_fail_with_they_are_asked_for_again(
    new_page: Any, status: int
) -> None:
    prepare, times = _failing("**/languages", 1, status=status, body="<html>")
    page = new_page(prepare=prepare)
    assert len(times) == 2
    assert page.locator("#notice").is_hidden()


def _opened(page: Any, url: str) -> None:
    page.goto(url)
    page.wait_for_selector("#notice:not([hidden])")


def test_one_loop_asks_however_often_it_is_told_to(new_page: Any) -> None:
    page = new_page()
    prepare, times = _failing("**/languages", 99, status=503, json={"error": "x"})
    prepare(page)
    _opened(page, page.url)
    for _ in range(4):
        page.click("#notice-action")
        page.wait_for_selector("#notice:not([hidden])")
    assert len(times) == 5
    page.wait_for_timeout(4500)
    assert len(times) <= 6


def test_what_keeps_the_page_from_starting_stays_in_sight(new_page: Any) -> None:
    page = new_page()
    prepare, _ = _failing("**/languages", 99, status=503, json={"error": "x"})
    prepare(page)
    _opened(page, page.url)
    page.fill("#source", "Good morning.")
    assert "is starting" in notice(page)


def test_strings_that_cannot_be_had_do_not_keep_the_page_from_starting(new_page: Any) -> None:
    def prepare(page: Any) -> None:
        page.route("**/strings-de.json", lambda route: route.abort())

    page = new_page(prepare=prepare, locale="de-DE")
    assert page.locator("html").get_attribute("lang") == "en"
    assert write(page, "Good morning.")
    page.click("#open-settings")
    page.select_option("#interface", "de")
    assert "cannot be reached" in notice(page)
    assert page.input_value("#interface") == "en"


def test_a_description_that_failed_is_asked_for_again(new_page: Any) -> None:
    prepare, times = _failing("**/openapi.json", 1, status=502, body="<html>")
    page = new_page(prepare=prepare)
    assert page.locator("#open-glossary").is_hidden()
    page.wait_for_selector("#open-glossary:not([hidden])")
    assert len(times) == 2
    assert "/" in page.locator("#count").inner_text()
