"""Files: read into the field, or sent to the server's documents where it has them."""

import json
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from support.translation_page import notice, wait_done

pytestmark = pytest.mark.browser


def _without_documents(page: Any) -> None:
    def describe(route: Any) -> None:
        reply = route.fetch()
        content = reply.json()
        content["paths"].pop("/v1/documents", None)
        route.fulfill(response=reply, json=content)

    page.route("**/openapi.json", describe)


def _drop(page: Any, name: str, content: str) -> None:
    page.evaluate(
        """([name, content]) => {
          const data = new DataTransfer();
          data.items.add(new File([content], name, { type: 'text/plain' }));
          for (const type of ['dragenter', 'dragover', 'drop'])
            document.body.dispatchEvent(
              new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
        }""",
        [name, content],
    )


def test_a_text_file_is_read_into_the_field(new_page: Any, tmp_path: Path) -> None:
    page = new_page(prepare=_without_documents)
    page.select_option("#to", "de")
    file = tmp_path / "hello.txt"
    file.write_text("Good morning.", encoding="utf-8")
    page.set_input_files("#file-input", file)
    wait_done(page, 1)
    assert page.input_value("#source") == "Good morning."


def test_a_dropped_file_is_taken_and_the_curtain_goes(new_page: Any) -> None:
    page = new_page(prepare=_without_documents)
    page.select_option("#to", "de")
    _drop(page, "hello.txt", "Good morning.")
    wait_done(page, 1)
    assert page.input_value("#source") == "Good morning."
    assert page.locator("#drop").is_hidden()


def test_a_file_that_is_no_text_is_refused_in_words(new_page: Any, tmp_path: Path) -> None:
    page = new_page(prepare=_without_documents)
    file = tmp_path / "image.png"
    file.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff\xfe")
    page.set_input_files("#file-input", file)
    assert "cannot be read" in notice(page)
    file.write_bytes(b"a" * (2**20 + 1))
    page.set_input_files("#file-input", file)
    assert "too long" in notice(page)


def test_a_text_file_beyond_the_limit_is_not_put_into_the_field(
    new_page: Any, tmp_path: Path
) -> None:
    page = new_page(prepare=_without_documents)
    file = tmp_path / "long.txt"
    file.write_text("é" * 20_001, encoding="utf-8")
    page.set_input_files("#file-input", file)
    assert "20,001, where 20,000 is the most" in notice(page)
    assert page.input_value("#source") == ""


class _Documents:
    """The server's documents, played: a job that goes on with every look at it."""

    def __init__(self, *, error: str = "", refusals: list[dict[str, Any]] | None = None) -> None:
        self.error = error
        self.refusals = refusals or []
        self.times: list[float] = []
        self.looks = 0
        self.deleted: list[str] = []

    def prepare(self, page: Any) -> None:
        page.route("**/openapi.json", self._describe)
        page.route("**/v1/documents", self._upload)
        page.route("**/v1/documents/**", self._follow)

    def _describe(self, route: Any) -> None:
        reply = route.fetch()
        content = reply.json()
        content["paths"]["/v1/documents"] = {"post": {}}
        route.fulfill(response=reply, json=content)

    def _upload(self, route: Any) -> None:
        body = route.request.post_data_buffer
        assert b'name="target"' in body
        assert b'filename="letter <b>.md"' in body
        route.fulfill(status=202, json={"id": "a/b", "state": "queued", "progress": 0})

    def _follow(self, route: Any) -> None:
        path = route.request.url.partition("/v1/documents/")[2]
        if route.request.method == "DELETE":
            self.deleted.append(path)
            route.fulfill(status=204)
            return
        self.times.append(monotonic())
        if self.refusals and self.looks:
            refusal = self.refusals.pop(0)
            route.fulfill(**refusal) if refusal else route.abort()
        elif path == "a%2Fb/result":
            route.fulfill(body="# Guten Morgen", content_type="text/markdown")
        else:
            assert path == "a%2Fb"
            self.looks += 1
            seen = {"id": "a/b", "state": "translating", "progress": self.looks / 3}
            if self.looks == 3:
                seen["state"] = "failed" if self.error else "done"
                seen["error"] = self.error or None
            route.fulfill(json=seen)


def test_a_document_is_sent_followed_and_saved(new_page: Any, tmp_path: Path) -> None:
    documents = _Documents()
    page = new_page(prepare=documents.prepare)
    page.select_option("#to", "de")
    _drop(page, "letter <b>.md", "# Good morning")
    page.wait_for_selector("progress[value]")
    assert "33 %" in page.locator("#file-list").inner_text()
    with page.expect_response(_is_deletion):
        page.wait_for_selector("#file-list .download")
    assert page.locator("#file-list .name").inner_text() == "letter <b>.md"
    with page.expect_download() as waiting:
        page.click("#file-list .download")
    assert waiting.value.suggested_filename.startswith("letter ")
    saved = tmp_path / "saved.md"
    waiting.value.save_as(saved)
    assert saved.read_text(encoding="utf-8") == "# Guten Morgen"
    assert documents.deleted == ["a%2Fb"]
    page.click("#file-list button")
    assert page.locator("#files").is_hidden()
    assert documents.deleted == ["a%2Fb"]


def _is_deletion(reply: Any) -> bool:
    return bool(reply.request.method == "DELETE" and reply.status == 204)


BUSY = {"status": 429, "json": {"error": "x", "code": "limited"}, "headers": {"retry-after": "3"}}
BOOTING = {"status": 503, "json": {"error": "x", "code": "booting"}}
LOST: dict[str, Any] = {}


def test_what_passes_does_not_end_a_document(new_page: Any) -> None:
    documents = _Documents(refusals=[BUSY, BOOTING, LOST])
    page = new_page(prepare=documents.prepare)
    _drop(page, "letter <b>.md", "x")
    page.wait_for_selector("#file-list .quiet:text('too much to do')")
    assert page.locator("progress").count() == 1
    page.wait_for_selector("#file-list .download")
    assert documents.refusals == []
    assert documents.times[2] - documents.times[1] >= 3  # as the server said


def test_a_proxy_that_answers_for_the_server_does_not_end_a_document(new_page: Any) -> None:
    statuses = [502, 504, 408]
    documents = _Documents(
        refusals=[{"status": status, "body": "<html>Bad Gateway"} for status in statuses]
    )
    page = new_page(prepare=documents.prepare)
    _drop(page, "letter <b>.md", "x")
    page.wait_for_selector("#file-list .download")
    assert documents.refusals == []


def test_a_result_that_cannot_be_fetched_at_once_is_waited_for(new_page: Any) -> None:
    documents = _Documents()
    page = new_page(prepare=documents.prepare)
    results: list[dict[str, Any]] = [BOOTING, LOST]

    def answer(route: Any) -> None:
        if not results:
            route.fallback()
            return
        refusal = results.pop(0)
        route.fulfill(**refusal) if refusal else route.abort()

    page.route("**/result", answer)
    _drop(page, "letter <b>.md", "x")
    page.wait_for_selector("#file-list .download")
    assert results == []


def test_a_document_is_looked_at_less_and_less_often(new_page: Any) -> None:
    documents = _Documents()
    page = new_page(prepare=documents.prepare)
    _drop(page, "letter <b>.md", "x")
    page.wait_for_selector("#file-list .download")
    first, second, third, _result = documents.times
    assert second - first >= 1
    assert third - second >= 1.5


def test_a_document_that_a_full_server_refuses_is_sent_again(new_page: Any) -> None:
    documents = _Documents()
    page = new_page(prepare=documents.prepare)
    answers = [BUSY | {"headers": {"retry-after": "1"}}]
    page.route(
        "**/v1/documents",
        lambda route: route.fulfill(**answers.pop()) if answers else route.fallback(),
    )
    _drop(page, "letter <b>.md", "x")
    page.wait_for_selector("#file-list .quiet:text('too much to do')")
    page.wait_for_selector("#file-list .download")


def test_a_document_that_fails_says_why(new_page: Any) -> None:
    documents = _Documents(error="the file is encrypted")
    page = new_page(prepare=documents.prepare)
    with page.expect_response(_is_deletion):
        _drop(page, "letter <b>.md", "x")
        page.wait_for_selector("text=could not be translated: the file is encrypted")
    assert page.locator("progress").count() == 0
    assert documents.deleted == ["a%2Fb"]


def test_a_document_can_be_given_up(new_page: Any) -> None:
    documents = _Documents()
    page = new_page(prepare=documents.prepare)
    _drop(page, "letter <b>.md", "x")
    page.wait_for_selector("progress[value]")
    page.click("#file-list button")
    assert page.locator("#file-list li").count() == 0
    page.wait_for_timeout(900)
    assert documents.deleted == ["a%2Fb"]
    assert documents.looks < 3


def test_a_document_is_deleted_although_the_server_was_busy(new_page: Any) -> None:
    documents = _Documents()
    page = new_page(prepare=documents.prepare)
    refusals = [BOOTING]

    def answer(route: Any) -> None:
        is_refused = route.request.method == "DELETE" and refusals
        route.fulfill(**refusals.pop()) if is_refused else route.fallback()

    page.route("**/v1/documents/**", answer)
    with page.expect_response(_is_deletion):
        _drop(page, "letter <b>.md", "x")
        page.wait_for_selector("#file-list .download")
    assert documents.deleted == ["a%2Fb"]


def test_documents_are_sent_a_few_at_a_time_in_their_order(new_page: Any) -> None:
    page = new_page(prepare=_Documents().prepare)
    sent: list[Any] = []
    page.route("**/v1/documents", lambda route: sent.append(route))  # noqa: PLW0108  # Playwright marks a handler
    for number in range(5):
        _drop(page, f"{number}.txt", "x")
    states = page.locator("#file-list .quiet")
    page.wait_for_timeout(300)
    assert len(sent) == 3
    assert states.all_inner_texts() == ["Waiting …"] * 2 + ["Sending …"] * 3  # the newest first
    page.locator("#file-list button").nth(1).click()  # the fourth is given up before its turn
    sent[0].fulfill(status=413, json={"error": "x", "code": "too_long", "value": 2, "limit": 1})
    page.wait_for_function("() => document.querySelectorAll('#file-list li').length === 4")
    page.wait_for_timeout(300)
    for number, route in zip((0, 1, 2, 4), sent, strict=True):
        assert f'filename="{number}.txt"'.encode() in route.request.post_data_buffer


def test_a_document_that_is_refused_says_so(new_page: Any) -> None:
    page = new_page(prepare=_Documents().prepare)
    content = {"error": "x", "code": "too_long", "value": 9_000_000, "limit": 5_000_000}
    page.route("**/v1/documents", lambda route: route.fulfill(status=413, body=json.dumps(content)))
    _drop(page, "large.txt", "x")
    page.wait_for_selector("text=9,000,000, where 5,000,000 is the most")


def test_the_servers_own_documents_are_translated(new_page: Any, tmp_path: Path) -> None:
    page = new_page()
    page.select_option("#from", "de")
    page.select_option("#to", "en")
    _drop(page, "brief.md", "# Guten Tag\n\nWir müssen jetzt nach Hause gehen.\n")
    with page.expect_response(_is_deletion):
        page.wait_for_selector("#file-list .download")
    with page.expect_download() as waiting:
        page.click("#file-list .download")
    assert waiting.value.suggested_filename == "brief.en.md"
    saved = tmp_path / "saved.md"
    waiting.value.save_as(saved)
    assert saved.read_text(encoding="utf-8").endswith("\n\nWe have to go home now.\n")


def test_a_damaged_document_is_refused_in_words(new_page: Any, tmp_path: Path) -> None:
    page = new_page()
    page.select_option("#to", "de")
    file = tmp_path / "damaged.docx"
    file.write_bytes(b"PK\x03\x04 and no more")
    page.set_input_files("#file-input", file)
    page.wait_for_selector("#file-list .quiet:text('could not be translated')")


def test_a_document_takes_the_terms_of_its_languages(new_page: Any, tmp_path: Path) -> None:
    page = new_page()
    terms = {
        "de>en": [{"source": "Hause", "target": "homestead"}],
        "en>de": [{"source": "a", "target": "b"}],
    }
    page.evaluate("terms => localStorage.setItem('dragoman.glossary', terms)", json.dumps(terms))
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")
    page.select_option("#from", "de")
    page.select_option("#to", "en")
    _drop(page, "brief.txt", "Wir müssen jetzt nach Hause gehen.")
    page.wait_for_selector("#file-list .download")
    with page.expect_download() as waiting:
        page.click("#file-list .download")
    saved = tmp_path / "saved.txt"
    waiting.value.save_as(saved)
    assert "homestead" in saved.read_text(encoding="utf-8")


def test_the_page_is_not_left_without_a_word_while_a_document_is_not_saved(new_page: Any) -> None:
    documents = _Documents()
    page = new_page(prepare=documents.prepare)
    asked: list[str] = []

    def stay(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)

    def leave() -> list[str]:
        asked.clear()
        page.evaluate("setTimeout(() => location.reload())")
        page.wait_for_timeout(500)
        return asked

    page.click("#source")  # a browser asks only where something was done
    _drop(page, "letter <b>.md", "x")
    page.wait_for_selector("progress[value]")
    assert leave() == ["beforeunload"]
    page.wait_for_selector("#file-list .download")
    assert leave() == ["beforeunload"]
    with page.expect_download():
        page.click("#file-list .download")
    assert page.evaluate("dispatchEvent(new Event('beforeunload', { cancelable: true }))")


def test_a_removed_document_hands_the_focus_on(new_page: Any) -> None:
    page = new_page(prepare=_Documents().prepare)
    page.route("**/v1/documents", lambda _route: None)  # never answered
    _drop(page, "1.txt", "x")
    _drop(page, "2.txt", "x")
    label = "document.activeElement.getAttribute('aria-label')"
    page.locator("#file-list button").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate(label) == "Cancel: 1.txt"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "open-file"


def test_a_document_without_a_key_asks_for_one(new_page: Any) -> None:
    page = new_page(prepare=_Documents().prepare)
    content = {"error": "x", "code": "key_wanted"}
    page.route("**/v1/documents", lambda route: route.fulfill(status=401, json=content))
    _drop(page, "letter.txt", "x")
    page.wait_for_selector("#key-form:not([hidden])")
    assert "wants an API key" in page.locator("#file-list").inner_text()


def test_a_folder_is_refused_in_words(new_page: Any) -> None:
    page = new_page(prepare=_Documents().prepare)
    unreadable = """() => {
      Blob.prototype.arrayBuffer = () => Promise.reject(new DOMException('x', 'NotFoundError'));
    }"""
    page.evaluate(unreadable)
    _drop(page, "folder", "x")
    page.wait_for_selector("#file-list .quiet:text('cannot be read')")


def test_of_several_files_the_first_is_read_into_the_field(new_page: Any, tmp_path: Path) -> None:
    page = new_page(prepare=_without_documents)
    names = []
    for name in ("one", "two"):
        (tmp_path / name).write_text(name, encoding="utf-8")
        names.append(tmp_path / name)
    page.set_input_files("#file-input", names)
    page.wait_for_timeout(300)
    assert page.input_value("#source") == "one"


def test_the_name_of_a_document_has_room_on_a_phone(new_page: Any) -> None:
    page = new_page(prepare=_Documents().prepare, viewport={"width": 360, "height": 740})
    _drop(page, "letter <b>.md", "x")
    page.wait_for_selector("#file-list .download")
    name = page.locator("#file-list .name").bounding_box()
    assert name["width"] > 250
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
