"""Documents over HTTP, in all three contracts, against a live server."""

import io
import json
import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from support.made_documents import docx, members_of
from support.running_server import RunningServer

BODY = (
    "<w:p><w:r><w:t>The cat </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>sees</w:t></w:r>"
    "<w:r><w:t> the river.</w:t></w:r></w:p>"
)
PLAIN = b"The cat sees the river.\r\n\r\n7.30\n"


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(scope="module")
def expected(client: httpx.Client) -> str:
    reply = client.post(
        "/translate", json={"q": "The cat sees the river.", "source": "en", "target": "zh"}
    )
    text: str = reply.json()["translatedText"]
    return text


def ended(client: httpx.Client, document_id: str) -> dict[str, Any]:
    """A document, once it is done or has failed."""
    while True:
        found: dict[str, Any] = client.get(f"/v1/documents/{document_id}").json()
        if found["state"] in ("done", "failed"):
            return found
        time.sleep(0.02)


def test_a_file_is_uploaded_translated_fetched_and_forgotten(
    client: httpx.Client, expected: str
) -> None:
    files = {"file": ("../a/Bericht 1.txt", PLAIN, "text/plain")}
    reply = client.post("/v1/documents", files=files, data={"source": "en", "target": "zh"})
    assert reply.status_code == 202
    document = reply.json()
    assert document["name"] == "Bericht 1.txt"
    assert reply.headers["location"] == f"/v1/documents/{document['id']}"
    done = ended(client, document["id"])
    assert done == {
        "id": document["id"], "state": "done", "progress": 1.0, "name": "Bericht 1.txt",
        "kind": "txt", "source": "en", "target": "zh-Hans", "num_characters": 23,
        "num_flagged": done["num_flagged"], "error": None,
    }  # fmt: skip
    result = client.get(f"/v1/documents/{document['id']}/result")
    assert result.content == f"{expected}\r\n\r\n7.30\n".encode()
    assert result.headers["content-type"].startswith("text/plain")
    assert result.headers["x-content-type-options"] == "nosniff"
    disposition = result.headers["content-disposition"]
    assert disposition.startswith("attachment")
    assert "Bericht%201.zh-Hans.txt" in disposition
    assert client.delete(f"/v1/documents/{document['id']}").status_code == 204
    for path in (f"/v1/documents/{document['id']}", f"/v1/documents/{document['id']}/result"):
        gone = client.get(path)
        assert (gone.status_code, gone.json()["code"]) == (404, "unknown_document")


def test_a_value_that_comes_twice_is_refused_by_name_in_every_contract(
    client: httpx.Client,
) -> None:
    def refused(path: str, **sent: Any) -> str:
        reply = client.post(path, **sent)
        assert reply.status_code == 400, reply.text
        return str(reply.json().get("error") or reply.json().get("message"))

    files = {"file": ("a.txt", PLAIN)}
    query = "the query string has target twice"
    alone = "/v1/documents?source=en&name=a.txt&target=de&target=zh"
    assert refused(alone, content=PLAIN) == query
    for path in ("/v1/documents", "/translate_file"):
        languages = {"source": "en"}
        assert refused(f"{path}?target=de&target=zh", files=files, data=languages) == query
        twice = languages | {"target": ["de", "zh"]}
        assert refused(path, files=files, data=twice) == "the form has target twice"
    twice = {"source_lang": "en", "target_lang": ["de", "zh"]}
    assert refused("/v2/document", files=files, data=twice) == "the form has target_lang twice"
    path = "/v2/document?target_lang=de&target_lang=zh"
    assert refused(path, files=files) == "the query string has target_lang twice"


def test_a_body_may_be_the_file_and_its_language_be_found(client: httpx.Client) -> None:
    page = {"q": "The cat <b>sees</b> the river.", "format": "html", "source": "en", "target": "zh"}
    expected = client.post("/translate", json=page).json()["translatedText"]
    reply = client.post(
        "/v1/documents?target=zh&name=a.docx", content=docx(BODY), headers={"content-type": "x/y"}
    )
    done = ended(client, reply.json()["id"])
    assert (done["state"], done["source"], done["kind"]) == ("done", "en", "docx")
    result = client.get(f"/v1/documents/{done['id']}/result").content
    document = members_of(result)["word/document.xml"]
    assert document.count("<w:b/>") == 1
    text = "".join(re.findall("<w:t[^>]*>([^<]*)", document))
    assert text == re.sub("</?b>", "", expected)


@pytest.mark.parametrize(
    ("name", "data", "fields", "status", "words"),
    [
        ("a.exe", b"x", {"target": "zh"}, 400, "file format not supported"),
        ("a.txt", b"", {"target": "zh"}, 400, "empty file"),
        ("a.txt", b"x", {}, 400, "target is missing"),
        ("a.txt", b"x", {"target": "tlh"}, 400, "tlh is not supported"),
        ("a.txt", b"x", {"target": "zh", "model": "other"}, 400, "model other is not loaded"),
        ("a.txt", b"x", {"target": "zh", "modle": "other"}, 400, "field modle is unknown"),
        ("a.txt", b"x", {"target": "zh", "glossary": "x"}, 400, "glossary must be JSON"),
        ("a.txt", b"x", {"target": "zh", "glossary": '[{"source": ""}]'}, 400, "glossary[0]"),
        ("a.txt", b"x" * (20 * 2**20 + 1), {"target": "zh"}, 413, "the limit is 20971520"),
    ],
)
def test_what_cannot_be_translated_is_refused_at_once(
    client: httpx.Client, *, name: str, data: bytes, fields: dict[str, str], status: int, words: str
) -> None:
    reply = client.post("/v1/documents", files={"file": (name, data)}, data=fields)
    assert (reply.status_code, words in reply.json()["error"]) == (status, True), reply.text


def test_a_form_without_a_file_is_refused(client: httpx.Client) -> None:
    form = {"target": (None, "zh")}
    reply = client.post("/v1/documents", files=form)
    assert (reply.status_code, reply.json()["error"]) == (
        400, "Invalid request: missing file parameter",
    )  # fmt: skip
    reply = client.post("/translate_file", data={"target": "zh"})
    assert (reply.status_code, reply.json()["limit"]) == (400, "multipart/form-data")


def test_a_damaged_file_says_why_and_one_that_is_not_ready_too(client: httpx.Client) -> None:
    files = {"file": ("a.docx", docx(BODY)[:-40])}
    reply = client.post("/v1/documents", files=files, data={"target": "zh"})
    failed = ended(client, reply.json()["id"])
    assert failed["state"] == "failed"
    assert failed["error"].startswith("the docx document is no zip archive")
    reply = client.get(f"/v1/documents/{failed['id']}/result")
    assert (reply.status_code, reply.json()["code"]) == (409, "document_failed")
    assert reply.json()["error"] == failed["error"]


def test_libretranslates_page_is_told_which_files(client: httpx.Client) -> None:
    told = client.get("/frontend/settings").json()
    assert told["filesTranslation"] is True
    assert {".docx", ".odt", ".txt", ".srt"} <= set(told["supportedFilesFormat"])
    others = {".markdown", ".htm", ".xhtml", ".pot", ".xlf", ".text", ".tab"}
    assert others <= set(told["supportedFilesFormat"])
    form = {"source": "en", "target": "zh"}
    refused = client.post("/translate_file", files={"file": ("a.exe", PLAIN)}, data=form).json()
    assert refused["limit"].split(", ") == told["supportedFilesFormat"]


def test_libretranslates_file_is_a_link(client: httpx.Client, expected: str) -> None:
    form = {"source": "auto", "target": "zh"}
    reply = client.post("/translate_file", files={"file": ("a.txt", PLAIN)}, data=form)
    url = reply.json()["translatedFileUrl"]
    assert url.startswith(f"{client.base_url}".rstrip("/") + "/download_file/")
    assert httpx.get(url).content == f"{expected}\r\n\r\n7.30\n".encode()
    for other in (f"{url}x", url[:-6] + "0.txt", f"{client.base_url}/download_file/a"):
        assert httpx.get(other).status_code == 404
    failed = 'dragoman_document_jobs{state="failed"}'
    before = re.findall(f"{failed}.*", client.get("/metrics").text)
    reply = client.post("/translate_file", files={"file": ("a.json", b"{")}, data=form)
    assert reply.status_code == 400
    assert reply.json()["error"].startswith("the json document is not JSON")
    assert re.findall(f"{failed}.*", client.get("/metrics").text) == before != []
    reply = client.post("/translate_file", files={"file": ("a.txt", PLAIN)}, data={"target": "zh"})
    assert reply.json()["error"] == "Invalid request: missing source parameter"


def test_a_range_of_a_result_that_cannot_be_is_refused_in_json(
    client: httpx.Client, expected: str
) -> None:
    form = {"source": "en", "target": "zh"}
    reply = client.post("/translate_file", files={"file": ("a.txt", PLAIN)}, data=form)
    url, all_of_it = reply.json()["translatedFileUrl"], f"{expected}\r\n\r\n7.30\n".encode()
    for given, status, content in (
        ("bytes=0-3", 206, all_of_it[:4]),
        ("lines=0-3", 200, all_of_it),
        ("lines", 200, all_of_it),
    ):
        reply = client.get(url, headers={"range": given})
        assert (reply.status_code, reply.content) == (status, content)
    for given in ("bytes", "bytes=", "bytes=5-2", "bytes=a-b"):
        refused = client.get(url, headers={"range": given})
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")
        assert (refused.json()["value"], refused.json()["limit"]) == (given, "bytes=FIRST-LAST")
    refused = client.get(url, headers={"range": "bytes=9999-"})
    assert (refused.status_code, refused.json()["code"]) == (416, "range_not_satisfiable")
    assert refused.json()["limit"] == len(all_of_it)
    assert refused.headers["content-range"] == f"bytes */{len(all_of_it)}"


def test_deepls_document_has_a_key(client: httpx.Client, expected: str) -> None:
    files = {"file": ("a.txt", PLAIN)}
    reply = client.post("/v2/document", files=files, data={"target_lang": "ZH"})
    handle = reply.json()
    path, key = f"/v2/document/{handle['document_id']}", {"document_key": handle["document_key"]}
    while (status := client.post(path, json=key).json())["status"] in ("queued", "translating"):
        time.sleep(0.02)
    assert status == {
        "document_id": handle["document_id"], "status": "done", "billed_characters": 23,
    }  # fmt: skip
    assert client.post(f"{path}/result", data=key).content.startswith(expected.encode())
    for wrong in ({}, {"document_key": "x"}, {"document_key": 7}):
        reply = client.post(path, json=wrong)
        assert (reply.status_code, reply.json()) == (404, {"message": "there is no such document"})
    for fields, words in (
        ({"target_lang": "XX"}, "target_lang"),
        ({"target_lang": "ZH", "output_format": "pdf"}, "output_format"),
        ({"target_lang": "ZH", "glossary_id": "g"}, "requires the source_lang parameter"),
        ({"target_lang": "ZH", "glossary_ids": "a,b,c,d,e,f"}, "at most 5"),
        ({"target_lang": "ZH", "filename": "a.exe"}, "file format not supported"),
    ):
        reply = client.post("/v2/document", files=files, data=fields)
        assert (reply.status_code, words in reply.json()["message"]) == (400, True), reply.text
    form = {"target_lang": (None, "ZH"), "filename": (None, "a.txt")}
    reply = client.post("/v2/document", files=form)
    assert (reply.status_code, "missing file" in reply.json()["message"]) == (400, True), reply.text


@pytest.mark.parametrize("path", ["/v1/documents", "/v2/document"])
def test_terms_of_a_document_are_those_of_its_glossary(client: httpx.Client, path: str) -> None:
    pair = {"source_lang": "en", "target_lang": "zh"}
    new = {"name": "n", "entries": "cat\tQīng 7", **pair}
    name = client.post("/v2/glossaries", json=new).json()["glossary_id"]
    terms = json.dumps([{"source": "cat", "target": "Qīng 7"}])
    fields = {
        "/v1/documents": {"source": "en", "target": "zh", "glossary": terms},
        "/v2/document": {**pair, "glossary_id": name},
    }[path]
    files = {"file": ("a.txt", PLAIN)}
    handle = client.post(path, files=files, data=fields).json()
    assert client.delete(f"/v3/glossaries/{name}").status_code == 204
    document_id = handle.get("id", handle.get("document_id"))
    assert ended(client, document_id)["state"] == "done"
    assert "Qīng 7" in client.get(f"/v1/documents/{document_id}/result").text
    if path == "/v2/document":
        reply = client.post(path, files=files, data=fields)
        assert (reply.status_code, "no such glossary" in reply.text) == (404, True)


def test_deepls_client_translates_documents(
    server: RunningServer, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deepl = pytest.importorskip("deepl", exc_type=ImportError)
    client = deepl.DeepLClient("a-key", server_url=server.url)
    quick = SimpleNamespace(time=time.time, sleep=lambda _: time.sleep(0.05))
    monkeypatch.setattr(deepl.translator, "time", quick)  # it asks every five seconds
    source, result = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_bytes(PLAIN)
    status = client.translate_document_from_filepath(
        source, result, source_lang="EN", target_lang="ZH"
    )
    assert (status.done, status.billed_characters) == (True, 23)
    assert result.read_bytes() == f"{expected}\r\n\r\n7.30\n".encode()
    damaged = tmp_path / "a.docx"
    damaged.write_bytes(b"x")
    with pytest.raises(deepl.DocumentTranslationException, match="no zip archive"):
        client.translate_document_from_filepath(damaged, tmp_path / "b.docx", target_lang="ZH")


def test_libretranslates_client_translates_files(
    server: RunningServer, expected: str, tmp_path: Path
) -> None:
    aio = pytest.importorskip("libretranslate_aio")
    path = tmp_path / "a.txt"
    path.write_bytes(PLAIN)
    with aio.LibreTranslate(server.url) as client:
        found = client.translate_file(path, "en", "zh")
    assert httpx.get(found.translated_file_url).text.startswith(expected)


def test_json_is_read_by_its_name(client: httpx.Client, expected: str) -> None:
    data = json.dumps({"a": ["The cat sees the river.", 1]}).encode()
    reply = client.post("/v1/documents?target=zh&source=en&name=a.json", content=data)
    done = ended(client, reply.json()["id"])
    result = client.get(f"/v1/documents/{done['id']}/result")
    assert result.json() == {"a": [expected, 1]}


def test_archives_are_whole_again(client: httpx.Client) -> None:
    reply = client.post("/v1/documents?target=zh&source=en&name=a.docx", content=docx(BODY))
    done = ended(client, reply.json()["id"])
    result = client.get(f"/v1/documents/{done['id']}/result").content
    with zipfile.ZipFile(io.BytesIO(result)) as archive:
        assert archive.testzip() is None


@pytest.mark.parametrize(("target", "said"), [("zh", "zh-Hans"), ("en", "en-GB")])
def test_a_page_says_its_new_language_unless_it_stays_as_it_is(
    client: httpx.Client, target: str, said: str
) -> None:
    page = '<html lang="en-GB"><p>{}</p></html>'
    data = page.format("The cat sees the river.").encode()
    reply = client.post(f"/v1/documents?target={target}&source=en&name=a.html", content=data)
    done = ended(client, reply.json()["id"])
    result = client.get(f"/v1/documents/{done['id']}/result").text
    assert result.startswith(page.format("").removesuffix("</p></html>").replace("en-GB", said))
    assert (result.encode() == data) == (target == "en")
