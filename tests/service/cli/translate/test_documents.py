import gzip
import json
import os
import select
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from model.documents.formats import open_document
from model.offline.translator import Translator
from service.cli.main import main
from service.cli.streams.line_output import LineOutput
from service.cli.translate import translate
from support.made_documents import docx, members_of
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

PAGE = "<!DOCTYPE html><html lang=en><p>The cat <b>sees</b> the river.</p><code>x</code>\r\n"


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = write_tiny_checkpoint(tmp_path_factory.mktemp("cli") / "tiny", pairs=(EN_ZH,))
    return ["--checkpoint", str(folder), "--beam-size", "1"]


def test_a_document_keeps_its_notation(
    flags: list[str], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(PAGE.encode())
    assert main(["translate", str(page), *flags]) == 0
    found = capfdbinary.readouterr().out.decode()
    assert found.startswith("<!DOCTYPE html><html lang=zh-Hans><p>")
    assert found.endswith("</p><code>x</code>\r\n")
    assert (found.count("<b>"), found.count("</b>"), "The cat" in found) == (1, 1, False)
    assert main(["translate", str(page), *flags, "--format", "lines"]) == 0
    assert capfdbinary.readouterr().out.count(b"\n") == 1


def test_a_document_is_packed_where_its_name_says_so(flags: list[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(PAGE.encode())
    for name in ("out.html", "out.html.gz"):
        assert main(["translate", str(page), *flags, "--output", str(tmp_path / name)]) == 0
    packed = (tmp_path / "out.html.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "out.html").read_bytes()


def test_an_archive_wants_a_file(flags: list[str], tmp_path: Path) -> None:
    report, output = tmp_path / "report.docx", tmp_path / "out.docx"
    report.write_bytes(docx("<w:p><w:r><w:t>The cat sees the river.</w:t></w:r></w:p>"))
    assert main(["translate", str(report), *flags]) == 1
    assert main(["translate", str(report), *flags, "--output", str(report)]) == 1
    assert main(["translate", str(report), *flags, "--output", str(output)]) == 0
    assert "The cat" not in members_of(output.read_bytes())["word/document.xml"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.docx", "report.docx"]
    same = ["--from", "en", "--to", "en", "--output", str(output)]
    assert main(["translate", str(report), *flags[:2], *same]) == 0
    with zipfile.ZipFile(output) as archive:
        assert archive.testzip() is None


def keep_two(output: LineOutput, number: int, line: str, *, keep: Any = LineOutput.keep) -> None:
    """What interrupts a command behind its second text."""
    keep(output, number, line)
    if output.num_lines == 2:
        raise KeyboardInterrupt


def test_a_document_that_was_interrupted_goes_on(
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    page, whole, output = (tmp_path / name for name in ("page.html", "whole.html", "out.html"))
    words = ("A cat.", "It sees\nthe river.", "A dog.", "It sleeps.", "A bird.")
    page.write_text("".join(f"<pre>{one}</pre>" for one in words))
    assert main(["translate", str(page), *flags, "--output", str(whole)]) == 0
    again = ["translate", str(page), *flags, "--output", str(output)]
    with monkeypatch.context() as patch:
        patch.setattr(LineOutput, "keep", keep_two)
        assert main(again) == 130
    assert f"2 texts are kept beside {output}; the same command goes on" in capfd.readouterr().err
    assert not output.exists()
    asked: list[str] = []
    each = Translator.translate_each

    def counted(own: Translator, texts: list[str], *rest: Any, **options: Any) -> Any:
        asked.extend(texts)
        return each(own, texts, *rest, **options)

    monkeypatch.setattr(Translator, "translate_each", counted)
    assert main(again) == 0
    assert len(asked) == len(open_document(page.read_bytes(), "html").texts) - 2
    assert output.read_bytes() == whole.read_bytes()
    assert sorted(tmp_path.iterdir()) == sorted([page, whole, output])


def test_what_cannot_be_read_is_named(
    flags: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert main(["translate", str(broken), *flags]) == 1
    assert f"{broken}: the json document is not JSON" in capfd.readouterr().err
    assert main(["translate", str(tmp_path / "no.json"), *flags]) == 1
    assert "no.json: No such file" in capfd.readouterr().err
    nearest = ["--format", "json", "--nearest-to", str(broken)]
    assert main(["translate", str(broken), *flags, *nearest]) == 1
    assert "--nearest-to goes with --format lines" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (gzip.compress(PAGE.encode())[:-20], "Compressed file ended before the end-of-stream"),
        (gzip.compress(PAGE.encode())[:10] + b"\xff" * 50, "Error -3 while decompressing data"),
        (PAGE.encode(), "Not a gzipped file (b'<!')"),
    ],
    ids=["cut", "damaged", "not packed"],
)
def test_what_cannot_be_unpacked_is_named(
    flags: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str], data: bytes, problem: str
) -> None:
    packed = tmp_path / "page.html.gz"
    packed.write_bytes(data)
    for form in ("html", "lines"):
        assert main(["translate", str(packed), *flags, "--format", form]) == 1
        assert capfd.readouterr().err.startswith(f"dragoman: {packed}: {problem}")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("ui.json.gz", b'{"key": "The cat sees the river.",\n "b": 7}\n'),
        ("page.html.gz", PAGE.encode()),
        ("report.docx.gz", docx("<w:p><w:r><w:t>The cat sees the river.</w:t></w:r></w:p>")),
    ],
)
def test_a_packed_document_is_translated_as_the_document_that_it_is(
    flags: list[str], tmp_path: Path, name: str, data: bytes
) -> None:
    packed, plain = tmp_path / name, tmp_path / name.removesuffix(".gz")
    packed.write_bytes(gzip.compress(data))
    plain.write_bytes(data)
    found = []
    for source, output in ((packed, f"a.{plain.name}"), (plain, f"b.{name}")):
        assert main(["translate", str(source), *flags, "--output", str(tmp_path / output)]) == 0
        raw = (tmp_path / output).read_bytes()
        found.append(gzip.decompress(raw) if output.endswith(".gz") else raw)
    assert found[0] == found[1] != data


def test_values_of_json_are_translated(
    flags: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "messages.json"
    path.write_text('{"a": "The cat sees the river.",\n "b": 7}')
    assert main(["translate", str(path), *flags]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (list(found), found["b"]) == (["a", "b"], 7)
    assert found["a"] != "The cat sees the river."


SAME = ["translate", "--from", "en", "--to", "en", "--format"]


def test_a_pipe_that_does_not_block_is_read_to_its_end(
    flags: list[str], monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.write(write_end, b"<p>one</p>")
    rest = [b"<p>two</p>"]

    def waited_for(*streams: object) -> None:
        """The rest comes when it is waited for."""
        del streams
        os.write(write_end, rest.pop())
        os.close(write_end)

    monkeypatch.setattr(select, "select", waited_for)
    with os.fdopen(read_end) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert main([*SAME, "html", *flags[:2]]) == 0
    assert capfdbinary.readouterr().out == b"<p>one</p><p>two</p>"


def test_texts_of_another_document_are_not_gone_on_from(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.html"
    words = [*SAME, "html", *flags[:2], "--output", str(output)]
    for name, status in (("first", 130), ("second", 0)):
        page = tmp_path / name
        page.write_text("".join(f"<p>{name} {number}</p>" for number in range(5)))
        with page.open() as stream, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", stream)
            if status:
                patch.setattr(LineOutput, "keep", keep_two)
            assert main(words) == status
    assert output.read_bytes() == page.read_bytes()


REPORT = docx("<w:p><w:r><w:t>The cat sees the river.</w:t></w:r></w:p>")


@pytest.mark.parametrize(
    ("name", "output", "written"),
    [
        ("a.txt", "a.docx", "txt"),
        ("a.txt", "a.html", "txt"),
        ("a.html", "a.docx", "html"),
        ("a.md", "b.html", "md"),
        ("a.docx", "b.txt", "docx"),
        ("a.html", "b.json.gz", "html"),
    ],
)
@pytest.mark.parametrize("same", [[], ["--from", "en", "--to", "en"]])
def test_a_name_of_another_kind_is_refused_before_the_network_is_loaded(
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    *,
    name: str,
    output: str,
    written: str,
    same: list[str],
) -> None:
    monkeypatch.setattr(translate, "opened_by_flags", None)
    (tmp_path / name).write_bytes(REPORT if name.endswith("x") else b"The cat sees the river.\n")
    words = ["translate", str(tmp_path / name), *flags, *same, "--output", str(tmp_path / output)]
    assert main(words) == 1
    promised = output.split(".")[1]
    told = f"{output} is named as {promised}, and what is written is {written}; "
    assert told in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "output", "more"),
    [
        ("a.md", "b.txt", []),
        ("a.txt", "b.markdown", []),
        ("a.htm", "b.xhtml.gz", []),
        ("a.txt", "b.html", ["--format", "lines"]),
        ("a.html", "b.html", ["--format", "lines"]),
        ("a.txt", "b.de", []),
    ],
)
def test_names_that_a_translation_may_have(
    flags: list[str], tmp_path: Path, name: str, output: str, more: list[str]
) -> None:
    (tmp_path / name).write_text("The cat sees the river.\n")
    words = ["translate", str(tmp_path / name), *flags[:2], "--from", "en", "--to", "en", *more]
    assert main([*words, "--output", str(tmp_path / output)]) == 0
    assert (tmp_path / output).exists()
