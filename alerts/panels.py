"""The panels that alerts lead to, as committed data: `alerts` imports nothing of `dashboards`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["PANELS", "panel_path", "read_panels"]

PANELS: Final = "dashboards/panels.json"


def read_panels(root: Path) -> dict[str, dict[str, Any]]:
    """Return the panels by `<dashboard>/<panel>`; none where there are no dashboards.

    Args:
        root: The checkout.
    """
    path = root / PANELS
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def panel_path(panel: Mapping[str, Any]) -> str:
    """Return where a panel is, below Grafana's address; the same form as in Grafana's own notifications.

    Args:
        panel: Uid of its dashboard and its id.
    """
    return f"d/{panel['uid']}?viewPanel={panel['id']}"
