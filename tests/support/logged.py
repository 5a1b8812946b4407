"""Events of the log, as tests look at them."""

import pytest


def events_of(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, object]]]:
    """The names and fields of all that was logged, in order."""
    return [
        (record.getMessage(), dict(record.__dict__.get("fields", {}))) for record in caplog.records
    ]


def fields_of(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, object]]:
    """The fields of every event of a name, in order."""
    return [fields for name, fields in events_of(caplog) if name == event]
