import asyncio
import json
import stat
from pathlib import Path

import pytest

from model.errors import InputError
from service.api.libretranslate.suggestions import Suggestion, SuggestionFile, suggestion
from service.errors import RequestError
from service.settings import Settings

VALUES = {"q": "Hello\n", "s": "Hallo \ud800\u2028", "source": "en_US", "target": "zt"}


def _add(file: SuggestionFile, one: Suggestion) -> int:
    """The status of a refusal, or 200."""
    try:
        asyncio.run(file.add(one))
    except RequestError as error:
        return error.problem.status
    return 200


def test_suggestions_are_lines_that_the_owner_alone_can_read(tmp_path: Path) -> None:
    path = tmp_path / "suggestions.jsonl"
    one = suggestion(VALUES, Settings())
    file = SuggestionFile(path)
    assert [_add(file, one), _add(file, one)] == [200, 200]
    lines = path.read_text("utf-8").split("\n")
    expected = {"q": "Hello\n", "s": "Hallo \ufffd\u2028", "source": "en-US", "target": "zh-Hant"}
    assert [json.loads(line) for line in lines[:-1]] == [expected] * 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_full_file_takes_no_more_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "suggestions.jsonl"
    one = suggestion(VALUES, Settings())
    file = SuggestionFile(path, max_bytes=200)
    statuses = [_add(file, one) for _ in range(4)]
    assert set(statuses) == {200, 503}
    assert len(path.read_text("utf-8").split("\n")) - 1 == statuses.count(200)


def test_a_file_that_cannot_be_written_is_a_503_and_no_file_a_403(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = suggestion(VALUES, Settings())
    assert _add(SuggestionFile(tmp_path), one) == 503
    assert [record.getMessage() for record in caplog.records] == ["suggestion_not_written"]
    assert "Hallo" not in caplog.text
    assert _add(SuggestionFile(None), one) == 403


def test_a_suggestion_has_the_limits_of_a_translation() -> None:
    with pytest.raises(RequestError) as caught:
        suggestion(VALUES | {"s": "a" * 11}, Settings(max_text_characters=10))
    assert caught.value.problem.status == 413
    with pytest.raises(InputError):
        suggestion(VALUES | {"target": "no code"}, Settings())


def test_a_suggestion_is_no_request_of_two_texts() -> None:
    settings = Settings(max_texts=1, max_text_characters=10, max_request_characters=10)
    one = suggestion(VALUES | {"q": "a" * 10, "s": "b" * 10}, settings)
    assert (one.q, one.s) == ("a" * 10, "b" * 10)
