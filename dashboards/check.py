"""All that is judged about the dashboards and their files, each with the mend; nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dashboards.files import ROOT, differences
from dashboards.lint import lint
from dashboards.references import dead_links, lost_panels, recorded_series, twins, unknown_sources
from dashboards.thresholds import load_alerts

__all__ = ["Finding", "check"]

State = Literal["ok", "fail"]


@dataclass(frozen=True)
class Finding:
    """The outcome of one check, with the mend when it failed."""

    name: str
    state: State
    detail: str
    mend: str = ""


def check(root: Path = ROOT) -> list[Finding]:
    """Return the outcome of every check of the dashboards, in a fixed order.

    Args:
        root: The checkout.
    """
    return [*_generated(root), *_committed(root)]


def _generated(root: Path) -> Iterator[Finding]:
    name = "dashboards: generated files"
    try:
        changed = [line[4:].strip() for line in differences(root).splitlines() if line.startswith("--- ")]
    except (KeyError, ValueError) as error:
        what = f"a panel draws the threshold {error}, which the catalogue does not hold"
        detail = what if isinstance(error, KeyError) else str(error)
        yield Finding(name, "fail", detail, "mend the board in dashboards/boards, or the catalogue")
        return
    if changed:
        yield Finding(name, "fail", f"not current: {', '.join(changed)}", "run `inferdeck build` and commit")
    else:
        yield Finding(name, "ok", "current")


def _committed(root: Path) -> Iterator[Finding]:
    try:
        documents = _documents(root)
        alerts = load_alerts(root / "alerts" / "catalogue")
        recorded = recorded_series(root)
    except (OSError, ValueError) as error:
        yield Finding("dashboards: files", "fail", f"{error}", "run `inferdeck build`")
        return
    panels = sum(len(document["panels"]) for document in documents)
    looks = (
        (
            "dashboards: lint",
            [what for document in documents for what in lint(document, recorded)],
            f"{len(documents)} dashboards with {panels} panels: places, units, texts, variables, queries",
            "mend the board in dashboards/boards, then run `inferdeck build`",
        ),
        ("dashboards: uids and titles", list(twins(documents)), "each once", "name one of them otherwise"),
        (
            "dashboards: links",
            list(dead_links(documents, root)),
            "every runbook and dashboard is there",
            "write the page, or take the alert off the panel",
        ),
        (
            "dashboards: data sources",
            list(unknown_sources(documents, root)),
            "all of them are provisioned",
            "mend dashboards/provisioning.py",
        ),
        (
            "dashboards: panels of alerts",
            list(lost_panels(alerts, root)),
            "every alert leads to a panel that is there",
            "mend `panel:` in the catalogue file, or add the panel to a board",
        ),
    )
    for name, wrong, well, mend in looks:
        if wrong:
            yield from (Finding(name, "fail", what, mend) for what in wrong)
        else:
            yield Finding(name, "ok", well)


def _documents(root: Path) -> list[Mapping[str, Any]]:
    paths = sorted((root / "dashboards" / "generated").glob("*.json"))
    if not paths:
        raise ValueError("there are no generated dashboards")
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]
