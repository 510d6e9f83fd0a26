"""What stands in for a Grafana: the real promtool and amtool judge its rules, its policies and its texts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from alerts.grafana.check import default_environment
from alerts.grafana.convert import alertmanager_of, expanded
from alerts.grafana.files import FOLDER_OF_FILES, grafana_files
from alerts.grafana.messages import PANEL, TEMPLATES, feishu_payload, message, title
from alerts.grafana.reading import Provisioned, read_provisioned
from alerts.load import load_catalogue
from alerts.promtool import run_tool
from alerts.yaml_text import dump, parse

ROOT = Path(__file__).resolve().parents[3]
ALERTS = load_catalogue()
# People hear by these, so that each branch of the tree can be told apart.
CHOSEN = default_environment() | {
    "INFERDECK_NOTIFY_PAGE": "slack",
    "INFERDECK_NOTIFY_TICKET": "email",
    "INFERDECK_NOTIFY_DATA_QUALITY": "feishu",
    "INFERDECK_RUNBOOK_URL": "http://runbooks.example/",
    "INFERDECK_JAEGER_URL": "http://jaeger.example",
}

pytestmark = pytest.mark.usefixtures("tools")


@pytest.fixture(scope="module")
def files() -> Provisioned:
    """What the catalogue says now; that the committed files say the same is a test of its own."""
    generated = grafana_files(ALERTS, ROOT)
    return Provisioned({name: parse(text)[0] for name, text in generated.items() if name.startswith(FOLDER_OF_FILES)})


def as_prometheus_rule(rule: dict[str, Any]) -> dict[str, Any]:
    """Return the Prometheus rule that does what a Grafana rule says: its own question, waits, labels and texts."""
    known = {
        "alert": rule["title"],
        "expr": rule["data"][0]["model"]["expr"],
        "for": rule["for"],
        "labels": {name: text for name, text in rule["labels"].items() if name != "service"},
        "annotations": {
            name: text.replace("$values.query.Value", "$value")
            for name, text in rule["annotations"].items()
            if name not in {"impact", "triage"} and not name.startswith("__")
        },
    }
    # Grafana knows the panel by its uid and id; Prometheus' rule says the same as a path.
    known["annotations"]["dashboard_url"] = f"d/{rule['dashboardUid']}?viewPanel={rule['panelId']}"
    if "keepFiringFor" in rule:
        known["keep_firing_for"] = rule["keepFiringFor"]
    return known


def test_every_grafana_rule_passes_its_alerts_promtool_tests(files: Provisioned, tmp_path: Path) -> None:
    """All cases of the catalogue: fires, just below, surge, no data, first sample, recovers."""
    by_slug: dict[str, list[dict[str, Any]]] = {}
    for rule in files.rules():
        by_slug.setdefault(rule["labels"]["slug"], []).append(rule)
    tests = []
    for alert in ALERTS:
        rules = [as_prometheus_rule(rule) for rule in by_slug[alert.slug]]
        shipped = parse((ROOT / f"alerts/rules/{alert.slug}.yml").read_text(encoding="utf-8"))[0]["groups"]
        (tmp_path / f"{alert.slug}.yml").write_text(
            dump({"groups": [{**shipped[-1], "rules": rules}]}, "from Grafana's"), encoding="utf-8"
        )
        document, _ = parse((ROOT / f"alerts/tests/{alert.slug}.test.yml").read_text(encoding="utf-8"))
        document["rule_files"] = [
            str(tmp_path / f"{alert.slug}.yml")
            if name == f"../rules/{alert.slug}.yml"
            else str(ROOT / "alerts/tests" / name)
            for name in document["rule_files"]
        ]
        tests.append(tmp_path / f"{alert.slug}.test.yml")
        tests[-1].write_text(dump(document, "from Grafana's"), encoding="utf-8")
    done = run_tool("promtool", ["test", "rules", *tests])

    assert 0 == done.rc, done.output


def test_an_inhibited_alert_is_silent_in_grafana_too(files: Provisioned, tmp_path: Path) -> None:
    """Grafana has no inhibitions: its question leaves out what a firing alert of Prometheus makes superfluous."""
    rules = {rule["title"]: rule["data"][0]["model"]["expr"] for rule in files.rules()}
    pairs = [(a.alert, t.alert) for a in ALERTS for i in a.inhibits for t in ALERTS if t.slug == i.slug]
    assert pairs
    cases = []
    for number, (source, target) in enumerate(pairs):
        # The whole question but for the alert's own expression, which is put before `unless`.
        _, _, rest = rules[target].rpartition("\n)\nunless on ")
        assert source in rest
        wrapped = f"vector({number}) unless on {re.sub(r'[(][^)]*[)] ', '() ', rest, count=1)}"
        for state, samples in (("firing", []), ("pending", [{"value": number, "labels": "{}"}])):
            series = f'ALERTS{{alertname="{source}", alertstate="{state}"}}'
            cases.append(
                {
                    "interval": "5s",
                    "input_series": [{"series": series, "values": "1+0x12"}],
                    "promql_expr_test": [{"expr": wrapped, "eval_time": "30s", "exp_samples": samples}],
                }
            )
    path = tmp_path / "silenced.test.yml"
    path.write_text(dump({"rule_files": [], "tests": cases}, "x"), encoding="utf-8")
    done = run_tool("promtool", ["test", "rules", path])

    assert 0 == done.rc, done.output


def routed(files: Provisioned, folder: Path, labels: dict[str, str]) -> str:
    """Return the contact points to which the real amtool routes an alert by the converted policies."""
    config = folder / "alertmanager.yml"
    if not config.is_file():
        policies = expanded(files.entries("policies")[0], CHOSEN)
        converted = alertmanager_of(policies, files.entries("muteTimes"), files.entries("contactPoints"))
        config.write_text(dump(converted, "converted"), encoding="utf-8")
        done = run_tool("amtool", ["check-config", config])
        assert 0 == done.rc, done.output
    pairs = [f"{name}={text}" for name, text in labels.items()]
    done = run_tool("amtool", ["config", "routes", "test", f"--config.file={config}", *pairs])
    assert 0 == done.rc, done.output
    return done.output.splitlines()[-1].strip()


def test_every_alert_reaches_triage_and_the_people_of_its_channel(files: Provisioned, tmp_path: Path) -> None:
    """Pages page, tickets wait, data quality has its own channel, and the sign of life goes to the dead man alone."""
    people = {"page": "triage,slack", "ticket": "triage,email", "data_quality": "triage,feishu"}
    for rule in files.rules():
        labels = expanded(rule["labels"], CHOSEN) | {"alertname": rule["title"], "grafana_folder": "inferdeck alerts"}
        expected = "dead_man" if labels["slug"] == "watchdog" else people[labels["channel"]]
        assert (rule["title"], expected) == (rule["title"], routed(files, tmp_path, labels))


def test_an_alert_on_data_quality_never_pages_and_a_foreign_one_is_a_ticket(files: Provisioned, tmp_path: Path) -> None:
    """Row A14, whatever the severity says; what no branch knows is still heard."""
    labels = {"alertname": "LowQualityText", "slug": "low_quality_text", "channel": "data_quality"}

    assert "triage,feishu" == routed(files, tmp_path, labels | {"severity": "page"})
    assert "email" == routed(files, tmp_path, {"alertname": "SomebodyElses"})


def test_a_misspelt_contact_point_would_be_seen(files: Provisioned, tmp_path: Path) -> None:
    """The oracle is one: amtool refuses policies that name nobody."""
    policies = expanded(files.entries("policies")[0], CHOSEN | {"INFERDECK_NOTIFY_PAGE": "slak"})
    converted = alertmanager_of(policies, files.entries("muteTimes"), files.entries("contactPoints"))
    path = tmp_path / "wrong.yml"
    path.write_text(dump(converted, "converted"), encoding="utf-8")
    done = run_tool("amtool", ["check-config", path])

    assert 1 == done.rc
    assert 'undefined receiver "slak"' in done.output


DATA = {
    "receiver": "slack",
    "status": "firing",
    "alerts": [
        {
            "status": "firing",
            "labels": {"alertname": "EventLoopBlocked", "service": "sentiment"},
            "annotations": {
                "summary": "The event loop is blocked",
                "description": "Blocked for 20% of the last minute.",
                "impact": "All routes are slow.",
                "first_step": "Run triage.",
                "triage": "inferdeck triage --alert EventLoopBlocked",
                "runbook_url": "runbooks/EventLoopBlocked.md",
            },
            "startsAt": "2026-11-30T08:02:30Z",
            "endsAt": "0001-01-01T00:00:00Z",
        }
    ],
    "commonLabels": {"alertname": "EventLoopBlocked", "service": "sentiment"},
    "commonAnnotations": {},
    "groupLabels": {},
    "externalURL": "http://grafana.example",
}


def rendered(text: str, folder: Path) -> str:
    """Return what amtool makes of a text with our templates; Grafana's own address is a constant there."""
    panel = '{{ define "inferdeck.dashboard" }}PANEL{{ end }}'
    templates = re.sub(r'\{\{ define "inferdeck.dashboard" \}\}.*', panel, TEMPLATES["inferdeck"])
    (folder / "inferdeck.tmpl").write_text(templates, encoding="utf-8")
    (folder / "data.json").write_text(json.dumps(DATA), encoding="utf-8")
    glob, data = f"--template.glob={folder}/*.tmpl", f"--template.data={folder}/data.json"
    done = run_tool("amtool", ["template", "render", glob, f"--template.text={text}", data])
    assert 0 == done.rc, done.output
    return done.output


EVERY_LINE = (
    "EventLoopBlocked firing: The event loop is blocked",
    "Blocked for 20% of the last minute.",
    "Impact: All routes are slow.",
    "Since: 2026-11-30T08:02:30Z",
    "First: Run triage.",
    "Ask: inferdeck triage --alert EventLoopBlocked",
    "Dashboard: PANEL",
    "Runbook: http://runbooks.example/runbooks/EventLoopBlocked.md",
    "Traces: http://jaeger.example/search?service=sentiment&lookback=1h&limit=20",
)


@pytest.mark.parametrize("markdown", [False, True])
def test_a_message_says_it_all(tmp_path: Path, markdown: bool) -> None:
    """Summary, impact, since when, first step, the line to ask with, and every link, in this order."""
    said = rendered(expanded(message(markdown=markdown), CHOSEN), tmp_path)

    assert ("\n\n" if markdown else "\n").join(EVERY_LINE) == said.strip()
    assert "inferdeck: 1 firing: EventLoopBlocked (sentiment)" == rendered(title(), tmp_path).strip()


def test_feishus_body_holds_the_same_message(tmp_path: Path) -> None:
    """Its JSON is made by functions that only Grafana has; the text inside is rendered here, and the rest compared."""
    payload = expanded(feishu_payload(), CHOSEN)
    (inline,) = re.findall(r"tmpl\.Inline `([^`]*)` \.", payload)

    assert "{{ template" not in inline
    assert "\n".join(EVERY_LINE) == rendered(inline.replace(PANEL, "PANEL"), tmp_path).strip()
    head = (
        '(coll.Dict "title" (coll.Dict "tag" "plain_text" "content" (tmpl.Exec "inferdeck.title" .)) "template" "red")'
    )
    text = '(coll.Dict "tag" "markdown" "content" (tmpl.Inline `...` .))'
    card = f'(coll.Dict "header" {head} "elements" (coll.Slice {text}))'
    assert f'{{{{ coll.Dict "msg_type" "interactive" "card" {card} | data.ToJSON }}}}' == payload.replace(inline, "...")


def test_the_committed_files_are_the_generated_ones(files: Provisioned) -> None:
    """All of the above speaks about what is shipped."""
    assert read_provisioned(ROOT).documents == files.documents
