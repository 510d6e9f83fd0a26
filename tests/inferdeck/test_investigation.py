"""`inferdeck investigate` over real rows: names the slice, keeps answer and page, tells it in the incident's report."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from inferdeck.bench.flight import write_flight
from inferdeck.bench.investigate import shape_investigate
from inferdeck.errors import CannotRun
from inferdeck.investigation import FOLDER, run_investigation
from inferdeck.investigation_page import render_page
from inferdeck.result import Stopwatch, to_json
from inferdeck.schema import validate
from inferdeck.settings import StackSettings, load_settings
from runbooks.store import ReportStore

COUNT = 36_000


@pytest.fixture(scope="module")
def flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with rings and archive, in which one release's confidence falls at half time."""
    folder = tmp_path_factory.mktemp("flight")
    write_flight(folder / "rings", folder / "state" / "archive", COUNT, unsure_from=COUNT // 2)
    return folder


@pytest.fixture
def settings(flight: Path, monkeypatch: pytest.MonkeyPatch) -> StackSettings:
    """Return settings that name the folder."""
    monkeypatch.setenv("INFERDECK_RING_DIR", str(flight / "rings"))
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(flight / "state"))
    return load_settings()


def test_the_slice_is_named_and_kept(settings: StackSettings, tmp_path: Path) -> None:
    """Answer and page are private files; the result has the schema's shape."""
    outcome = run_investigation(settings, 3600, tmp_path / "page.html")

    result = json.loads(to_json(Stopwatch().stamp(outcome.payload)))
    validate("investigate", result)
    assert 1 == outcome.code
    assert COUNT == result["records"]
    named = result["verdict"]
    assert ("slice", "client_release", "7.3.0", "confidence") == tuple(
        named[name] for name in ("kind", "dimension", "value", "feature")
    )
    kept = Path(result["report"])
    assert (settings.state_path / FOLDER) == kept.parent
    assert 0o600 == stat.S_IMODE(kept.stat().st_mode)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "client_release 7.3.0" in page
    assert "<svg" in page
    assert kept.with_suffix(".html").is_file()


def test_an_incidents_report_tells_of_it(settings: StackSettings) -> None:
    """The report that asked for it has summary and page; one that is not there is an error with its mend."""
    store = ReportStore(settings.state_path / "reports")
    report = store.save({"alert": "InputDrift"})

    run_investigation(settings, 3600, report_id=report["id"])

    told: dict[str, Any] = (store.load(report["id"]) or {})["investigation"]
    assert "client_release 7.3.0" in told["summary"]
    assert Path(told["page"]).is_file()
    with pytest.raises(CannotRun, match="no report"):
        run_investigation(settings, 3600, report_id="20260101T000000Z-00000000")


def test_nothing_recorded_is_nothing_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without rows there is no verdict and no error."""
    monkeypatch.setenv("INFERDECK_RING_DIR", str(tmp_path / "rings"))
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path / "state"))

    outcome = run_investigation(load_settings(), 60)

    validate("investigate", json.loads(to_json(Stopwatch().stamp(outcome.payload))))
    assert (0, 0) == (outcome.code, outcome.payload["records"])
    assert not (tmp_path / "state").exists()


def test_a_page_escapes_what_clients_wrote(settings: StackSettings) -> None:
    """A release's name is anybody's text; the page loads nothing from elsewhere."""
    payload = run_investigation(settings, 3600).payload
    payload["slices"][0]["value"] = "<script>alert(1)</script>"

    page = render_page(payload)

    assert "<script" not in page
    assert not re.search(r"(src|href)=.https?:", page)


def test_the_bench_gate_asks_for_all_of_it() -> None:
    """Too slow, too large, a missed row or another slice is no pass."""
    found: dict[str, Any] = {
        "records": 100,
        "verdict": {"dimension": "client_release", "value": "7.3.0", "summary": "so"},
    }
    good = shape_investigate(100, found, 59.0, 10**9)
    validate("bench_investigate", json.loads(to_json(Stopwatch().stamp(good))))

    assert good["gate"]["passed"]
    assert not shape_investigate(100, found, 61.0, 10**9)["gate"]["passed"]
    assert not shape_investigate(100, found, 59.0, 2 * 10**9)["gate"]["passed"]
    assert not shape_investigate(101, found, 59.0, 10**9)["gate"]["passed"]
    other = found | {"verdict": found["verdict"] | {"value": "7.4.0"}}
    assert not shape_investigate(100, other, 59.0, 10**9)["gate"]["passed"]
