"""The file of a run's results: benchmarks/results/NAME-TIME.json.

Owns its name and form. Does not own what is in it: `benchmarks.machine` has what all have.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"


def write_result(folder: Path, name: str, started: datetime, result: Mapping[str, object]) -> Path:
    """Write results as JSON; their folder is made if need be.

    Args:
        folder: Of results.
        name: Of the benchmark, in the file's name.
        started: When the run began; the file's name has it to the second.
        result: What JSON can hold.

    Returns:
        The file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{started:%Y%m%d-%H%M%S}.json"
    text = json.dumps(result, indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")
    return path
