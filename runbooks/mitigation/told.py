"""What was done by itself, in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["said"]


def said(told: Mapping[str, Any]) -> str:
    """Return what was done, in one line."""
    if told.get("refused"):
        return f"not mitigated: {told['refused']}"
    parts = []
    for run in told["runs"]:
        undo = f" (undo: {run['undo'].get('detail', '')})" if run.get("undo") else ""
        parts.append(f"{run.get('id')} {run.get('outcome')}: {run.get('detail')}{undo}")
    return "; ".join(parts) or "nothing was done"
