import subprocess
import sys
from pathlib import Path

import pytest

from model.errors import ConfigError
from service.settings import Settings
from service.telemetry.tracing import open_tracing

ROOT = Path(__file__).resolve().parents[3]


def _run(program: str) -> str:
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_traces_are_off_unless_asked_for() -> None:
    assert Settings().traces == "off"
    assert open_tracing(Settings()) is None


def test_off_means_that_neither_sdk_nor_exporter_nor_our_spans_are_imported() -> None:
    program = """
import sys
from service.app import create_app
from service.settings import Settings
app = create_app(Settings(checkpoint="none"))
print([name for name in sys.modules if name.startswith(
    ("opentelemetry.sdk", "opentelemetry.exporter", "service.telemetry.spans"))])
print([middleware.cls.__name__ for middleware in app.user_middleware])
"""
    assert _run(program).splitlines() == ["[]", "['Edge', 'DirectRoutes']"]


def test_without_the_extra_the_start_fails_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "service.telemetry.spans", raising=False)
    missing = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
    monkeypatch.setitem(sys.modules, missing, None)  # Python's own way to say "not there"
    with pytest.raises(ConfigError) as caught:
        open_tracing(Settings(traces="otlp"))
    assert str(caught.value) == (
        "DRAGOMAN_TRACES is 'otlp', which needs the extra 'otel':"
        f" there is no module {missing}; pip install -e '.[otel]'"
    )


def test_a_global_provider_of_somebody_else_hears_nothing_of_our_requests() -> None:
    program = """
import asyncio, httpx
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from service.app import create_app
from service.settings import Settings

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

async def ask(app):
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
        await client.post("/translate", params={"q": "A secret.", "source": "en", "target": "zh"})

asyncio.run(ask(create_app(Settings(checkpoint="none"))))
provider.get_tracer("test").start_span("heard").end()
print([span.name for span in exporter.get_finished_spans()])
"""
    assert _run(program) == "['heard']"
