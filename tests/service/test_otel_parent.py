"""OpenTelemetry's instrumentation around the service, in a process of its own: its provider is the process's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from service.otel_parent import instrument
from service.settings import SettingsError

SCRIPT = """
import asyncio, json, sys
from pathlib import Path
import httpx
from fastapi import FastAPI
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON
from exporters.keep import KeepRules, keep_reasons
from exporters.labels import KEPT_REASONS
from probes.reader import RingFile, list_rings
from service.app import create_app
from service.settings import load_settings
from tests.service.conftest import FakeBackend, lifespan

spans = InMemorySpanExporter()
provider = TracerProvider(sampler=ALWAYS_ON if sys.argv[2] == "on" else ALWAYS_OFF)
provider.add_span_processor(SimpleSpanProcessor(spans))
if sys.argv[2] != "none":
    trace.set_tracer_provider(provider)
settings = load_settings(opentelemetry=sys.argv[3] == "true", model_dir=Path("nowhere"), admin_port=0)

async def main():
    app = create_app(settings, lambda _settings: FakeBackend())
    async with lifespan(app), httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://t") as client:
        while app.state.worker.lifecycle.backend is None:
            await asyncio.sleep(0.01)
        answer = await client.post("/v1/sentiment", json={"text": "good", "product_id": "AB12345678"})
        assert answer.status_code == 200, answer.text
    (ring,) = map(RingFile, list_rings(Path(sys.argv[1])))
    rows = ring.read(0, 10).rows
    (reason,) = keep_reasons(rows, KeepRules(share=0.0, first=0))
    row = rows[0]
    print(json.dumps({
        "trace": f"{int(row['trace_hi']):016x}{int(row['trace_lo']):016x}",
        "parent": f"{int(row['parent_span_id']):016x}",
        "flags": int(row["flags"]),
        "kept": KEPT_REASONS[reason] if reason >= 0 else None,
        "spans": [[f"{one.context.trace_id:032x}", f"{one.context.span_id:016x}", one.name]
                  for one in spans.get_finished_spans()],
    }))

asyncio.run(main())
"""


def run(folder: Path, sampler: str, setting: str) -> dict[str, Any]:
    """Ask the service once and return its row and OpenTelemetry's spans."""
    environment = os.environ | {"INFERDECK_RING_DIR": str(folder / "rings"), "INFERDECK_STATE_DIR": str(folder)}
    argv = [sys.executable, "-c", SCRIPT, str(folder / "rings"), sampler, setting]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_our_row_hangs_below_its_server_span(tmp_path: Path) -> None:
    """One trace, one server span without those of messages, and a sampled parent is followed."""
    found = run(tmp_path, "on", "true")

    ((trace, span, name),) = found["spans"]
    assert (found["trace"], found["parent"]) == (trace, span)
    assert name == "POST /v1/sentiment"
    # 16: the parent lies in this process (probes/surrounding.py); 2: it is sampled.
    assert 16 | 2 == found["flags"] & (16 | 2)
    assert found["kept"] == "upstream"


def test_what_its_sampler_drops_is_not_kept_for_it(tmp_path: Path) -> None:
    """The trace id is still the one that it would have had, and nothing asks for our spans."""
    found = run(tmp_path, "off", "true")

    assert [] == found["spans"]
    assert 16 == found["flags"] & (16 | 2)
    assert found["kept"] is None


def test_off_nothing_is_put_around_the_service(tmp_path: Path) -> None:
    """No provider is started, and the row begins its own trace."""
    found = run(tmp_path, "none", "false")

    assert ([], "0" * 16, 0) == (found["spans"], found["parent"], found["flags"] & 16)


def test_missing_packages_are_one_line_with_the_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service does not start half traced."""
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation.fastapi", None)
    with pytest.raises(SettingsError, match="inferdeck\\[otel\\]"):
        instrument(None)  # type: ignore[arg-type]
