"""What a person does on the translation page, and sees there."""

import json
import re
from typing import TYPE_CHECKING, Any

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


def answer_in_capitals(page: "Page") -> list[str]:
    """Answer every request with its text in capitals; the texts that were asked for."""
    asked: list[str] = []

    def answer(route: Any) -> None:
        values = json.loads(route.request.post_data)
        [text] = values["texts"]
        asked.append(text)
        one = {"text": text.upper(), "segments": [], "alternatives": []}
        route.fulfill(json={"translations": [one], "target": values["target"], "models": []})

    page.route("**/v1/translate", answer)
    return asked


def answer_word_by_word(page: "Page", translation: str) -> None:
    """Answer every request with this text: a segment a line, a token a word, each from the word in
    its place; and with the same as its alternative."""

    def spans(line: str) -> list[tuple[int, int]]:
        return [one.span() for one in re.finditer(r"\w+", line)]

    def answer(route: Any) -> None:
        values = json.loads(route.request.post_data)
        lines = zip(values["texts"][0].split("\n"), translation.split("\n"), strict=True)
        segments = [
            {
                "source": source,
                "text": text,
                "source_spans": spans(source),
                "target_spans": spans(text),
                "alignment": [min(n, len(spans(source)) - 1) for n in range(len(spans(text)))],
            }
            for source, text in lines
        ]
        one = {"text": translation, "segments": segments, "alternatives": [translation]}
        route.fulfill(json={"translations": [one], "target": values["target"], "models": []})

    page.route("**/v1/translate", answer)
