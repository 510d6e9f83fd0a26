"""What a person is told: all that a message must carry, bounded, and without personal data."""

from __future__ import annotations

from typing import Any

import pytest

from runbooks.notify.links import Links, shown_url
from runbooks.notify.message import MOST_LINE, impact_line, message_of
from runbooks.unable import unable
from tests.runbooks.notify.conftest import RESULT, message, result_of

COUNTS = "84 of 1200 requests bad, 21 of 300 sessions, 4 started and never ended"
SEARCH = "http://jaeger.example/search?service=sentiment&lookback=custom"


def test_a_message_carries_verdict_impact_and_every_way_on() -> None:
    """In this order: what is wrong comes first, links last."""
    said = message()

    assert "inferdeck: EventLoopBlocked: event_loop_blocked" == said.title
    assert (
        ("Verdict", "event_loop_blocked (layer runtime, confidence 0.97)"),
        ("Summary", "Synchronous work runs on the event loop."),
        (
            "Impact",
            f"{COUNTS}; since 2026-11-30T08:02:00.500Z, still going on",
        ),
        ("Because", "the loop was late for 10% of the time; others stand still; a stack was seen"),
        ("Next", "inferdeck trace --slow 5 --since 15m"),
        ("Ask again", "inferdeck triage --alert EventLoopBlocked"),
    ) == said.lines
    assert (
        ("Runbook", "http://triage.example/runbooks/EventLoopBlocked.md"),
        ("Dashboard", "http://grafana.example/d/inferdeck-overview?from=1796024880000&to=1796025780000"),
        (
            "Traces",
            f"{SEARCH}&start=1796024880000000&end=1796025780000000&limit=20",
        ),
        ("Worst request", f"http://jaeger.example/trace/{'0' * 31}1"),
        ("Worst request", f"http://jaeger.example/trace/{'0' * 31}2"),
        ("Worst request", f"http://jaeger.example/trace/{'0' * 31}3"),
        ("Report", "http://triage.example/reports/20261130T080300Z-0123abcd"),
    ) == said.links


def test_the_panel_that_the_alert_came_with_wins() -> None:
    """Grafana knows the alert's own panel; the overview stands in where it did not say."""
    told = message_of(result_of(), Links(), starts_at=0.0, panel_url="http://g.example/d/x?viewPanel=3")

    assert "http://g.example/d/x?viewPanel=3" == dict(told.links)["Dashboard"]


def test_a_panel_told_by_its_path_is_opened_in_our_grafana_at_that_time() -> None:
    """The shipped rules know the panel, and not where Grafana is."""
    links = Links(grafana="http://grafana.example/")
    told = message_of(result_of(), links, starts_at=0.0, panel_url="d/inferdeck-host?viewPanel=3")
    nowhere = message_of(result_of(), Links(), starts_at=0.0, panel_url="d/inferdeck-host?viewPanel=3")

    wanted = "http://grafana.example/d/inferdeck-host?viewPanel=3&from=1796024880000&to=1796025780000"
    assert wanted == dict(told.links)["Dashboard"]
    assert "no Grafana is set up (INFERDECK_NOTIFY_GRAFANA_URL)" == dict(nowhere.links)["Dashboard"]


@pytest.mark.parametrize(
    ("mitigated", "title", "line"),
    [
        (
            {
                "refused": None,
                "runs": [{"id": "restart_service", "outcome": "not_recovered", "detail": "runs again", "undo": None}],
            },
            "inferdeck: EventLoopBlocked: event_loop_blocked, mitigation: not recovered",
            "restart_service not_recovered: runs again",
        ),
        (
            {"refused": "twice within the hour", "runs": []},
            "inferdeck: EventLoopBlocked: event_loop_blocked, not mitigated",
            "not mitigated: twice within the hour",
        ),
    ],
)
def test_what_was_done_is_told_first_with_all_that_leads_on(mitigated: dict[str, Any], title: str, line: str) -> None:
    """The outcome stands in the title; the other lines and links are those of the verdict's message."""
    first = message_of(result_of(), Links(), starts_at=0.0)
    told = message_of(result_of(), Links(), starts_at=0.0, mitigated=mitigated)

    assert title == told.title
    # what was true before it was mended must not read as if it were now
    impact = ("Impact", f"{dict(first.lines)['Impact']} (when triage looked)")
    wanted = [("Mitigation", line), *(impact if one[0] == "Impact" else one for one in first.lines)]
    assert tuple(wanted) == told.lines
    assert first.links == told.links
    assert ("incident", "mitigation") == (first.event, told.event)


def test_what_is_not_set_up_is_said() -> None:
    """No link leads nowhere: a command or a name stands there instead."""
    links = dict(message_of(result_of(), Links(), starts_at=0.0).links)

    assert "runbooks/EventLoopBlocked.md" == links["Runbook"]
    assert "no Grafana is set up (INFERDECK_NOTIFY_GRAFANA_URL)" == links["Dashboard"]
    assert "inferdeck trace --slow 5 --since 15m" == links["Traces"]
    assert "20261130T080300Z-0123abcd.json in the state folder's reports" == links["Report"]


def test_a_failed_triage_is_told_too() -> None:
    """Whoever was called must hear that they go on by hand."""
    told = message_of(unable("EventLoopBlocked", 1_796_025_780.0, 3, OSError("gone")), Links(), starts_at=7.0)

    assert "inferdeck: EventLoopBlocked: no cause named" == told.title
    assert (None, 7.0, None) == (told.slug, told.onset_unix, told.report)
    assert "The triage itself failed 3 times" in dict(told.lines)["Summary"]
    assert "how many requests is not known" in dict(told.lines)["Impact"]


def test_lines_are_bounded_and_hold_no_secret() -> None:
    """A label from outside may be of any length, and may hold an address or a token."""
    verdict = RESULT["verdict"] | {"summary": "by someone@example.org, Bearer abcdefgh12345678 " + "x" * 5000}
    summary = dict(message(verdict=verdict).lines)["Summary"]

    assert MOST_LINE == len(summary)
    assert summary.startswith("by (removed), (removed) xxx")


@pytest.mark.parametrize(
    ("going", "said"),
    [(False, "over since 2026-11-30T08:03:00.000Z"), (None, "nothing to date")],
)
def test_the_impact_says_whether_it_goes_on(going: bool | None, said: str) -> None:
    """And since when nothing arrives any more."""
    impact = RESULT["impact"] | {"still_going": going, "stopped_since": "2026-11-30T08:02:10Z"}

    assert impact_line(impact).endswith(said)
    assert "no request since 2026-11-30T08:02:10Z" in impact_line(impact)


def test_a_service_that_serves_nothing_is_said_to_do_so() -> None:
    """None of none bad would sound well."""
    stopped = {"stopped_since": "2026-11-30T08:02:10Z", "rate_per_second": {"now": 0.0, "before": 5.32}}
    impact = RESULT["impact"] | stopped | {"requests": 0, "bad_requests": 0, "sessions": 0, "unfinished_requests": 3}

    assert (
        "no request since 2026-11-30T08:02:10Z (5.32/s before), 3 started and never ended; "
        "since 2026-11-30T08:02:00.500Z, still going on"
    ) == impact_line(impact)


def test_an_address_is_shown_without_its_secret() -> None:
    """Chat webhooks are secrets in path, query or user."""
    assert "https://hooks.slack.com/..." == shown_url("https://hooks.slack.com/services/T0/B0/secret")
    assert "https://host:8443/..." == shown_url("https://user:secret@host:8443/?access_token=secret")
