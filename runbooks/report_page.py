"""A triage result as one page that opens anywhere: no script, nothing loaded from elsewhere, everything escaped."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

__all__ = ["render_list", "render_page"]

WIDTH, HEIGHT = 640, 96
_MARKS: Final[Mapping[bool | None, tuple[str, str]]] = {
    True: ("holds", "yes"),
    False: ("fails", "no"),
    None: ("unseen", "cannot see"),
}
_STYLE: Final = """
body{font:14px system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.4em;margin:0}h2{font-size:1.05em;margin:1.6em 0 .3em}p{margin:.25em 0}
table{border-collapse:collapse;width:100%}
td,th{padding:.2em .5em;border-top:1px solid #ddd;vertical-align:top;text-align:left}
td,code,pre{overflow-wrap:anywhere}code,pre{font:13px ui-monospace,monospace;background:#f4f4f4;padding:.1em .3em}
pre{white-space:pre-wrap;padding:.5em}.verdict{border-left:.4em solid #c4452f;padding-left:.8em}
.abstained{border-color:#999}.quiet{color:#666}
.holds{color:#b03020;font-weight:600}.fails{color:#2f7d4f}.unseen{color:#888}
svg{display:block;background:#fafafa;border:1px solid #ddd;width:100%;max-width:64em}
figure{margin:.6em 0}figcaption{color:#444}
"""


def render_page(report: Mapping[str, Any]) -> str:
    """Return the page of a result.

    Args:
        report: In the shape of the triage verb, as kept: session ids are taken out before.
    """
    title = "no cause named" if report["abstained"] else f"{report['verdict']['slug']}"
    parts = (
        _verdict(report),
        _timeline(report),
        _impact(report["impact"], report["differs"]),
        _plots(report.get("plots") or (), report["window"]),
        _evidence(report),
        _candidates(report["candidates"]),
        _unusual(report["unusual"]),
        _missing(report),
        _next(report),
    )
    return _document(f"inferdeck triage: {title}", "".join("".join(part) for part in parts))


def render_list(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return a page that lists kept reports, newest first, each with a link.

    Args:
        reports: As the store's overview has them.
    """
    rows = "".join(
        f'<tr><td><a href="reports/{_text(one["id"])}">{_text(one["id"])}</a></td>'
        f"<td>{_text(one.get('alert') or '')}</td><td>{_text(_named(one))}</td></tr>"
        for one in reports
    )
    body = f"<h1>Reports</h1><table><tr><th>report</th><th>alert</th><th>named</th></tr>{rows}</table>"
    return _document("inferdeck reports", body if reports else "<h1>Reports</h1><p>None is kept.</p>")


def _document(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>\n"
    )


def _text(value: object) -> str:
    return html.escape(str(value))


def _named(report: Mapping[str, Any]) -> str:
    verdict = report.get("verdict") or {}
    return "no cause named" if report.get("abstained") else f"{verdict.get('slug')} ({verdict.get('confidence')})"


def _verdict(report: Mapping[str, Any]) -> Iterator[str]:
    verdict = report["verdict"]
    if report["abstained"]:
        yield '<div class="verdict abstained"><h1>No cause named</h1>'
    else:
        sure = f"layer {verdict['layer']}, confidence {verdict['confidence']:.2f}"
        yield f'<div class="verdict"><h1>{_text(verdict["slug"])}</h1><p class="quiet">{_text(sure)}</p>'
    yield f"<p>{_text(verdict['summary'])}</p></div>"


def _timeline(report: Mapping[str, Any]) -> Iterator[str]:
    window = report["window"]
    moments = [
        (window["from"], "looked at from here"),
        (window["onset"], f"began, seen in: {window.get('signal') or 'several signals'}"),
        (report["impact"].get("stopped_since"), "no request since"),
        (window.get("ended"), "last seen" if report["impact"].get("still_going") else "over"),
        (window["to"], f"looked at until here{', alert ' + report['alert'] if report['alert'] else ''}"),
        (report.get("started"), "triage was asked"),
    ]
    moments += [(one.get("at"), f"told by {one['channel']}: {one['result']}") for one in report.get("follow_ups") or ()]
    yield "<h2>Timeline</h2><table>"
    for at, what in sorted(((at, what) for at, what in moments if at), key=lambda one: str(one[0])):
        yield f"<tr><td><code>{_text(at)}</code></td><td>{_text(what)}</td></tr>"
    yield "</table>"


def _impact(impact: Mapping[str, Any], differs: Mapping[str, Any]) -> Iterator[str]:
    yield "<h2>Impact</h2>"
    if impact["requests"] is None:
        yield "<p>Not known: there are no rows.</p>"
    else:
        sessions = "" if impact["sessions"] is None else f", {impact['bad_sessions']} of {impact['sessions']} sessions"
        yield f"<p>{impact['bad_requests'] or 0} of {impact['requests']} requests bad{_text(sessions)}</p>"
    if impact["unfinished_requests"]:
        yield f"<p>{_text(impact['unfinished_requests'])} started and never ended</p>"
    tails = {name: one for name, one in (impact["p95_seconds"] or {}).items() if one["now"] is not None}
    if tails:
        yield "<table><tr><th>P95 by length</th><th>now</th><th>before</th></tr>"
        for name, one in tails.items():
            yield f"<tr><td>{_text(name)}</td><td>{_seconds(one['now'])}</td><td>{_seconds(one['before'])}</td></tr>"
        yield "</table>"
    if differs["findings"]:
        yield f"<p>What differs about the bad requests: {_text(differs['summary'])}</p>"


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def _plots(plots: Sequence[Mapping[str, Any]], window: Mapping[str, Any]) -> Iterator[str]:
    if plots:
        yield '<h2>Before and after</h2><p class="quiet">The line marks where it began.</p>'
    for one in plots:
        values = [value for value in one["values"] if value is not None]
        if not values:
            continue
        span = f"{min(values):.3g} to {max(values):.3g}{' ' + one['unit'] if one['unit'] else ''}"
        yield f"<figure>{_line(one, window)}<figcaption>{_text(one['signal'])} ({_text(span)})</figcaption></figure>"


def _line(plot: Mapping[str, Any], window: Mapping[str, Any]) -> str:
    """Return the drawing of a plot: a step for each bin, gaps where nothing is known, the onset as a line."""
    values = plot["values"]
    top = max([value for value in values if value is not None] + [0.0])
    low = min([value for value in values if value is not None] + [0.0])
    high = (top - low) or 1.0
    step = WIDTH / max(1, len(values))
    path, drawn = [], False
    for at, value in enumerate(values):
        if value is None:
            drawn = False
            continue
        height = HEIGHT - 6 - (HEIGHT - 12) * (value - low) / high
        path.append(f"{'L' if drawn else 'M'}{at * step:.1f} {height:.1f}L{(at + 1) * step:.1f} {height:.1f}")
        drawn = True
    onset = ""
    if window["onset"]:
        seconds = (datetime.fromisoformat(window["onset"]) - datetime.fromisoformat(plot["from"])).total_seconds()
        place = WIDTH * seconds / (plot["bin_s"] * max(1, len(values)))
        if 0 <= place <= WIDTH:
            onset = f'<line x1="{place:.1f}" x2="{place:.1f}" y1="0" y2="{HEIGHT}" stroke="#c4452f"/>'
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{_text(plot["signal"])}">{onset}'
        f'<path d="{"".join(path)}" fill="none" stroke="#2b5f9e" stroke-width="1.5"/></svg>'
    )


def _evidence(report: Mapping[str, Any]) -> Iterator[str]:
    slug = report["verdict"]["slug"] or next((one["slug"] for one in report["candidates"]), "")
    shown = [one for one in report["evidence"] if slug in one.get("asked_by", ())]
    if not shown:
        return
    yield f"<h2>Evidence for {_text(slug)}</h2><table>"
    yield "<tr><th>holds</th><th>step</th><th>found</th><th>expected</th><th>from</th></tr>"
    for one in shown:
        kind, word = _MARKS[one["holds"]]
        yield (
            f'<tr><td class="{kind}">{word}</td><td><code>{_text(one["step"])}</code></td>'
            f"<td>{_text(one['detail'])}</td><td>{_text(one['expected'])}</td>"
            f"<td>{_text(one['source'])}: <code>{_text(one['query'])}</code></td></tr>"
        )
    yield "</table>"


def _candidates(candidates: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    rest = candidates[1:4]
    if rest:
        yield "<h2>Other causes that were weighed</h2><table>"
    for one in rest:
        why = f"a consequence of {one['explained_by']}" if one["explained_by"] else (one["reasons"] or [""])[0]
        yield f"<tr><td>{_text(one['slug'])}</td><td>{one['score']:.2f}</td><td>{_text(why)}</td></tr>"
    if rest:
        yield "</table>"


def _unusual(unusual: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if unusual:
        yield "<h2>Most unusual signals</h2><table><tr><th>signal</th><th>layer</th><th>before</th><th>now</th></tr>"
        for one in unusual:
            figures = f"<td>{one['before']:.4g}</td><td>{one['now']:.4g}</td>"
            yield f"<tr><td>{_text(one['signal'])}</td><td>{_text(one['layer'])}</td>{figures}</tr>"
        yield "</table>"


def _missing(report: Mapping[str, Any]) -> Iterator[str]:
    if report["missing"]:
        yield "<h2>What could not be looked at</h2>"
        for one in report["missing"]:
            yield f"<p>{_text(one['source'])}: {_text(one['reason'])}; {_text(one['cost'])}</p>"


def _next(report: Mapping[str, Any]) -> Iterator[str]:
    yield "<h2>Next</h2>"
    if report["runbook"]:
        yield f"<p>Read on: <code>{_text(report['runbook'])}</code></p>"
    for one in report["mitigations"]:
        yield f'<pre>{_text(one["do"])}</pre><p class="quiet">undo: {_text(one["undo"])}</p>'
    if report["traces"]:
        yield "<p>The worst requests:</p>"
        yield "".join(f"<pre>inferdeck trace --trace {_text(one)}</pre>" for one in report["traces"][:5])
    if report.get("report"):
        yield f'<p class="quiet">kept as {_text(report["report"])}</p>'
