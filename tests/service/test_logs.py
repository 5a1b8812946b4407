import ast
import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from service.errors import RequestError
from service.http.forms import decode_form
from service.logs import JsonFormatter, LineFormatter, configure_logging


@pytest.fixture
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("uvicorn.error", "python_multipart"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def _line(record: logging.LogRecord) -> dict[str, object]:
    line = JsonFormatter().format(record)
    assert "\n" not in line
    content: dict[str, object] = json.loads(line)
    return content


def test_a_record_is_one_line_of_json_with_its_fields() -> None:
    record = logging.makeLogRecord(
        {
            "name": "dragoman",
            "levelname": "INFO",
            "msg": "request",
            "created": 0.0,
            "fields": {"status": 200, "route": "/translate"},
        }
    )
    assert _line(record) == {
        "time": "1970-01-01T00:00:00.000+00:00",
        "level": "info",
        "event": "request",
        "logger": "dragoman",
        "status": 200,
        "route": "/translate",
    }


def test_an_exception_is_logged_by_type_and_frames_but_not_by_its_message() -> None:
    with pytest.raises(ValueError, match="int") as caught:
        int("what the user wrote")
    info = (caught.type, caught.value, caught.tb)
    line = _line(logging.makeLogRecord({"msg": "unexpected_error", "exc_info": info}))
    assert line["exception"] == "builtins.ValueError"
    assert "test_logs.py" in str(line["frames"])
    assert "what the user wrote" not in json.dumps(line)


def test_a_field_that_json_does_not_know_is_written_as_text() -> None:
    assert _line(logging.makeLogRecord({"fields": {"path": object}}))["path"] == str(object)


@pytest.mark.usefixtures("restored_logging")
def test_configured_logging_writes_to_the_stream_from_its_level_on() -> None:
    stream = io.StringIO()
    configure_logging("warning", stream=stream)
    logging.getLogger("dragoman").info("unseen")
    logging.getLogger("dragoman").warning("seen")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["seen"]


@pytest.mark.usefixtures("restored_logging")
def test_nothing_of_a_form_that_cannot_be_read_is_logged() -> None:
    stream = io.StringIO()
    configure_logging("debug", stream=stream)
    for body in (b"what the user wrote", b"--b\r\nwhat the user wrote\r\n", b"--b--what"):
        with suppress(RequestError):
            decode_form(body, "multipart/form-data; boundary=b", "the body")
    assert stream.getvalue() == ""


def test_what_a_library_logs_in_a_sentence_is_a_note_with_its_text() -> None:
    line = _line(logging.makeLogRecord({"msg": "slow: %s", "args": ("rope",)}))
    assert (line["event"], line["text"]) == ("note", "slow: rope")


def test_people_get_an_event_as_a_line_with_its_fields() -> None:
    formatter = LineFormatter("dragoman: ")
    fields = {"checkpoint": "tiny", "reason": 'position is "rope"', "num_layers": 2, "text": ""}
    event = logging.makeLogRecord({"msg": "slow_decoding", "fields": fields})
    assert formatter.format(event) == (
        'dragoman: slow_decoding checkpoint=tiny reason="position is \\"rope\\"" num_layers=2'
        ' text=""'
    )
    assert event.getMessage() == "slow_decoding"
    note = logging.makeLogRecord({"msg": "a %s sentence", "args": ("whole",)})
    assert formatter.format(note) == "dragoman: a whole sentence"


def _logged_names() -> Iterator[tuple[str, str]]:
    """Place and name of every event that the sources log under a constant."""
    root = Path(__file__).parents[2]
    for path in (*(root / "model").rglob("*.py"), *(root / "service").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="_LOGGER"), attr=method)):
                    event = node.args[1 if method == "log" else 0]
                    assert len(node.args) == (2 if method == "log" else 1), f"{path}: fields only"
                    if isinstance(event, ast.Constant):
                        yield f"{path}:{node.lineno}", str(event.value)


def test_every_event_has_a_name_in_one_form_and_its_facts_as_fields() -> None:
    names = dict(_logged_names())
    assert len(names) > 80
    assert [place for place, name in names.items() if not re.fullmatch("[a-z0-9_]+", name)] == []
