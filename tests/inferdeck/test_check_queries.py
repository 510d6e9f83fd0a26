"""Tests of inferdeck/check_queries.py: what a runbook tells to ask Prometheus is asked of something that exists."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from alerts.promtool import ToolMissingError, find_tool
from inferdeck.check_queries import check_queries, queries_of

ROOT = Path(__file__).resolve().parents[2]
GOOD = """# Page
`sum(rate(model_requests_total{outcome="error"}[1m])) > 0`, `up{job="service"}` and `model_worker_up`.
`service:model_request_errors:ratio_rate1h` against it; `model_latency_seconds` is a family.
Nothing to ask: `inferdeck triage --alert X`, `kill -9 PID`, `scheduler.dispatch`.
"""


def satisfied(name: str, arguments: Sequence[str | Path]) -> tuple[int, str]:
    """Stand in for a promtool that finds nothing wrong."""
    return 0, ""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """One page, and the shipped recording rules."""
    (tmp_path / "runbooks").mkdir()
    (tmp_path / "runbooks/Page.md").write_text(GOOD, encoding="utf-8")
    shutil.copytree(ROOT / "alerts/recording", tmp_path / "alerts/recording")
    return tmp_path


def test_queries_and_names_are_found_with_their_lines(checkout: Path) -> None:
    """Commands and stages are none."""
    assert [
        (2, 'sum(rate(model_requests_total{outcome="error"}[1m])) > 0'),
        (2, 'up{job="service"}'),
        (2, "model_worker_up"),
        (3, "service:model_request_errors:ratio_rate1h"),
        (3, "model_latency_seconds"),
    ] == [(line, text) for _, line, text in queries_of(checkout / "runbooks/Page.md")]


def test_a_good_page_is_well(checkout: Path) -> None:
    """Both checks are ok."""
    assert ["ok", "ok"] == [found.state for found in check_queries(checkout, satisfied)]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rate(model_requests_total", "rate(model_request_total", "Page.md:2: model_request_total is no metric"),
        ('outcome="error"', 'outcome="eror"', "Page.md:2: model_requests_total: outcome is never 'eror'"),
        ("`model_worker_up`", "`model_workers_up`", "Page.md:2: model_workers_up is no metric"),
        ("ratio_rate1h", "ratio_rate9h", "Page.md:3: service:model_request_errors:ratio_rate9h is no metric"),
        ('sum(rate(model_requests_total{outcome="error"}[1m]))', 'sum({job="x"}) + model_worker_up', "without a name"),
    ],
)
def test_what_does_not_exist_fails_with_file_and_line(checkout: Path, old: str, new: str, said: str) -> None:
    """A metric, a value, a name alone, a recorded series, and a selector of everything."""
    page = checkout / "runbooks/Page.md"
    assert old in page.read_text()
    page.write_text(page.read_text().replace(old, new))

    first = next(iter(check_queries(checkout, satisfied)))

    assert "fail" == first.state
    assert said in first.detail


def test_a_query_that_does_not_parse_is_named_by_its_page(checkout: Path) -> None:
    """The real parser reads each; a name that exists is not enough."""
    if find_tool("promtool") is None:
        reason = "no promtool: run `python -m inferdeck.tool_install`"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    page = checkout / "runbooks/Page.md"
    page.write_text(page.read_text().replace("[1m])) > 0", "[1m]) > 0"))

    found = list(check_queries(checkout))

    said = 'Page.md:2: `sum(rate(model_requests_total{outcome="error"}[1m]) > 0` does not parse'
    assert said in [one.detail for one in found if one.state == "fail"]


def test_without_promtool_nothing_is_claimed_of_the_syntax(checkout: Path) -> None:
    """The names are judged all the same."""

    def missing(name: str, arguments: Sequence[str | Path]) -> tuple[int, str]:
        raise ToolMissingError(f"{name} is not here")

    assert ["ok", "absent"] == [found.state for found in check_queries(checkout, missing)]


def test_the_shipped_pages_ask_for_what_exists() -> None:
    """Each query between backquotes in runbooks/."""
    assert {"ok"} == {found.state for found in check_queries(ROOT, satisfied)}
