"""Whether everything that Grafana is given has a uid of its own, over all files: links and later writes go by it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from inferdeck.checks import Check

__all__ = ["check_uids"]

_NAME = "grafana: uids over all files"


def check_uids(root: Path) -> Iterator[Check]:
    """Yield one finding for each uid that two things bear, or that there is none.

    Grafana keeps dashboards, rules, contact points and data sources apart; ours are held apart over all of them, since
    a reader meets them in addresses and exports without their kind.

    Args:
        root: The checkout.
    """
    places: dict[str, list[str]] = defaultdict(list)
    try:
        for uid, place in _uids(root):
            places[uid].append(place)
    except (OSError, ValueError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        yield Check(_NAME, "fail", f"cannot be read: {type(error).__name__}: {error}", "run `inferdeck build`")
        return
    twice = {uid: found for uid, found in sorted(places.items()) if len(found) > 1}
    if not twice:
        yield Check(_NAME, "ok", f"{len(places)} uids, each once")
    for uid, found in twice.items():
        yield Check(_NAME, "fail", f"{uid} is the uid of {' and of '.join(found)}", "give one of them another")


def _uids(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each uid with what bears it and where that is written."""
    for path in sorted((root / "dashboards" / "generated").glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        yield str(document["uid"]), f"a dashboard ({path.relative_to(root)})"
    for folder in ("dashboards/provisioning/datasources", "alerts/grafana/provisioning"):
        for path in sorted((root / folder).glob("*.y*ml")):
            document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
            yield from ((str(one["uid"]), f"{kind} ({path.relative_to(root)})") for kind, one in _bearers(document))


def _bearers(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from (("a data source", one) for one in document.get("datasources") or ())
    for group in document.get("groups") or ():
        yield from (("a rule", one) for one in group["rules"])
    for point in document.get("contactPoints") or ():
        yield from (("a contact point", one) for one in point["receivers"])
