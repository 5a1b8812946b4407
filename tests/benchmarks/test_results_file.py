"""Files of results: their names, and that they hold what was given."""

import json
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.results_file import write_result

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_results_are_in_a_file_named_by_the_benchmark_and_the_second(tmp_path: Path) -> None:
    result = {"rows": [1, {"text": "Straße"}], "seconds": 0.5}
    path = write_result(tmp_path / "new" / "folder", "speed", STARTED, result)
    assert path == tmp_path / "new" / "folder" / "speed-20260102-030405.json"
    written = path.read_text(encoding="utf-8")
    assert json.loads(written) == result
    assert "Straße" in written, "as people read it"
    assert written.endswith("}\n")
