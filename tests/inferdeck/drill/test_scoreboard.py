"""A drill's result as a page: every run is in it, misses too."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from inferdeck.drill.command import summary
from inferdeck.drill.score import Fault, Judgement
from inferdeck.drill.scoreboard import main, scoreboard

GOOD = Judgement("service_down", "runtime", 1.0, 1, False)


def payload(*faults: Fault, **more: Any) -> dict[str, Any]:
    """Return a drill's result."""
    head = {"commit": "abc123", "started": "2026-01-01T00:00:00Z", "took_s": 600.0}
    return head | summary(Path("runs"), faults) | more


def fault(run: int = 1) -> Fault:
    """Return a run in which all went well."""
    known = Fault("service_down", "runtime", simulated=False, run=run, alert="ServiceDown", detect_s=25.0, named_s=26.0)
    return replace(known, told=GOOD, blind=GOOD, baselines={"baro": "disk_full"})


def test_each_failure_is_a_line_with_its_runs() -> None:
    """Seconds of each, and how often it was named."""
    missed = replace(fault(2), alert=None, detect_s=None, blind=Judgement())
    page = scoreboard(payload(fault(), missed, fault(3)))

    assert "| `service_down` | runtime | ServiceDown | 25, never, 25 | 3 of 3 | 2 of 3 |" in page
    assert "| named, told only the time | 0.667 | 0.21 to 0.94 |" in page
    assert "| beside it: BARO's score | 0.000 | |" in page
    assert "at commit abc123" in page
    assert "median 25 s" in page


def test_a_wrong_layer_stands_in_the_table_of_layers() -> None:
    """And an abstention as one."""
    wrong = replace(fault(2), told=replace(GOOD, verdict="disk_full", verdict_layer="host"))
    page = scoreboard(payload(fault(), wrong, replace(fault(3), told=Judgement())))

    assert "| at fault | abstained | host | runtime |" in page
    assert "| runtime | 1 | 1 | 1 |" in page


def test_played_ones_stand_apart_and_count_in_no_share() -> None:
    """Their own table, their own share."""
    page = scoreboard(payload(fault(), replace(fault(), slug="gpu_lost", layer="gpu", simulated=True)))

    assert "With a part that is played" in page
    assert "over 1 runs" in page
    assert "| played, 1 runs: named | 0.000 | |" in page


def test_twins_that_were_not_silent_are_named() -> None:
    """With what they raised; what was left out is said as well."""
    twins = [
        {"slug": "service_down", "run": 1, "alerts": [], "verdicts": [], "silent": True},
        {"slug": "disk_full", "run": 1, "alerts": ["DiskFull"], "verdicts": ["disk_full"], "silent": False},
    ]
    page = scoreboard(payload(fault(), twins=twins, skipped=[{"slug": "cpu_throttled", "reason": "no cgroup"}]))

    assert "1 of 2 raised no alert" in page
    assert "- twin of `disk_full`, run 1: DiskFull, disk_full" in page
    assert "- left out: `cpu_throttled`, no cgroup" in page


def test_what_is_no_result_leaves_the_page_as_it_was(tmp_path: Path) -> None:
    """A drill that could not run has printed nothing."""
    page = tmp_path / "scoreboard.md"
    page.write_text("before", encoding="utf-8")

    assert (2, 2) == (main("", page), main("{}", page))
    assert "before" == page.read_text(encoding="utf-8")
    assert 0 == main(json.dumps(payload(fault())), page)
    assert page.read_text(encoding="utf-8").startswith("# Scoreboard\n")
