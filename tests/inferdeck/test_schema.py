"""A schema tells each key that its result has: whoever reads it by machine meets no stranger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exporters.trace_view import SpanView, TraceView
from inferdeck.drill.command import summary
from inferdeck.drill.twin import silence_found
from inferdeck.look_up import Query, explained, look_up
from inferdeck.schema import load_schema, validate
from inferdeck.stack.state import PartState, StackState
from inferdeck.stack.status import describe

STAMP = {"version": "1", "commit": "c", "started": "2026-01-01T00:00:00.000Z", "took_s": 0.1}


def strangers(schema: dict[str, Any], value: Any, at: str = "") -> list[str]:
    """Return the keys that a value has and its schema does not tell; open objects tell none and may have any."""
    if isinstance(value, list):
        return [one for item in value for one in strangers(schema.get("items", {}), item, f"{at}[]")]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    known = schema["properties"]
    inner = [one for key in value for one in strangers(known.get(key, {}), value[key], f"{at}.{key}")]
    return [f"{at}.{key}" for key in value if key not in known] + inner


def checked(verb: str, payload: dict[str, Any]) -> list[str]:
    """Return the strangers of a result that has its schema's shape."""
    validate(verb, STAMP | payload)
    return strangers(load_schema(verb), STAMP | payload)


def test_status_tells_all_of_its_keys(tmp_path: Path) -> None:
    """With a stack and without."""
    part = PartState("service", 1, "http://127.0.0.1:1", "http://127.0.0.1:1", left_out="not here")
    state = StackState(str(tmp_path), "/rows", 12.5, phase="stopped", parts=[part])

    assert [] == checked("status", describe(state, tmp_path))
    assert [] == checked("status", describe(None, tmp_path))


def test_trace_tells_all_of_its_keys(tmp_path: Path) -> None:
    """Of the answer, of a request and of a span."""
    view = TraceView("0" * 32, "s", "", 1.0, "ok", "", spans=[SpanView("GET /", "", 0.0, 1.0)])
    payload = look_up(Query(slow=1), tmp_path) | {"traces": explained([view], None)}

    assert [] == checked("trace", payload)
    assert [".traces[].odd"] == strangers(load_schema("trace"), {"traces": [{"odd": 1}]})


def test_drill_tells_twins_silences_and_what_was_left_out(tmp_path: Path) -> None:
    """They are there, empty or not, in every result."""
    found = silence_found("traffic_surge", 1, ["DiskFull"], [None], watchdog_firing=True)
    skipped = {"slug": "disk_full", "reason": "no root"}

    assert [] == checked("drill", summary(tmp_path, []))
    assert [] == checked("drill", summary(tmp_path, []) | {"twins": [found], "silences": [found], "skipped": [skipped]})
