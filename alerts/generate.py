"""From the catalogue to everything that follows from it: a pure function, so that committed files can be compared.

Each output is one generator, a function from `Inputs` to text by path; a new output is a function and a line in
`GENERATORS`, and where its files lie a line in `alerts.write.GENERATED`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from alerts.alertmanager_config import render_alertmanager
from alerts.model import Alert, Case, Eval, fill
from alerts.operator_objects import render_operator
from alerts.panels import panel_path
from alerts.readme import render_readme
from alerts.recording import Recording, group_names, recording_path, render_recording, used_by
from alerts.yaml_text import dump

__all__ = ["GENERATORS", "RUNBOOK_BASE", "Inputs", "generate", "render_rule", "render_test", "rule_group"]

# Relative to the repository; whoever serves the runbooks elsewhere generates with that address.
RUNBOOK_BASE = "runbooks/"
# As often as the embedded stack evaluates; a rule that says `every` is tested at its own rhythm.
EVALUATION = "5s"


@dataclass(frozen=True)
class Inputs:
    """What generation follows from.

    Attributes:
        alerts: The catalogue.
        existing: Paths below the repository that are there; the table links to no others.
        runbook_base: What `runbook_url` starts with, up to the alert's name.
        recordings: The recording rules.
        panels: Panels by `<dashboard>/<panel>`: uid of the dashboard, id of the panel.
        dashboard_base: What `dashboard_url` starts with: Grafana's address; by default none, and triage puts it in.
    """

    alerts: Sequence[Alert] = ()
    existing: Collection[str] = ()
    runbook_base: str = RUNBOOK_BASE
    recordings: Sequence[Recording] = ()
    panels: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    dashboard_base: str = ""


def generate(inputs: Inputs) -> dict[str, str]:
    """Return the text of every generated file by its path below the repository, in alphabetical order."""
    files: dict[str, str] = {}
    for generator in GENERATORS:
        files |= generator(inputs)
    # Last, since it links to what the others make.
    files["alerts/README.md"] = render_readme(inputs.alerts, inputs.recordings, {*inputs.existing, *files})
    return dict(sorted(files.items()))


def _rules(inputs: Inputs) -> dict[str, str]:
    alerts = {f"alerts/rules/{alert.slug}.yml": render_rule(alert, inputs) for alert in inputs.alerts}
    return alerts | {recording_path(one): render_recording(one) for one in inputs.recordings}


def _tests(inputs: Inputs) -> dict[str, str]:
    return {f"alerts/tests/{alert.slug}.test.yml": render_test(alert, inputs) for alert in inputs.alerts}


def _alertmanager(inputs: Inputs) -> dict[str, str]:
    return {"alerts/alertmanager.yml": render_alertmanager(alerts=inputs.alerts)}


def _operator(inputs: Inputs) -> dict[str, str]:
    groups = [group for one in inputs.recordings for group in one.rule_groups()]
    return render_operator([*groups, *(rule_group(alert, inputs) for alert in inputs.alerts)])


GENERATORS: tuple[Callable[[Inputs], dict[str, str]], ...] = (_rules, _tests, _alertmanager, _operator)


def rule_group(alert: Alert, inputs: Inputs = Inputs()) -> dict[str, Any]:
    """Return the rule group of one alert, in the shape of Prometheus' rule files.

    Args:
        alert: The alert.
        inputs: Where its links lead.
    """
    rule: dict[str, Any] = {"alert": alert.alert, "expr": fill(alert.expr, alert.thresholds).strip()}
    if alert.for_ is not None:
        rule["for"] = alert.for_
    if alert.keep_firing_for is not None:
        rule["keep_firing_for"] = alert.keep_firing_for
    rule["labels"] = _labels(alert)
    rule["annotations"] = _annotations(alert, inputs)
    rhythm = {} if alert.every is None else {"interval": alert.every}
    return {"name": alert.slug, **rhythm, "rules": [rule]}


def render_rule(alert: Alert, inputs: Inputs = Inputs()) -> str:
    """Return the rule file of one alert.

    Args:
        alert: The alert.
        inputs: Where its links lead.
    """
    return dump({"groups": [rule_group(alert, inputs)]}, _head(alert))


def render_test(alert: Alert, inputs: Inputs) -> str:
    """Return the promtool test file of one alert.

    Args:
        alert: The alert.
        inputs: What else is there: the recorded series that its expression uses are computed in the test as well.
    """
    recorded = used_by(alert.expr, inputs.recordings)
    document: dict[str, Any] = {
        "rule_files": [f"../../{recording_path(one)}".replace("../../alerts/", "../") for one in recorded]
        + [f"../rules/{alert.slug}.yml"],
        "evaluation_interval": alert.every or EVALUATION,
    }
    if recorded:
        # Otherwise promtool takes the groups in any order, and an alert would see a recorded value now or a step later.
        document["group_eval_order"] = [name for one in recorded for name in group_names(one)] + [alert.slug]
    document["tests"] = [_case(alert, case, inputs) for case in alert.tests]
    return dump(document, _head(alert))


def _head(alert: Alert) -> str:
    return f"generated by `python -m alerts` from alerts/catalogue/{alert.slug}.yaml; do not edit"


def _labels(alert: Alert) -> dict[str, str]:
    return {
        "slug": alert.slug,
        "layer": alert.layer,
        "kind": alert.kind,
        "severity": alert.severity,
        "channel": alert.channel,
        **alert.labels,
    }


def _annotations(alert: Alert, inputs: Inputs) -> dict[str, str]:
    panel = inputs.panels.get(alert.panel or "")
    return {
        "summary": fill(alert.summary, alert.thresholds),
        "description": fill(alert.description, alert.thresholds),
        "first_step": fill(alert.first_step, alert.thresholds),
        "runbook_url": f"{inputs.runbook_base}{alert.runbook}.md",
        **({"dashboard_url": f"{inputs.dashboard_base}{panel_path(panel)}"} if panel else {}),
    }


def _case(alert: Alert, case: Case, inputs: Inputs) -> dict[str, Any]:
    return {
        "name": case.name,
        "interval": case.interval,
        "input_series": [{"series": item.series, "values": item.values} for item in case.input],
        "alert_rule_test": [_eval(alert, moment, inputs) for moment in case.expect],
    }


def _eval(alert: Alert, moment: Eval, inputs: Inputs) -> dict[str, Any]:
    expected = [
        {
            "exp_labels": {**_labels(alert), **firing.labels},
            "exp_annotations": {**_annotations(alert, inputs), "description": firing.description},
        }
        for firing in moment.firing
    ]
    return {"eval_time": moment.at, "alertname": alert.alert, "exp_alerts": expected}
