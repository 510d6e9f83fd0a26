"""Draws a request as a waterfall: bars by time, the slow stage marked, why, and where to read on."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

__all__ = ["bar", "show_trace", "show_traces", "span_depths", "spell_seconds"]

BAR_CELLS = 32
# shown beside a bar, in this order, when a span carries them; the JSON has all
NOTABLE = (
    "http.response.status_code",
    "verdict",
    "sharpness",
    "queue_wait_ns",
    "input_length",
    "cleaned_length",
    "tokens",
    "seq_len",
    "batch_size",
    "padding_ratio",
    "truncated",
    "model_version",
    "pool_wait_ns",
    "error",
    "because",
    "confidence",
    "label",
    "bytes",
)
COLOURS = {"ok": "green", "degraded": "yellow", "error": "red", "unfinished": "magenta"}


def spell_seconds(seconds: float) -> str:
    """Return a duration for people: 850 us, 12.3 ms, 1.42 s."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.2f} s"


def bar(start_s: float, duration_s: float, total_s: float, cells: int = BAR_CELLS) -> str:
    """Return a bar of *cells* characters, at least one of them full.

    Args:
        start_s: Start after the request's start, in seconds.
        duration_s: Length in seconds.
        total_s: What the whole width stands for, in seconds.
        cells: Width.
    """
    if total_s <= 0:
        return "#".ljust(cells)
    # shares first: a quotient may be infinite where the total is next to nothing
    first = min(cells - 1, int(min(1.0, max(0.0, start_s / total_s)) * cells))
    length = max(1, min(cells - first, round(min(1.0, duration_s / total_s) * cells)))
    return (" " * first + "#" * length).ljust(cells)


def span_depths(spans: list[dict[str, Any]]) -> list[int]:
    """Return how deep each span hangs below the root, following parents by name; a broken chain ends at the root."""
    parents = {span["name"]: span["parent"] for span in spans}
    depths = []
    for span in spans:
        # spans are data of other programs: a cycle must not hang the terminal
        depth, name, seen = 0, span["parent"], {span["name"]}
        while name and name in parents and name not in seen:
            seen.add(name)
            depth, name = depth + 1, parents[name]
        depths.append(depth)
    return depths


def _notable(attributes: dict[str, Any]) -> str:
    parts = []
    for key in NOTABLE:
        value = attributes.get(key, attributes.get(key.removesuffix("_ns")))
        if value in {None, ""} or (isinstance(value, bool) and not value):
            continue
        if key == "http.response.status_code":
            parts.append(f"HTTP {value}")
        elif key.endswith("_ns"):
            parts.append(f"{key.removesuffix('_ns')} {spell_seconds(value / 1e9)}")
        else:
            parts.append(f"{key} {value:.2f}" if isinstance(value, float) else f"{key} {value}")
    return "  ".join(parts[:4])


def show_trace(console: Console, trace: dict[str, Any]) -> None:
    """Print one request.

    Args:
        console: Where to.
        trace: In the shape of `trace`'s `traces`.
    """
    # the id belongs to a person: enough of it to be told from others, not enough to be used
    session = f"{trace['session_id'][:6]}.." if trace["session_id"] else "unknown"
    head = Text(f"session {session}  ", style="bold")
    head.append(trace["status"], COLOURS.get(trace["status"], ""))
    head.append(f"  {spell_seconds(trace['duration_s'])}  {trace['started']}  trace {trace['trace_id']}")
    console.print(head)
    if trace["status"] == "unfinished":
        console.print(Text(f"  never ended; last stage: {trace['last_stage'] or 'none'}", style="magenta"))
    usual = trace.get("usual", False)
    if trace["slow_stage"] and usual:
        console.print(Text(f"  {trace['why']}; most of it in {trace['slow_stage']}", style="dim"))
    elif trace["slow_stage"]:
        console.print(
            Text(f"  slow: {trace['slow_stage']}", style="bold").append(
                f"  because {trace['why']}" if trace["why"] else ""
            )
        )
    depths = span_depths(trace["spans"])
    width = max((len(span["name"]) + 2 * depth for span, depth in zip(trace["spans"], depths, strict=True)), default=0)
    total = max([trace["duration_s"], *(span["start_s"] + span["duration_s"] for span in trace["spans"])])
    for span, depth in zip(trace["spans"], depths, strict=True):
        slow = span["name"] == trace["slow_stage"] and not usual
        line = Text("  " + ("  " * depth + span["name"]).ljust(width) + "  ", style="bold" if slow else "")
        line.append(bar(span["start_s"], span["duration_s"], total), "red" if slow else "cyan")
        line.append(f"  {spell_seconds(span['duration_s']):>8}  {_notable(span['attributes'])}".rstrip(), "dim")
        if slow:
            line.append("  <- slow", "bold red")
        console.print(line)
    if trace.get("hint"):
        console.print(Text(f"  read on: {trace['hint']}", style="dim"))


def _lacking(jaeger: dict[str, Any] | None) -> str:
    """Return what Jaeger's part of an answer lacks, "" for nothing."""
    if jaeger is None or jaeger["complete"]:
        return ""
    if jaeger["error"]:
        return f"only the recorder's rows were asked: {jaeger['error']}"
    return "Jaeger has more than was looked through; ask for less time: --since"


def show_traces(console: Console, payload: dict[str, Any]) -> None:
    """Print what `trace` found.

    Args:
        console: Where to.
        payload: In the shape of `trace`.
    """
    for number, trace in enumerate(payload["traces"]):
        if number:
            console.print()
        show_trace(console, trace)
    if not payload["traces"]:
        console.print(_nothing(payload), markup=False)
    for one in payload.get("unreadable", ()):
        # not the reason: it names the file once more
        console.print(Text(f"not read: segment {one['segment']} of the archive is damaged", style="yellow"))
    if lacking := _lacking(payload.get("jaeger")):
        console.print(Text(lacking, style="yellow"))
    if (sent := payload.get("promoted")) is not None:
        console.print(Text(f"{sent['traces']} sent to {sent['target']}, {sent['spans']} spans", style="dim"))
    if "html" in payload:
        console.print(Text(f"page: {payload['html']}", style="dim"))
    if "endpoints" in payload:
        asked = payload["endpoints"]
        console.print(Text(f"{asked['answered']} of {asked['asked']} exporters answered", style="dim"))
        for one in asked["failed"]:
            console.print(Text(f"  {one['endpoint']}: {one['reason']}", style="yellow"))
    if not payload["traces"]:
        return
    if "endpoints" in payload:
        # an exporter hands out spans; what is usual lies in its rows
        console.print(Text("causes are named where the rows are: run `inferdeck trace` on that machine", style="dim"))
    console.print(Text(f"{len(payload['traces'])} found in {spell_seconds(payload['lookup_s'])}", style="dim"))


def _nothing(payload: dict[str, Any]) -> str:
    """Return what it means that nothing was found."""
    since = f" (kept since {payload['kept_since']})" if payload.get("kept_since") else ""
    match payload.get("result"):
        case "older_than_retention":
            return f"older than what is kept: rows of that time are gone{since}"
        case "incomplete":
            who = "Jaeger did not answer" if payload.get("jaeger") else "not every exporter answered"
            return f"nothing found, and {who}: it may be there"
        case _:
            where = f" in {payload['ring_dir']}" if "ring_dir" in payload else ""
            return f"nothing found{where}{since}: never seen here, or gone since"
