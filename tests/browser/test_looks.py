"""How the page looks and reads: colours, widths, languages, accessibility; with screenshots."""

from pathlib import Path
from typing import Any

import pytest

from support.translation_page import write

pytestmark = pytest.mark.browser

TEXT = "Wir müssen jetzt nach Hause gehen. Das Wetter ist heute sehr schön."
PHONE = {"width": 360, "height": 740}
WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
# Of axe-core's rules those of the standard (WCAG 2.0 to 2.2, A and AA) and its best practices.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def _violations(page: Any, axe: str) -> list[str]:
    page.evaluate(axe)
    found = page.evaluate("rules => axe.run({ runOnly: rules })", RULES)
    return [
        f"{one['id']}: {one['help']}: {[node['target'] for node in one['nodes']]}"
        for one in found["violations"]
    ]


def _fits(page: Any) -> bool:
    page_width, window_width = page.evaluate(WIDTHS)
    return bool(page_width <= window_width)


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", ["desk", "phone"])
def test_the_page_has_no_barriers_at_any_width_in_any_colours(
    new_page: Any, axe: str, shots: Path, colours: str, width: str
) -> None:
    options = {"viewport": PHONE} if width == "phone" else {}
    page = new_page(color_scheme=colours, **options)
    write(page, TEXT, source="auto", target="en")
    page.click("#word-map summary")
    page.click("#heat-map summary")
    page.wait_for_selector("#heat-scroll td[class^=level-]")
    page.locator("#output .word").nth(3).hover()
    page.screenshot(path=shots / f"{width}-{colours}.png", full_page=True)
    assert _violations(page, axe) == []
    assert _fits(page)


def test_the_picture_of_the_readme_is_of_this_page(new_page: Any, shots: Path) -> None:
    page = new_page(viewport={"width": 1100, "height": 820})
    text = "Wir müssen jetzt nach Hause gehen."
    assert write(page, text, source="auto", target="en") == "We have to go home now."
    page.click("#word-map summary")
    page.locator("#output .word", has_text="home").hover()
    page.screenshot(path=shots / "page.png", full_page=True)
    assert (shots / "page.png").stat().st_size < 200_000


@pytest.mark.parametrize("dialog", ["history", "settings", "shortcuts", "glossary"])
@pytest.mark.parametrize("viewport", [PHONE, {"width": 1280, "height": 860}], ids=["phone", "desk"])
def test_dialogs_have_no_barriers_and_fit(
    new_page: Any, axe: str, shots: Path, dialog: str, viewport: dict[str, int]
) -> None:
    page = new_page(viewport=viewport)
    write(page, TEXT, source="de", target="en")
    page.wait_for_timeout(1700)
    page.locator(f"#open-{dialog}").evaluate("one => { one.hidden = false; one.click(); }")
    page.screenshot(path=shots / f"dialog-{dialog}-{viewport['width']}.png")
    assert _violations(page, axe) == []
    assert _fits(page)
    box = page.locator(f"#{dialog}-dialog").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= viewport["width"]


@pytest.mark.parametrize(
    ("locale", "words"),
    [
        ("de-AT", ("de", "Übersetzen", "Deutsch")),
        ("zh-CN", ("zh-Hans", "翻译", "德语")),
        ("fr-FR", ("en", "Translate", "German")),
    ],
)
def test_the_interface_speaks_the_browsers_language(
    new_page: Any, axe: str, shots: Path, locale: str, words: tuple[str, str, str]
) -> None:
    tag, title, german = words
    page = new_page(locale=locale)
    assert page.locator("html").get_attribute("lang") == tag
    assert page.locator("h1").inner_text() == title
    assert german in page.locator("#from").inner_text()
    write(page, TEXT, source="auto", target="en")
    page.screenshot(path=shots / f"locale-{tag}.png")
    assert _violations(page, axe) == []


def test_another_language_of_the_interface_is_chosen_and_stays(new_page: Any) -> None:
    page = new_page()
    page.click("#open-settings")
    page.select_option("#interface", "de")
    page.wait_for_selector("html[lang=de]")
    page.reload()
    page.wait_for_selector("html[lang=de]")
    assert page.locator("#copy").get_attribute("title") == "Übersetzung kopieren"


def test_the_switch_of_colours_overrules_the_system_and_stays(new_page: Any) -> None:
    page = new_page(color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.click("#theme")
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == dark
    page.emulate_media(color_scheme="dark")
    page.click("#theme")
    assert page.evaluate(background) == light


def test_a_failure_has_no_barriers(new_page: Any, axe: str, shots: Path) -> None:
    page = new_page()
    page.route("**/v1/translate", lambda route: route.fulfill(status=401, json={"error": "x"}))
    page.fill("#source", TEXT)
    page.wait_for_selector("#key-form:not([hidden])")
    page.screenshot(path=shots / "key.png")
    assert _violations(page, axe) == []


def test_large_letters_and_long_words_stay_inside(new_page: Any) -> None:
    page = new_page(viewport=PHONE)
    write(page, "https://example.org/" + "a" * 300 + " is a link.")
    assert _fits(page)
    page.set_viewport_size({"width": 320, "height": 600})
    assert _fits(page)


@pytest.mark.parametrize("viewport", [PHONE, {"width": 1280, "height": 860}], ids=["phone", "desk"])
def test_the_documentation_fits_and_its_examples_can_be_tried(
    new_page: Any, axe: str, shots: Path, viewport: dict[str, int]
) -> None:
    page = new_page("/docs", viewport=viewport)
    form = page.locator("form.try[data-path='/v1/translate']")
    form.locator("button").click()
    page.wait_for_selector("form.try[data-path='/v1/translate'] .answer:not([hidden])")
    assert '"translations"' in form.locator(".answer").inner_text()
    assert form.locator("output").inner_text().startswith("200,")
    form.locator("textarea").fill('{"texts": "<b>x", "target": 1}')
    form.locator("button").click()
    page.wait_for_selector("form.try[data-path='/v1/translate'] output:text('400,')")
    page.screenshot(path=shots / f"docs-{viewport['width']}.png")
    assert page.url.rpartition("/")[0] in page.locator(".command").first.inner_text()
    assert "`" not in "".join(page.locator("table").all_inner_texts())
    sizes = "all => all.map(one => one.scrollHeight - one.clientHeight)"
    assert max(page.locator(".try textarea").evaluate_all(sizes)) <= 0
    assert _violations(page, axe) == []
    assert _fits(page)


def test_every_example_of_the_documentation_works(new_page: Any) -> None:
    page = new_page("/docs")
    forms = page.locator("form.try")
    assert forms.count() > 6
    for index in range(forms.count()):
        form = forms.nth(index)
        form.locator("button").click()
        form.locator("output", has_text=" ms").wait_for()
        path = form.get_attribute("data-path")
        said = form.locator("output").inner_text()
        assert said.startswith(("200,", "201,")), (path, said)
