"""Which Jaeger belongs to this stack: what is asked about traces, and where spans are sent."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from inferdeck.stack.state import read_state

__all__ = ["jaeger_url", "span_target"]

URL_VARIABLE = "INFERDECK_JAEGER_URL"
TARGET_VARIABLE = "INFERDECK_EXPORTER_OTLP_ENDPOINT"


def jaeger_url(state_dir: Path, given: str | None = None, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the address of the Jaeger to ask: as given, else `INFERDECK_JAEGER_URL`, else the running stack's.

    Args:
        state_dir: The stack's state folder.
        given: What the user said; "none" for no Jaeger at all.
        environ: Where the variable is looked up.
    """
    told = given or environ.get(URL_VARIABLE)
    if told:
        return None if told == "none" else told
    state = read_state(state_dir)
    live = [part.url for part in state.live_parts() if part.name == "jaeger"] if state else []
    return live[0] if live else None


def span_target(state_dir: Path, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return where spans are sent: `INFERDECK_EXPORTER_OTLP_ENDPOINT`, else the running stack's Jaeger."""
    if told := environ.get(TARGET_VARIABLE):
        return told
    state = read_state(state_dir)
    if state is None or not any(part.name == "jaeger" for part in state.live_parts()):
        return None
    try:
        config = json.loads((state_dir / "run" / "jaeger.json").read_text(encoding="utf-8"))
        return f"http://{config['receivers']['otlp']['protocols']['http']['endpoint']}"
    except (OSError, ValueError, KeyError, TypeError):
        return None
