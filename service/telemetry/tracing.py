"""Choice of tracing by `DRAGOMAN_TRACES`; off unless it is set.

Owns the choice, and imports nothing of OpenTelemetry before it is made. What a trace consists
of is `service.telemetry.spans`.
"""

from typing import TYPE_CHECKING

from model.errors import ConfigError
from service.settings import Settings

if TYPE_CHECKING:
    from service.telemetry.spans import Spans


def open_tracing(settings: Settings) -> "Spans | None":
    """The factory of spans, if the settings ask for traces.

    Raises:
        ConfigError: They are asked for and the extra `otel` is not installed.
    """
    if settings.traces == "off":
        return None
    try:
        from service.telemetry.spans import otlp_spans  # noqa: PLC0415  # an extra, and slow to import
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"DRAGOMAN_TRACES is {settings.traces!r}, which needs the extra 'otel':"
            f" there is no module {error.name}; pip install -e '.[otel]'"
        ) from error
    return otlp_spans()
