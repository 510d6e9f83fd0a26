"""Tests of alerts/check.py and alerts/names_check.py: each check is broken once."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from alerts.check import Finding, check
from alerts.load import load_catalogue
from alerts.model import Alert
from alerts.names_check import unknown_names
from alerts.promtool import ToolMissingError, ToolResult
from alerts.readme import related_files
from alerts.write import write
from exporters.names import METRICS


def content(name: str, arguments: Sequence[str | Path]) -> ToolResult:
    """Stand in for a tool that finds nothing wrong."""
    return ToolResult(rc=0, output="SUCCESS")


@pytest.fixture
def complete(checkout: Path) -> Path:
    """A checkout in which every alert has its runbook and its failure test."""
    for alert in load_catalogue():
        for path in related_files(alert).values():
            (checkout / path).parent.mkdir(parents=True, exist_ok=True)
            (checkout / path).write_text(
                f"---\nalert: {alert.alert}\nslug: {alert.slug}\nkind: {alert.kind}\n"
                f"layer: {alert.layer}\nseverity: {alert.severity}\n---\nA page.\n"
            )
    write(checkout)
    return checkout


def line_of(root: Path, slug: str, word: str) -> int:
    """Return the number of the first line of a catalogue's file that holds a word."""
    lines = (root / f"alerts/catalogue/{slug}.yaml").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if word in line)


def states(root: Path, **arguments: Any) -> dict[str, str]:
    """Return the state of each check by its name."""
    return {finding.name: finding.state for finding in check(root, **{"run": content, **arguments})}


def failing(root: Path, **arguments: Any) -> list[Finding]:
    """Return the checks that are not ok, all of which must have a mend."""
    found = [finding for finding in check(root, **{"run": content, **arguments}) if finding.state != "ok"]
    assert [] == [finding for finding in found if not finding.mend]
    return found


def replace(root: Path, name: str, old: str, new: str) -> None:
    """Change one file of the checkout."""
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new))


def test_a_complete_checkout_is_well(complete: Path) -> None:
    """With everything in its place every check is ok."""
    assert {"ok"} == set(states(complete).values())
    assert 11 == len(states(complete))


def test_a_typo_in_the_catalogue_is_told_with_its_line(complete: Path) -> None:
    """A misspelt key ends the checks, since nothing can be judged beyond it."""
    replace(complete, "alerts/catalogue/service_down.yaml", "severity:", "severty:")

    found = failing(complete)

    assert {"alerts: catalogue"} == {finding.name for finding in found}
    assert any(finding.detail.startswith("service_down.yaml:") and "severty" in finding.detail for finding in found)


@pytest.mark.parametrize(
    ("slug", "old", "new", "said"),
    [
        ("queue_wait", "severity: ticket", "severity: tickt", "severity Input should be 'page', 'ticket' or 'info'"),
        ("queue_wait", "summary:", "sumary:", "sumary is no key here: mend the spelling or remove it"),
        ("request_stuck", "    source:", "    sorce:", "thresholds.seconds.source is missing: add it"),
        ("error_rate", "slug: error_rate", "slug: error_rte", "is no symptom of the closed list in alerts/slugs.py"),
        ("no_traffic", "no_data_state: ok", "no_data_state: no", "no_data_state Input should be"),
        ("service_down", "slug: error_rate", "slug: error_rte", "inhibits 'error_rte', which has no file here"),
    ],
)
def test_a_typo_in_the_catalogue_is_told_with_file_line_and_mend(
    complete: Path, slug: str, old: str, new: str, said: str
) -> None:
    """Unknown key, value outside of its list, threshold without source, slug that nobody knows."""
    replace(complete, f"alerts/catalogue/{slug}.yaml", old, new)

    found = [finding for finding in failing(complete) if said in finding.detail]

    assert found
    assert {"alerts: catalogue"} == {finding.name for finding in found}
    assert all(re.match(rf"{slug}\.yaml:\d+: ", finding.detail) and finding.mend for finding in found)


def test_a_slug_without_a_runbook_fails(complete: Path) -> None:
    """An alert without its page is a failure."""
    (complete / "runbooks/ServiceDown.md").unlink()
    write(complete)

    line = line_of(complete, "service_down", "runbook:")
    assert [("alerts: runbook of each", "fail", f"service_down.yaml:{line}: no runbooks/ServiceDown.md")] == [
        (finding.name, finding.state, finding.detail) for finding in failing(complete)
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("severity: page", "severity: ticket", "severity is 'page' here and 'ticket' in runbooks/ServiceDown.md"),
        ("layer: runtime", "layer: gpu", "layer is 'runtime' here and 'gpu' in runbooks/ServiceDown.md"),
        ("slug: service_down", "slug: [", "slug is 'service_down' here and None in runbooks/ServiceDown.md"),
    ],
)
def test_a_runbook_about_something_else_fails(complete: Path, old: str, new: str, said: str) -> None:
    """What a page's head says about its alert is what the catalogue says."""
    replace(complete, "runbooks/ServiceDown.md", old, new)

    assert any(said in finding.detail for finding in failing(complete))


def test_a_symptoms_page_may_guess_a_layer(complete: Path) -> None:
    """The catalogue leaves a symptom's layer open, so its page cannot contradict it."""
    replace(complete, "runbooks/LatencyObjectiveMissed.md", "layer: unknown", "layer: runtime")

    assert [] == failing(complete)


def test_a_failure_without_its_program_fails(complete: Path) -> None:
    """What nothing causes has never been seen to fire; a symptom needs none."""
    (complete / "tests/failures/exporter_unreachable.py").unlink()
    write(complete)

    assert [("alerts: failure test of each", "fail")] == [(f.name, f.state) for f in failing(complete)]


def test_an_unknown_metric_fails(complete: Path) -> None:
    """A metric that no adapter writes would never fire."""
    metrics = {name: metric for name, metric in METRICS.items() if name != "runtime_event_loop_blocked_seconds_total"}

    found = failing(complete, metrics=metrics)

    assert {"alerts: names in expressions"} == {finding.name for finding in found}
    line = line_of(complete, "event_loop_blocked", "rate(runtime_event_loop_blocked_seconds_total")
    said = f"event_loop_blocked.yaml:{line}: expr: runtime_event_loop_blocked_seconds_total is no metric"
    assert said in found[0].detail


def test_a_panel_that_is_not_there_fails_and_the_close_one_is_named(complete: Path) -> None:
    """A link from an alert to a panel that no dashboard has would lead nowhere."""
    replace(complete, "alerts/catalogue/service_down.yaml", "overview/service-now", "overview/service-nw")
    write(complete)

    line = line_of(complete, "service_down", "panel:")
    said = (
        f"service_down.yaml:{line}: overview/service-nw is not in dashboards/panels.json (close: overview/service-now)"
    )
    (found,) = failing(complete)
    assert found.detail.startswith(said.rstrip(")"))


def test_an_alert_without_a_panel_fails_once_there_are_dashboards(complete: Path) -> None:
    """Where there are none, it is not claimed that all is well."""
    replace(complete, "alerts/catalogue/service_down.yaml", "panel: overview/service-now\n", "")
    write(complete)
    line = line_of(complete, "service_down", "runbook:")
    assert [f"service_down.yaml:{line}: has no panel"] == [finding.detail for finding in failing(complete)]

    (complete / "dashboards/panels.json").unlink()
    assert ("alerts: panel of each", "absent") in [(finding.name, finding.state) for finding in failing(complete)]


def test_a_recording_rule_over_an_unknown_metric_fails(complete: Path) -> None:
    """What it records would be empty for ever, and so would every alert that is made of it."""
    replace(complete, "alerts/recording/worker_memory.yaml", "(model_worker_up)", "(model_workers_up)")
    write(complete)

    said = "recording/worker_memory.yaml:8: model_workers_up is no metric of exporters/names.py"
    assert [said] == [finding.detail for finding in failing(complete)]


def test_an_unknown_recorded_series_fails(complete: Path) -> None:
    """A window that nobody records has no data."""
    replace(complete, "alerts/catalogue/error_budget_burn.yaml", "ratio_rate30m", "ratio_rate20m")
    write(complete)

    line = line_of(complete, "error_budget_burn", "ratio_rate20m")
    said = f"error_budget_burn.yaml:{line}: expr: service:model_request_errors:ratio_rate20m is no metric"
    assert f"{said} of exporters/names.py" in [finding.detail for finding in failing(complete)]


def test_an_objective_that_is_said_differently_elsewhere_fails(complete: Path) -> None:
    """The alert's objectives are those by which requests are classed."""
    replace(
        complete, "alerts/catalogue/latency_objective.yaml", "short_seconds: {value: 0.3", "short_seconds: {value: 0.35"
    )
    write(complete)

    line = line_of(complete, "latency_objective", "short_seconds: {")
    said = f"latency_objective.yaml:{line}: short: exporters/names.py says 0.3 s, the alert says 0.35 s"
    assert [said] == [f.detail for f in failing(complete)]


def test_an_objective_between_two_bounds_fails(complete: Path) -> None:
    """A P95 is compared exactly only where the histogram has a bound."""
    latency = METRICS["model_latency_seconds"]
    bounds = tuple(bound for bound in latency.buckets if bound != 0.8)
    metrics = {**METRICS, latency.name: dataclasses.replace(latency, buckets=bounds)}

    details = [finding.detail for finding in failing(complete, metrics=metrics)]

    assert "medium: 0.8 s is no bound of model_latency_seconds" in details


def test_a_hand_edited_generated_file_fails(complete: Path) -> None:
    """A rule that was changed by hand is named."""
    replace(complete, "alerts/rules/service_down.yml", "severity: page", "severity: ticket")

    assert ["not current: alerts/rules/service_down.yml"] == [finding.detail for finding in failing(complete)]


def test_missing_tools_are_absent_and_not_ok(complete: Path) -> None:
    """Where promtool cannot be had, nothing is claimed about the rules."""

    def missing(name: str, arguments: Sequence[str | Path]) -> ToolResult:
        raise ToolMissingError(f"{name} is not here")

    found = failing(complete, run=missing)

    assert [
        ("absent", "promtool is not here"),
        ("absent", "promtool is not here"),
        ("absent", "amtool is not here"),
    ] == [(finding.state, finding.detail) for finding in found]


def test_a_tool_that_finds_fault_fails_with_its_words(complete: Path) -> None:
    """What promtool says is passed on."""

    def unhappy(name: str, arguments: Sequence[str | Path]) -> ToolResult:
        return ToolResult(rc=1, output=f"{name}: FAILED\n")

    assert ["promtool: FAILED", "promtool: FAILED", "amtool: FAILED"] == [
        finding.detail for finding in failing(complete, run=unhappy)
    ]


@pytest.mark.parametrize(
    ("expr", "said"),
    [
        ('model_requests_total{outcome="eror"} > {requests}', "model_requests_total: outcome is never 'eror'"),
        ('model_requests_total{status="500"} > {requests}', "model_requests_total has no label status"),
        ("model_latency_seconds > {requests}", "is a histogram: name its _bucket, _sum or _count"),
        ('model_latency_seconds_bucket{le="0.25"} > {requests}', "has no bound 0.25"),
        ("model_requests_total_count > {requests}", "model_requests_total_count is no metric"),
        ('up{job="exporter"} < {requests}', "is about no target in particular"),
        ("up < {requests}", "is about no target in particular"),
        ('{__name__=~"model_.+"} > {requests}', "a selector without a name is no metric"),
        ("sum by (rout) (model_requests_total) > {requests}", "rout is no label"),
        ("rate(model_requests_total[5m) > {requests}", "is not closed"),
    ],
)
def test_names_that_do_not_exist_are_told(document: dict[str, Any], expr: str, said: str) -> None:
    """A misspelt metric, label, value, bound or job is found before it never fires."""
    found = unknown_names(Alert.model_validate({**document, "expr": expr}))

    assert any(said in what for what in found), found


def test_a_misspelt_series_in_a_test_is_told(document: dict[str, Any]) -> None:
    """A silent case over a series that does not exist would be silent for the wrong reason."""
    document["tests"][2]["input"] = [{"series": "model_request_total", "values": "0+1x9"}]

    assert ["test 'a surge does not': model_request_total is no metric of exporters/names.py"] == unknown_names(
        Alert.model_validate(document)
    )


def test_an_open_label_takes_any_value(document: dict[str, Any]) -> None:
    """Routes come from the app: their values are not judged."""
    expr = 'model_requests_total{route="/v1/other", service="x"} > {requests}'

    assert [] == unknown_names(Alert.model_validate({**document, "expr": expr}))
