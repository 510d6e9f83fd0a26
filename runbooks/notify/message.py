"""What a person is told when triage has finished, and again when something was done by itself: all that leads on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from runbooks.mitigation.told import said
from runbooks.notify.links import Links
from runbooks.redaction import redact

__all__ = ["MOST_LINE", "Event", "Message", "message_of"]

Event = Literal["incident", "mitigation"]

# A line of a chat message; a label or an error text from outside may be of any length.
MOST_LINE: Final = 600
# With the lines it stays under the 20 kB that DingTalk and Feishu take.
MOST_LINK: Final = 1000
_MOST_REASONS: Final = 3


@dataclass(frozen=True)
class Message:
    """One follow-up, in plain text; each channel writes it in its own form.

    Attributes:
        title: One line that starts with the product's name: robots with a keyword as their security setting want it.
        lines: Name and text of each line, in the order in which they are read.
        links: Name and address of those lines that are a link.
        alert: The alert's name; empty for none.
        slug: The named cause; None when none is named.
        layer: Its layer.
        confidence: Of the verdict, 0 to 1.
        onset_unix: When it began, unix seconds; the start of the alert where that is not known.
        report: The report's id; None when it could not be kept.
        tags: For those who sort: slug, layer, alert.
        event: An incident that triage looked at, or what was done about it by itself.
    """

    title: str
    lines: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]
    alert: str
    slug: str | None
    layer: str | None
    confidence: float
    onset_unix: float
    report: str | None
    tags: tuple[str, ...] = field(default=())
    event: Event = "incident"

    def text(self, between: str = "\n") -> str:
        """Return all lines, links last.

        Args:
            between: What separates lines.
        """
        return between.join(f"{name}: {said}" for name, said in (*self.lines, *self.links))


def message_of(
    result: Mapping[str, Any],
    links: Links,
    *,
    starts_at: float,
    panel_url: str = "",
    mitigated: Mapping[str, Any] | None = None,
) -> Message:
    """Return the message of a triage's result.

    Args:
        result: In the shape of the triage verb, kept or not.
        links: Where links lead.
        starts_at: Start of the alert, unix seconds.
        panel_url: The alert's panel, as its sender told; empty for none.
        mitigated: What was done about it (`refused`, `runs`); None when that is not what the message is about.
    """
    result = redact(dict(result) | ({} if mitigated is None else {"mitigated": dict(mitigated)}))
    verdict, window = result["verdict"], result["window"]
    slug = verdict["slug"]
    named = f"{slug} (layer {verdict['layer']}, confidence {verdict['confidence']:.2f})" if slug else "no cause named"
    alert = str(result["alert"] or "")
    lines = [
        *([] if mitigated is None else [("Mitigation", said(result["mitigated"]))]),
        ("Verdict", named),
        ("Summary", verdict["summary"]),
        ("Impact", impact_line(result["impact"]) + ("" if mitigated is None else " (when triage looked)")),
        *([("Because", "; ".join(reasons))] if (reasons := _reasons(result)) else []),
        # the page's own order: the first is what to begin with
        *[("Next", one["do"]) for one in result["mitigations"][:1]],
        ("Ask again", f"inferdeck triage --alert {alert}" if alert else "inferdeck triage"),
    ]
    paths = [
        ("Runbook", links.runbook(result["runbook"])),
        ("Dashboard", links.dashboard(window, panel_url)),
        ("Traces", links.trace_search(window)),
        *(("Worst request", one) for one in links.traces(result["traces"])),
        ("Report", links.report(result.get("id"))),
    ]
    return Message(
        title=_cut(f"inferdeck: {alert or 'incident'}: {slug or 'no cause named'}{_how(mitigated)}"),
        lines=tuple((name, _cut(text)) for name, text in lines),
        links=tuple((name, _cut(text, MOST_LINK)) for name, text in paths),
        alert=alert,
        slug=slug,
        layer=verdict["layer"],
        confidence=float(verdict["confidence"]),
        onset_unix=_unix_of(window["onset"], starts_at),
        report=result.get("id"),
        tags=tuple(
            tag for tag in (slug or "no_cause_named", verdict["layer"], f"alert:{alert}" if alert else "") if tag
        ),
        event="incident" if mitigated is None else "mitigation",
    )


def _how(mitigated: Mapping[str, Any] | None) -> str:
    """Return how it ended, for the title, which is all that some phones show."""
    if mitigated is None:
        return ""
    runs = mitigated.get("runs")
    return f", mitigation: {str(runs[-1].get('outcome')).replace('_', ' ')}" if runs else ", not mitigated"


def impact_line(impact: Mapping[str, Any]) -> str:
    """Return the impact in one line; what is not known is said.

    Args:
        impact: The result's `impact`.
    """
    parts = []
    if impact.get("stopped_since"):
        before = (impact.get("rate_per_second") or {}).get("before")
        parts.append(f"no request since {impact['stopped_since']}" + (f" ({before:.3g}/s before)" if before else ""))
    # Of a service that serves nothing, none of none would be bad.
    if impact["requests"] == 0 and parts:
        pass
    elif impact["requests"] is not None:
        parts.append(f"{impact['bad_requests'] or 0} of {impact['requests']} requests bad")
    else:
        parts.append("how many requests is not known")
    if impact["sessions"]:
        parts.append(f"{impact.get('bad_sessions') or 0} of {impact['sessions']} sessions")
    if impact.get("unfinished_requests"):
        parts.append(f"{impact['unfinished_requests']} started and never ended")
    going = {True: "still going on", False: f"over since {impact['until']}", None: "nothing to date"}
    return f"{', '.join(parts)}; since {impact['since'] or 'unknown'}, {going[impact['still_going']]}"


def _reasons(result: Mapping[str, Any]) -> list[str]:
    slug = result["verdict"]["slug"]
    found = next((one for one in result["candidates"] if one["slug"] == slug), None)
    return [str(reason) for reason in found["reasons"][:_MOST_REASONS]] if found else []


def _cut(text: str, most: int = MOST_LINE) -> str:
    text = " ".join(str(text).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _unix_of(text: str | None, otherwise: float) -> float:
    return datetime.fromisoformat(text).timestamp() if text else otherwise
