"""What boards take from the alert catalogue: names of alerts and their thresholds, read from its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

__all__ = ["CATALOGUE", "AlertFacts", "load_alerts"]

# Two dozen files with their tests: ten times as fast where the library was built with its C part.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Read as data: dashboards may not import alerts (docs/architecture.md), as alerts read panels.json alone.
CATALOGUE: Final = Path(__file__).resolve().parent.parent / "alerts" / "catalogue"


@dataclass(frozen=True)
class AlertFacts:
    """What panels say about an alert.

    Attributes:
        name: Its name, which is also its runbook's.
        panel: Key of the panel that it leads to; empty when it leads to none.
        thresholds: By name.
    """

    name: str
    panel: str
    thresholds: Mapping[str, float]


def load_alerts(folder: Path = CATALOGUE) -> dict[str, AlertFacts]:
    """Return what the catalogue says, by slug; a file that is broken is told by the catalogue's own check.

    Args:
        folder: The catalogue's files.

    Raises:
        ValueError: For a file that holds no alert.
    """
    found = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            entry = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506  # a safe one, in C
            slug, name = str(entry["slug"]), str(entry["alert"])
            thresholds = {str(key): float(value["value"]) for key, value in (entry.get("thresholds") or {}).items()}
        except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
            why = " ".join(str(error).split())[:200]
            raise ValueError(f"alerts/catalogue/{path.name} holds no alert: {why}") from error
        found[slug] = AlertFacts(name, str(entry.get("panel") or ""), thresholds)
    return found
