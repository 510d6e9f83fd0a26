"""Looking at rows one by one, on rows of the real recorder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inferdeck.bench.row_check import RowCheck, check_rows, head, newest_rows
from probes import Recorder, RecorderSettings, bind


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    """A recorder with a small ring of its own."""
    folder = tmp_path / "rows"
    folder.mkdir(mode=0o700)
    one = Recorder(folder, "bench", settings=RecorderSettings(ring_rows=64, sensors=False))
    yield one
    one.close()


def record(recorder: Recorder, stages: dict[str, dict[str, Any]], **attributes: Any) -> None:
    """Write one row with these stages and attributes of the request."""
    scope = {"type": "http", "method": "POST", "headers": []}
    begun = recorder.begin(scope)
    assert begun is not None
    with bind(begun[1]) as current:
        assert current is not None
        for name, values in stages.items():
            with current.stage(name, **values):
                pass
        current.set(**attributes)
    recorder.finish(begun, scope, 200, disconnected=False)


INPUTS = {
    "input_length": 4,
    "tokens": 1,
    "confidence": 0.9,
    **{f"share_{kind}": 0.0 for kind in ("alpha", "digit", "space", "punctuation", "cjk", "astral")},
}


def test_the_poorest_row_counts(recorder: Recorder) -> None:
    """A row that lacks a stage or an attribute lowers the figure, however rich the others are."""
    rich: dict[str, dict[str, Any]] = {"one": {"a": 1, "b": "x", "c": False, "d": 0.0}, "two": {"e": 0}}
    for _ in range(3):
        record(recorder, rich, label="positive", **INPUTS)
    everything = check_rows(newest_rows(recorder.directory, 0))
    record(recorder, {"one": {"a": 1}}, **INPUTS)

    poorest = check_rows(newest_rows(recorder.directory, 0))

    assert RowCheck(rows=3, stages=2, attributes=15, inputs=True) == everything
    assert RowCheck(rows=4, stages=1, attributes=10, inputs=True) == poorest


def test_a_row_without_quality_is_seen(recorder: Recorder) -> None:
    """One row without the inputs of quality and drift checks is enough to say that they are missing."""
    record(recorder, {}, **INPUTS)
    record(recorder, {}, input_length=4, tokens=1, confidence=0.9)

    assert not check_rows(newest_rows(recorder.directory, 0)).inputs
    assert check_rows(newest_rows(recorder.directory, 0)[:1]).inputs


def test_only_the_rows_of_the_window_are_looked_at(recorder: Recorder) -> None:
    """Rows from before the window are left out, and so is what exceeds the bound."""
    for _ in range(5):
        record(recorder, {}, **INPUTS)
    first = head(recorder.directory)
    for _ in range(7):
        record(recorder, {"one": {}}, **INPUTS)

    assert 7 == len(newest_rows(recorder.directory, first))
    assert 2 == len(newest_rows(recorder.directory, first, most=2))


def test_no_rows_are_no_proof(tmp_path: Path) -> None:
    """Where nothing was recorded, nothing was looked at."""
    assert 0 == head(tmp_path)
    assert RowCheck() == check_rows(newest_rows(tmp_path, 0))


def test_the_handler_of_the_bench_fills_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our variant records six stages of its own, two of the wire, 21 attributes and more, and the inputs."""
    import httpx

    from inferdeck.bench.app import create_app

    folder = tmp_path / "rows"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("INFERDECK_RING_DIR", str(folder))

    async def ask() -> int:
        app = create_app("inferdeck_1pct")
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://bench") as client:
            body = {"text": "很好用 works great", "product_id": "AB12345678"}
            return (await client.post("/v1/sentiment", json=body)).status_code

    assert 200 == asyncio.run(ask())
    check = check_rows(newest_rows(folder, 0))

    assert (1, 8, True) == (check.rows, check.stages, check.inputs)
    assert check.attributes >= 33
