"""Grafana's alerting files as they lie on disk, read by a reader that knows every key Grafana knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from alerts.grafana.files import FOLDER_OF_FILES
from alerts.yaml_text import YamlError, parse

__all__ = ["FILE_KINDS", "Provisioned", "read_provisioned", "unknown_keys"]

# Kind of entry -> keys that Grafana 10 to 13 reads there; it drops any other without a word.
FILE_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "groups": frozenset({"orgId", "name", "folder", "interval", "rules"}),
    "rules": frozenset(
        {
            "uid", "title", "condition", "data", "dashboardUid", "panelId", "noDataState", "execErrState", "for",
            "keepFiringFor", "missing_series_evals_to_resolve", "annotations", "labels", "isPaused",
            "notification_settings", "record",
        }
    ),
    "data": frozenset({"refId", "queryType", "relativeTimeRange", "datasourceUid", "model"}),
    "deleteRules": frozenset({"orgId", "uid"}),
    "contactPoints": frozenset({"orgId", "name", "receivers"}),
    "receivers": frozenset({"uid", "type", "settings", "disableResolveMessage"}),
    "policies": frozenset(
        {"orgId", "receiver", "group_by", "group_wait", "group_interval", "repeat_interval", "routes"}
    ),
    "routes": frozenset(
        {
            "receiver", "object_matchers", "matchers", "continue", "group_by", "group_wait", "group_interval",
            "repeat_interval", "mute_time_intervals", "active_time_intervals", "routes",
        }
    ),
    "muteTimes": frozenset({"orgId", "name", "time_intervals"}),
    "time_intervals": frozenset({"times", "weekdays", "days_of_month", "months", "years", "location"}),
    "times": frozenset({"start_time", "end_time"}),
    "templates": frozenset({"orgId", "name", "template"}),
}  # fmt: skip
_TOP: Final = frozenset(
    {
        "apiVersion", "groups", "deleteRules", "contactPoints", "deleteContactPoints", "policies", "resetPolicies",
        "muteTimes", "deleteMuteTimes", "templates", "deleteTemplates",
    }
)  # fmt: skip


class Provisioned:
    """All entries of all files, by kind, each with where it lies.

    Args:
        documents: Document by the file's path below the checkout.
    """

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self.documents = documents

    def entries(self, kind: str) -> list[dict[str, Any]]:
        """Return the entries of one top-level kind, of all files."""
        return [entry for document in self.documents.values() for entry in document.get(kind, [])]

    def rules(self) -> list[dict[str, Any]]:
        """Return all rules of all groups."""
        return [rule for group in self.entries("groups") for rule in group["rules"]]


def read_provisioned(root: Path) -> Provisioned:
    """Return what Grafana would be given.

    Args:
        root: The checkout.

    Raises:
        YamlError: With the file, for one that cannot be read.
    """
    documents = {}
    for path in sorted((root / FOLDER_OF_FILES).glob("*.yaml")):
        try:
            document, _ = parse(path.read_text(encoding="utf-8"))
        except YamlError as error:
            raise YamlError(f"{path.name}: {error}") from error
        if not isinstance(document, dict):
            raise YamlError(f"{path.name}: no mapping")
        documents[str(path.relative_to(root))] = document
    return Provisioned(documents)


def unknown_keys(provisioned: Provisioned) -> list[str]:
    """Return a sentence for each key that Grafana would drop.

    Args:
        provisioned: The files.
    """
    wrong = []
    for name, document in provisioned.documents.items():
        if document.get("apiVersion") != 1:
            wrong.append(f"{name}: apiVersion is {document.get('apiVersion')!r}, not 1")
        wrong += [f"{name}: {key}" for key in sorted(document.keys() - _TOP)]
        for key, entries in document.items():
            if key in FILE_KINDS:
                wrong += [f"{name}: {where}" for where in _unknown(key, entries)]
    return wrong


def _unknown(kind: str, entries: list[dict[str, Any]]) -> Iterator[str]:
    for index, entry in enumerate(entries):
        where = f"{kind}[{index}]"
        yield from (f"{where}.{key}" for key in sorted(entry.keys() - FILE_KINDS[kind]))
        for key, below in entry.items():
            if key in FILE_KINDS and isinstance(below, list):
                yield from (f"{where}.{found}" for found in _unknown(key, below))
