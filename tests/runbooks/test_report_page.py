"""A triage result as a page: whole, escaped, without a script, whatever was found."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from runbooks.engine import triage
from runbooks.plots import MOST_BINS, MOST_PLOTS
from runbooks.report_page import render_list, render_page
from runbooks.sources import Sources

WORLDS: list[dict[str, Any]] = [
    {"block_seconds": 0.2, "block_share": 0.05},
    {"dead_after": 0.0, "during": 35.0},
    {"fail_share": 0.5, "fail_release": "1.1"},
    {},
    {"rate": 0.0},
]
VOID = {"meta", "path", "line"}


class Tags(HTMLParser):
    """Checks that each tag is closed in its order, and collects texts and attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.seen: dict[str, list[dict[str, str | None]]] = {}
        self.feed(page)
        self.close()
        assert [] == self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag that opens."""
        self.seen.setdefault(tag, []).append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag that closes itself."""
        self.seen.setdefault(tag, []).append(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        """Match a tag that closes."""
        assert tag == self.open.pop()

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        self.texts.append(data)


@pytest.mark.parametrize("options", WORLDS)
def test_any_result_is_a_whole_page_that_loads_nothing(world: Callable[..., Any], options: dict[str, Any]) -> None:
    """Named or not, with or without sources."""
    here = world(**options)
    full = here.sources()
    for sources in (full, Sources(full.prometheus), Sources(None, full.rows), Sources()):
        page = Tags(render_page(triage(sources, at=here.until, clock=lambda: here.until)))

        assert not page.seen.keys() & {"script", "img", "link", "iframe", "object"}
        assert "default-src 'none'" in str(page.seen["meta"])
        assert "None" not in " ".join(page.texts)


def test_the_decisive_signal_is_drawn_with_the_line_where_it_began(world: Callable[..., Any]) -> None:
    """First the one that dates the incident; small enough for a kept report."""
    here = world(block_seconds=0.2, block_share=0.05)
    result = triage(here.sources(), at=here.until, clock=lambda: here.until)
    plots = result["plots"]
    page = Tags(render_page(result))

    assert result["window"]["signal"] == plots[0]["signal"]
    assert 1 <= len(plots) <= MOST_PLOTS
    assert all(len(one["values"]) <= MOST_BINS for one in plots)
    assert len(json.dumps(plots)) < 15_000
    assert len(plots) == len(page.seen["svg"]) == len(page.seen["line"])
    [share] = [one for one in plots if one["signal"] == "event loop blocked share"]
    known = [value for value in share["values"] if value is not None]
    assert max(known[-6:]) > 0.05 > max(known[:-20])


def test_a_healthy_time_has_nothing_to_draw(world: Callable[..., Any]) -> None:
    """A signal that stays at its level is no picture."""
    here = world()

    assert [] == triage(here.sources(), at=here.until, clock=lambda: here.until)["plots"]


def test_evidence_stands_with_what_was_expected_and_where_it_is_from(world: Callable[..., Any]) -> None:
    """The verdict's own steps, the runbook, the commands."""
    here = world(block_seconds=0.2, block_share=0.05)
    text = " ".join(Tags(render_page(triage(here.sources(), at=here.until, clock=lambda: here.until))).texts)

    for part in ("event_loop.lag_share", "> 0.03", "runbooks/EventLoopBlocked.md", "inferdeck trace --trace"):
        assert part in text


def test_markup_in_names_stays_text(world: Callable[..., Any]) -> None:
    """An alert's name and a label come from elsewhere."""
    here = world(block_seconds=0.2, block_share=0.05)
    result = triage(here.sources(), at=here.until, clock=lambda: here.until)
    evil = '"><script>alert(1)</script>'
    result["alert"] = result["verdict"]["summary"] = result["plots"][0]["signal"] = evil
    result["evidence"][0]["detail"] = result["mitigations"][0]["do"] = evil
    page = render_page(result)

    Tags(page)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 5


def test_kept_reports_are_listed_with_links() -> None:
    """None kept is said; an id is a link, its verdict beside it."""
    one = {
        "id": "20261201T000000Z-00000000",
        "alert": "A<b>",
        "abstained": False,
        "verdict": {"slug": "s", "confidence": 1},
    }
    page = Tags(render_list([one, one | {"abstained": True}]))

    assert ["reports/20261201T000000Z-00000000"] * 2 == [tag["href"] for tag in page.seen["a"]]
    assert "no cause named" in page.texts
    assert "None is kept." in Tags(render_list([])).texts
