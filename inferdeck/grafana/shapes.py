"""From the files that Grafana reads to what its HTTP interface takes: the same things under other names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from alerts.grafana.convert import expanded
from alerts.grafana.reading import Provisioned

__all__ = ["ALERT_FOLDER", "DASHBOARD_FOLDER", "contact_points", "dashboards", "policies", "rule_groups"]

# Folders by uid and title. Files cannot give the alerts' folder a uid; here one is needed, and kept.
ALERT_FOLDER: Final = ("inferdeck-alerts", "inferdeck alerts")
DASHBOARD_FOLDER: Final = ("inferdeck", "inferdeck")


def rule_groups(files: Provisioned, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the groups of rules as `PUT /v1/provisioning/folder/<uid>/rule-groups/<group>` takes them.

    Args:
        files: The alerting files.
        environ: The values of their variables.
    """
    return [
        {
            "title": group["name"],
            "folderUid": ALERT_FOLDER[0],
            "interval": _seconds(group["interval"]),
            "rules": [_rule(rule, group["name"], environ) for rule in group["rules"]],
        }
        for group in files.entries("groups")
    ]


def _rule(rule: Mapping[str, Any], group: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return one rule; a link to its panel is there in its annotations alone."""
    same = ("uid", "title", "condition", "data", "noDataState", "execErrState", "for", "annotations", "isPaused")
    found = {key: rule[key] for key in same} | {
        "orgID": 1,
        "folderUID": ALERT_FOLDER[0],
        "ruleGroup": group,
        "labels": expanded(rule["labels"], environ),
        "missingSeriesEvalsToResolve": rule["missing_series_evals_to_resolve"],
    }
    if "keepFiringFor" in rule:
        found["keep_firing_for"] = rule["keepFiringFor"]
    return found


def _seconds(text: str) -> int:
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


def contact_points(files: Provisioned, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the contact points, flat: one entry for each way out.

    Args:
        files: The alerting files.
        environ: The values of their variables.
    """
    return [
        {
            "uid": receiver["uid"],
            "name": point["name"],
            "type": receiver["type"],
            "settings": expanded(receiver["settings"], environ),
            "disableResolveMessage": receiver["disableResolveMessage"],
        }
        for point in files.entries("contactPoints")
        for receiver in point["receivers"]
    ]


def policies(files: Provisioned, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the policy tree.

    Args:
        files: The alerting files.
        environ: The values of their variables.
    """
    (tree,) = files.entries("policies")
    return {key: value for key, value in dict(expanded(tree, environ)).items() if key != "orgId"}


def dashboards(root: Path) -> dict[str, dict[str, Any]]:
    """Return the generated dashboards by uid.

    Args:
        root: The checkout.
    """
    found = [json.loads(path.read_bytes()) for path in sorted((root / "dashboards/generated").glob("*.json"))]
    return {board["uid"]: board for board in found}
