"""Each check of Grafana's files finds what it is for: broken on purpose, one by one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from alerts.grafana.check import check_grafana, datasource_uids
from alerts.grafana.variables import DEFAULTS
from alerts.promtool import ToolMissingError, ToolResult
from alerts.yaml_text import dump, parse

ROOT = Path(__file__).resolve().parents[3]
FOLDER = "alerts/grafana/provisioning"
Change = Callable[[dict[str, Any]], object]


def fine(tool: str, arguments: object) -> ToolResult:
    """Stand for a tool that has nothing to say."""
    return ToolResult(0, f"{tool} {arguments}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout that holds Grafana's files and the panels alone."""
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    (tmp_path / "dashboards").mkdir()
    if (ROOT / "dashboards/panels.json").is_file():
        shutil.copy(ROOT / "dashboards/panels.json", tmp_path / "dashboards/panels.json")
    return tmp_path


def change(root: Path, name: str, how: Change) -> None:
    """Change one file."""
    path = root / FOLDER / f"{name}.yaml"
    document, _ = parse(path.read_text(encoding="utf-8"))
    how(document)
    path.write_text(dump(document, "changed"), encoding="utf-8")


def failures(root: Path, run: Callable[..., ToolResult] = fine) -> dict[str, str]:
    """Return what failed, by the check's name without its prefix."""
    found = check_grafana(root, run)
    return {one.name.removeprefix("grafana: "): one.detail for one in found if one.state == "fail"}


def first_rule(document: dict[str, Any]) -> dict[str, Any]:
    """Return the first rule of the rules' file."""
    rule: dict[str, Any] = document["groups"][0]["rules"][0]
    return rule


def second_title(document: dict[str, Any]) -> None:
    """Give two rules one title."""
    document["groups"][1]["rules"][0]["title"] = first_rule(document)["title"]


def settings(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the settings of a contact point."""
    (point,) = (point for point in document["contactPoints"] if point["name"] == name)
    found: dict[str, Any] = point["receivers"][0]["settings"]
    return found


def test_the_shipped_files_are_well(root: Path) -> None:
    """Nothing is found, also by the real tools where they are."""
    assert {} == failures(root)
    assert [] == [one for one in check_grafana(ROOT) if one.state == "fail"]


BROKEN: list[tuple[str, Change, str, str]] = [
    ("rules", lambda d: first_rule(d).update(keep_firing_for="1m"), "known keys", "groups[0].rules[0].keep_firing_for"),
    ("rules", lambda d: first_rule(d)["data"][0].update(refID="x"), "known keys", "groups[0].rules[0].data[0].refID"),
    ("rules", lambda d: d.update(apiVersion=2), "known keys", "apiVersion is 2"),
    ("policies", lambda d: d["policies"][0]["routes"][0].update(matcher=1), "known keys", "routes[0].matcher"),
    ("policies", lambda d: d["policies"][0].update(mute_time_intervals=[]), "known keys", "mute_time_intervals"),
    ("mute_timings", lambda d: d["muteTimes"][0]["time_intervals"][0].update(time=[]), "known keys", ".time"),
    ("rules", lambda d: first_rule(d).update(uid="x" * 41), "uids and titles", "no uid"),
    ("rules", lambda d: first_rule(d).update(uid="inferdeck-watchdog"), "uids and titles", "is there 2 times"),
    ("rules", second_title, "uids and titles", "2 rules are called"),
    ("rules", lambda d: d.update(deleteRules=[{"uid": "inferdeck-watchdog"}]), "uids and titles", "both written"),
    ("policies", lambda d: d["policies"].append(d["policies"][0]), "uids and titles", "2 policy trees"),
    ("contact_points", lambda d: settings(d, "slack").update(url="${SLACK}"), "variables", "SLACK has no default"),
    ("contact_points", lambda d: settings(d, "slack").update(text="$labels"), "variables", "a lone $"),
    ("rules", lambda d: first_rule(d)["annotations"].update(summary="${HOME}"), "variables", "some versions only"),
    ("policies", lambda d: d["policies"][0]["routes"][0].update(receiver="x"), "receivers and mute timings", "'x'"),
    (
        "policies",
        lambda d: d["policies"][0]["routes"][2].update(mute_time_intervals=["never"]),
        "receivers and mute timings",
        "'never'",
    ),
    (
        "contact_points",
        lambda d: d.update(contactPoints=[one for one in d["contactPoints"] if one["name"] != "feishu"]),
        "receivers and mute timings",
        "may be feishu, which is no contact point",
    ),
    ("contact_points", lambda d: settings(d, "slack").update(title='{{ template "x" . }}'), "templates", "x is used"),
    ("templates", lambda d: d["templates"].append(d["templates"][0]), "templates", "is defined 2 times"),
    (
        "rules",
        lambda d: first_rule(d).update(dashboardUid="inferdeck-none", panelId=999),
        "panels",
        "leads to panel 999 of inferdeck-none",
    ),
]


@pytest.mark.parametrize(("name", "how", "check", "said"), BROKEN, ids=[f"{b[2]}: {b[3]}"[:50] for b in BROKEN])
def test_a_mistake_is_found(root: Path, name: str, how: Change, check: str, said: str) -> None:
    """By the check that is for it, with what and where."""
    change(root, name, how)

    assert said in failures(root).get(check, "nothing found")


def test_a_data_source_must_be_provisioned(root: Path) -> None:
    """By the uid that the rules ask; without any provisioned one nothing can be said."""
    assert None is datasource_uids(root)
    folder = root / "dashboards/provisioning/datasources"
    folder.mkdir(parents=True)
    (folder / "x.yaml").write_text("apiVersion: 1\ndatasources: [{uid: inferdeck-prometheus}]\n")

    assert {} == failures(root)
    (folder / "x.yaml").write_text("apiVersion: 1\ndatasources: [{uid: prometheus}]\n")
    assert {"data sources": "inferdeck-prometheus is asked and not provisioned"} == failures(root)


def test_the_container_must_be_given_every_variable(root: Path) -> None:
    """With the same default in both places; an unset one is empty, and Grafana does not start."""
    given = {name: f"${{{name}:-{default}}}" for name, (default, _) in DEFAULTS.items()}
    path = root / "docker-compose.observability.yml"
    path.write_text(dump({"services": {"grafana": {"environment": given}}}, "x"))
    assert {} == failures(root)

    del given["INFERDECK_NOTIFY_PAGE"]
    path.write_text(dump({"services": {"grafana": {"environment": given | {"INFERDECK_SERVICE": ""}}}}, "x"))
    said = failures(root)["variables in the compose file"]
    assert "INFERDECK_NOTIFY_PAGE is not given" in said
    assert "INFERDECK_SERVICE has another default" in said


def test_what_the_tools_say_is_a_finding(root: Path) -> None:
    """A refusal fails, a missing tool is absent."""

    def refusing(tool: str, arguments: object) -> ToolResult:
        return ToolResult(1, f"{tool} says no\n")

    def missing(tool: str, arguments: object) -> ToolResult:
        raise ToolMissingError(tool)

    assert {"policies by amtool": "amtool says no", "questions by promtool": "promtool says no"} == (
        failures(root, refusing)
    )
    assert {} == failures(root, missing)


@pytest.mark.usefixtures("tools")
def test_a_broken_question_is_found_by_the_real_promtool(root: Path) -> None:
    """Grafana would only find out when it asks."""
    change(root, "rules", lambda d: first_rule(d)["data"][0]["model"].update(expr="sum by (x (up)"))
    (found,) = (one for one in check_grafana(root) if one.name == "grafana: questions by promtool")

    assert "fail" == found.state


def test_files_that_are_missing_or_no_yaml_are_a_finding(root: Path) -> None:
    """The rest cannot be judged then."""
    (root / FOLDER / "policies.yaml").write_text("policies: [\n")
    assert "policies.yaml: line" in failures(root)["alerting files"]

    shutil.rmtree(root / FOLDER)
    assert {"alerting files": "no rule"} == failures(root)


def test_no_variable_is_empty_by_default_but_the_token() -> None:
    """Grafana ends at its start when a contact point has no address."""
    assert {"INFERDECK_TRIAGE_TOKEN"} == {name for name, (default, _) in DEFAULTS.items() if not default}
