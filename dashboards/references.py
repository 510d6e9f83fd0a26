"""What can be said against the dashboards together with the files beside them: links, data sources, the catalogue."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from dashboards.build import panels_of
from dashboards.thresholds import AlertFacts

__all__ = ["dead_links", "lost_panels", "recorded_series", "twins", "unknown_sources"]

_RUNBOOKS = "${triage_url}/runbooks/"
_BOARDS = "/d/"


def twins(documents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield uids and titles that two dashboards share: either takes the right to write from Grafana's whole folder."""
    for key in ("uid", "title"):
        values = [str(document.get(key)) for document in documents]
        yield from (
            f"two dashboards have the {key} {value!r}" for value in sorted(set(values)) if values.count(value) > 1
        )


def dead_links(documents: Sequence[Mapping[str, Any]], root: Path) -> Iterator[str]:
    """Yield links to runbooks and dashboards that are not there.

    Args:
        documents: The dashboards.
        root: The checkout, with the runbooks.
    """
    uids = {document["uid"] for document in documents}
    for document in documents:
        for panel in panels_of(document):
            for link in panel.get("links", ()):
                where, url = f"{document['uid']}: {panel['title']!r} links to", str(link["url"])
                page = url.removeprefix(_RUNBOOKS)
                if page != url and not (root / "runbooks" / page).is_file():
                    yield f"{where} runbooks/{page}, which is not there"
                if url.startswith(_BOARDS) and url.removeprefix(_BOARDS).split("?")[0] not in uids:
                    yield f"{where} the dashboard {url}, which is not there"


def unknown_sources(documents: Sequence[Mapping[str, Any]], root: Path) -> Iterator[str]:
    """Yield data sources that a dashboard, or another data source, names and that are not provisioned.

    Args:
        documents: The dashboards.
        root: The checkout, with the provisioning.
    """
    known: set[str] = set()
    named: list[tuple[str, str]] = []
    for path in sorted((root / "dashboards/provisioning/datasources").glob("*.yaml")):
        for source in yaml.safe_load(path.read_text(encoding="utf-8"))["datasources"]:
            known.add(source["uid"])
            named += [(path.name, uid) for uid in _uids(source.get("jsonData", {}))]
    for document in documents:
        for variable in document["templating"]["list"]:
            if variable["type"] == "datasource":
                named.append((document["uid"], variable["current"]["value"]))
    yield from (f"{where}: the data source {uid!r} is not provisioned" for where, uid in named if uid not in known)


def _uids(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "datasourceUid":
                yield str(item)
            else:
                yield from _uids(item)
    elif isinstance(value, list):
        for item in value:
            yield from _uids(item)


def lost_panels(alerts: Mapping[str, AlertFacts], root: Path) -> Iterator[str]:
    """Yield panels that the catalogue names and panels.json does not hold.

    Args:
        alerts: What the catalogue says, by slug.
        root: The checkout.
    """
    known = json.loads((root / "dashboards/panels.json").read_text(encoding="utf-8"))
    for slug, facts in alerts.items():
        if facts.panel and facts.panel not in known:
            yield f"alerts/catalogue/{slug}.yaml leads to the panel {facts.panel}, which no dashboard has"


def recorded_series(root: Path) -> set[str]:
    """Return the names of the series that the shipped rules record.

    Args:
        root: The checkout, with the generated rules.
    """
    found: set[str] = set()
    for path in (root / "alerts" / "rules").glob("*.yml"):
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            found |= {rule["record"] for rule in group["rules"] if "record" in rule}
    return found
