"""The page of an investigation: one file that opens anywhere, no script, nothing loaded from elsewhere."""

from __future__ import annotations

import html
import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["render_page"]

_STYLE: Final = """
body{font:14px system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.3em}h2{font-size:1.05em;margin:1.6em 0 .3em}table{border-collapse:collapse;margin:.4em 0}
td,th{padding:.2em .8em .2em 0;border-top:1px solid #ddd;text-align:left;vertical-align:top}
th{font-weight:600;border:0}svg{max-width:100%;height:auto}.note{color:#555}
"""

_NOTE: Final = (
    "Effects are distances of two distributions, 0 to 1 (Kolmogorov-Smirnov); p is corrected for all slices, features "
    "and times that were looked at."
)


def render_page(payload: Mapping[str, Any]) -> str:
    """Return the page.

    Args:
        payload: In the shape of `investigate`; it holds no texts and no ids of sessions.
    """
    verdict = payload["verdict"]
    changes = [(one["at"], one["what"], one["value"], f"{one['share']:.0%}") for one in payload["changes"]]
    parts = [
        f"<h1>{_text(verdict['kind'])}: {_text(verdict['summary'])}</h1>",
        _when(payload),
        _plot(payload),
        "<h2>Slices</h2>",
        _table(("slice", "feature", "effect", "explains", "share", "p"), [_slice(one) for one in payload["slices"]]),
        *([] if not payload["mix"] else ["<h2>Shares that moved</h2>", _mix(payload["mix"])]),
        "<h2>First seen about then</h2>",
        _table(("when", "what", "value", "share since"), changes),
        "<h2>Features of all traffic</h2>",
        _table(
            ("feature", "requests", "from the training", "within the window"),
            [
                (one["feature"], one["records"], _figure(one["from_training"]), _figure(one["within_window"]))
                for one in payload["features"]
            ],
        ),
        f'<p class="note">{_NOTE} Training: {_text(payload["reference"])}.</p>',
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>inferdeck investigate: {_text(verdict['kind'])}</title><style>{_STYLE}</style></head><body>"
        f"{''.join(parts)}</body></html>\n"
    )


def _when(payload: Mapping[str, Any]) -> str:
    since = payload["verdict"]["since"]
    begun = f"Since {_text(since)}. " if since else ""
    span = f"{_text(payload['from'])} to {_text(payload['to'])}" if payload["records"] else "none"
    return f"<p>{begun}{payload['records']} answered requests, {span}.</p>"


def _slice(one: Mapping[str, Any]) -> tuple[Any, ...]:
    place = "all traffic" if one["dimension"] == "all" else f"{one['dimension']} {one['value']}"
    return (
        place,
        one["feature"],
        _figure(one["effect"]),
        f"{one['explained']:.0%}",
        f"{one['share']:.0%}",
        f"{one['p']:.1e}",
    )


def _mix(mix: Mapping[str, Any]) -> str:
    rows = [(word, f"{old:.0%}", f"{new:.0%}") for word, (old, new) in mix["moved"].items()]
    return _table((str(mix["dimension"]), "before", "after"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    if not rows:
        return '<p class="note">none</p>'
    titles = "".join(f"<th>{_text(one)}</th>" for one in head)
    body = "".join("<tr>" + "".join(f"<td>{_text(one)}</td>" for one in row) + "</tr>" for row in rows)
    return f"<table><tr>{titles}</tr>{body}</table>"


def _plot(payload: Mapping[str, Any]) -> str:
    """Return the named feature's course as SVG; without matplotlib it is said in its place."""
    course = payload["course"]
    if course is None:
        return ""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return "<p class=\"note\">no plot: pip install 'inferdeck[investigate]'</p>"
    there = [(at, bands) for at, bands in zip(course["starts_unix"], course["quantiles"], strict=True) if bands]
    if not there:
        return ""
    end = payload["to_unix"]
    times = [(at - end) / 3600 for at, _bands in there]
    low, middle, high = zip(*(bands for _at, bands in there), strict=True)
    figure = Figure(figsize=(9, 3), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(times, low, high, color="#4a80bd", alpha=0.25, linewidth=0, label="P10 to P90")
    axes.plot(times, middle, color="#4a80bd", label="median")
    if payload["verdict"]["since_unix"] is not None:
        axes.axvline((payload["verdict"]["since_unix"] - end) / 3600, color="#c4452f", label="since")
    axes.set_xlabel(f"hours before {payload['to']}")
    axes.set_ylabel(course["feature"])
    axes.legend(fontsize=8)
    drawn = io.StringIO()
    # Without a date and with fixed ids, the same result gives the same page.
    with rc_context({"svg.hashsalt": "inferdeck"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()[drawn.getvalue().index("<svg") :]


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def _text(value: object) -> str:
    return html.escape("unknown" if value is None else str(value))
