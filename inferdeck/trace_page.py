"""`inferdeck trace --html`: the waterfall as one file that opens anywhere; no script, nothing loaded from elsewhere."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Any, Final

from inferdeck.waterfall import span_depths, spell_seconds

__all__ = ["render_page", "write_page"]

_STYLE: Final = """
body{font:14px system-ui,sans-serif;margin:2em auto;max-width:80em;padding:0 1em;color:#222;background:#fff}
h2{font-size:1em;margin:2em 0 .2em;font-family:ui-monospace,monospace;overflow-wrap:anywhere}
p{margin:.2em 0}table{border-collapse:collapse;width:100%;margin:.5em 0}
td{padding:.15em .5em;border-top:1px solid #ddd;vertical-align:top}
td.name{white-space:nowrap;font-family:ui-monospace,monospace}td.line{width:45%}
td.took{text-align:right;white-space:nowrap}
td.more{color:#555;font-size:.85em;overflow-wrap:anywhere}
.bar{height:1em;background:#4a80bd;min-width:2px;border-radius:2px}
.slow .bar{background:#c4452f}.slow .name{font-weight:600}
.status{padding:0 .4em;border-radius:3px;background:#ddd}
.error,.unfinished{background:#f3c2ba}.degraded{background:#f5e0a8}
"""


def render_page(payload: dict[str, Any]) -> str:
    """Return the page.

    Args:
        payload: In the shape of `trace`. Session ids stand in it in full: the page is as private as the rows.
    """
    traces = payload["traces"]
    body = "".join(_request(trace) for trace in traces) or "<p>Nothing was found.</p>"
    asked = ", ".join(payload["sources"])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>inferdeck trace: {len(traces)} found</title><style>{_STYLE}</style></head><body>"
        f"<p>{len(traces)} found in {_text(asked)}, {_text(spell_seconds(payload['lookup_s']))}.</p>"
        f"{body}</body></html>\n"
    )


def write_page(path: Path, payload: dict[str, Any]) -> None:
    """Write the page, readable by its owner alone.

    Raises:
        OSError: If it cannot be written.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        # one that was there keeps its rights otherwise
        os.fchmod(file.fileno(), 0o600)
        file.write(render_page(payload))


def _text(value: object) -> str:
    return html.escape(str(value))


def _request(trace: dict[str, Any]) -> str:
    said = []
    if trace["status"] == "unfinished":
        said.append(f"never ended; last stage: {trace['last_stage'] or 'none'}")
    if trace["slow_stage"]:
        word = "most of it in" if trace.get("usual") else "slow:"
        said.append(f"{word} {trace['slow_stage']}{': ' if trace['why'] else ''}{trace['why']}")
    if trace.get("hint"):
        said.append(f"read on: {trace['hint']}")
    status = trace["status"]
    return (
        f"<h2>session {_text(trace['session_id'])}, trace {_text(trace['trace_id'])}</h2>"
        f'<p><span class="status {_text(status)}">{_text(status)}</span> {_text(spell_seconds(trace["duration_s"]))}, '
        f"{_text(trace['started'])}, {_text(trace.get('service', ''))}</p>"
        + "".join(f"<p>{_text(one)}</p>" for one in said)
        + f"<table>{_rows(trace)}</table>"
    )


def _rows(trace: dict[str, Any]) -> str:
    spans = trace["spans"]
    total = max([trace["duration_s"], *(span["start_s"] + span["duration_s"] for span in spans)]) or 1.0
    rows = []
    for span, depth in zip(spans, span_depths(spans), strict=True):
        slow = ' class="slow"' if span["name"] == trace["slow_stage"] and not trace.get("usual") else ""
        left = 100 * min(1.0, max(0.0, span["start_s"] / total))
        width = min(100 * span["duration_s"] / total, 100 - left)
        more = ", ".join(f"{key} {value}" for key, value in sorted(span["attributes"].items()))
        rows.append(
            f'<tr{slow}><td class="name" style="padding-left:{depth + 0.5:.1f}em">{_text(span["name"])}</td>'
            f'<td class="line"><div class="bar" style="margin-left:{left:.2f}%;width:{width:.2f}%"></div></td>'
            f'<td class="took">{_text(spell_seconds(span["duration_s"]))}</td><td class="more">{_text(more)}</td></tr>'
        )
    return "".join(rows)
