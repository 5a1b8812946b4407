"""What a person does on the translation page, and sees there."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page


def num_done(page: "Page") -> int:
    """How many translations were shown."""
    return int(page.locator("#output").get_attribute("data-done") or 0)


def write(page: "Page", text: str, *, source: str = "en", target: str = "de") -> str:
    """Choose languages, put a text into the field, and wait for its translation."""
    page.select_option("#from", source)
    page.select_option("#to", target)
    done = num_done(page)
    page.fill("#source", text)
    wait_done(page, done + 1)
    return shown(page)


def wait_done(page: "Page", num: int) -> None:
    """Wait until so many translations were shown."""
    page.wait_for_function(
        "num => Number(document.getElementById('output').dataset.done ?? 0) >= num", arg=num
    )


def shown(page: "Page") -> str:
    """The text of the right pane."""
    return page.locator("#output").text_content() or ""


def notice(page: "Page") -> str:
    """What the bar says, once it is there."""
    page.wait_for_selector("#notice:not([hidden])")
    return page.locator("#notice-text").inner_text()
