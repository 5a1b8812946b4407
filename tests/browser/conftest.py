"""A real Chromium and a real server of the bundled models, for the page.

Playwright is imported by fixtures alone, so that these files can be collected without it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.running_server import ROOT, RunningServer, running_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
AXE = ROOT / "build/axe/node_modules/axe-core/axe.min.js"
# What a browser writes into its console of an answer that is no success, or of none.
_OF_ANSWERS = "Failed to load resource"


def _is_complaint(kind: str, text: str, expected: str) -> bool:
    is_known = _OF_ANSWERS in text or (expected != "" and expected in text)
    return kind in ("error", "warning") and not is_known


NewPage = Callable[..., "Page"]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """The bundled models: English to and from German and Chinese."""
    log = tmp_path_factory.mktemp("site") / "log.jsonl"
    with running_server(ROOT / "checkpoints", log) as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def new_page(site: RunningServer, browser: "Browser") -> Iterator[NewPage]:
    """Opens the page in a browser of its own, and fails if that complains of anything.

    Args of what it returns: `path`; `prepare`, called with the page before it is opened;
    `expected`, words of a complaint that may come; the rest is the context's (`viewport`,
    `locale`, `color_scheme` …).
    """
    complaints: list[str] = []
    with ExitStack() as stack:

        def open_page(
            path: str = "/",
            *,
            url: str = site.url,
            prepare: Callable[["Page"], None] = lambda _page: None,
            expected: str = "",
            **options: Any,
        ) -> "Page":
            options = {"locale": "en-GB", "viewport": {"width": 1280, "height": 860}} | options
            context: BrowserContext = browser.new_context(**options)
            stack.callback(context.close)
            context.set_default_timeout(15_000)
            page = context.new_page()
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on(
                "console",
                lambda message: complaints.extend(
                    [message.text] if _is_complaint(message.type, message.text, expected) else []
                ),
            )
            prepare(page)
            page.goto(url + path)
            if path == "/":
                page.wait_for_selector("html[data-ready]", state="attached")
            return page

        yield open_page
    assert complaints == []


@pytest.fixture(scope="session")
def axe() -> str:
    """axe-core, as `make test-browser` fetches it."""
    if not AXE.is_file():
        pytest.fail(f"{AXE.relative_to(ROOT)} is missing: `make test-browser` fetches it")
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def shots() -> Path:
    """Where screenshots go, to be looked at."""
    folder = ROOT / "build/screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
