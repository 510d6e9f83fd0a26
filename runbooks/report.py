"""A triage result as plain text for a terminal: verdict first, then impact, differences, evidence, next steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from runbooks.mitigation.told import said
from runbooks.scoring import LEAST_CONFIDENCE, LEAST_SCORE, NOT_MET, NOT_SEEN

__all__ = ["render"]

WIDTH: Final = 100
_MARKS: Final[Mapping[bool | None, str]] = {True: "yes", False: "no", None: "?"}


def render(result: Mapping[str, Any]) -> str:
    """Return the report of a result in the shape of the triage verb.

    Args:
        result: What the engine returned, or what was kept of it.
    """
    parts = (
        _verdict(result),
        _impact(result["impact"]),
        _differs(result["differs"]),
        _evidence(result),
        _candidates(result["candidates"], bool(result["abstained"])),
        _symptoms(result.get("symptoms") or ()),
        _unusual(result["unusual"]),
        _missing(result["missing"]),
        _untold(result.get("cannot_be_told") or ()),
        _investigation(result.get("investigation") or {}),
        _next(result),
        _follow_ups(result.get("follow_ups") or ()),
    )
    return "\n".join("\n".join(lines) for part in parts if (lines := list(part))) + "\n"


def _verdict(result: Mapping[str, Any]) -> Iterator[str]:
    verdict, window = result["verdict"], result["window"]
    if result["abstained"]:
        yield "NO CAUSE NAMED"
    else:
        sure = f"confidence {verdict['confidence']:.2f}"
        yield f"{verdict['slug']}  (layer {verdict['layer']}, {sure})"
    yield from _wrapped(verdict["summary"])
    told = f"alert {result['alert']}" if result["alert"] else "no alert given"
    onset = f"began {window['onset']}, seen in: {window['signal']}" if window["onset"] else "no onset found"
    yield f"  {told}; looked at {window['from']} .. {window['to']}; {onset}"
    yield ""


def _impact(impact: Mapping[str, Any]) -> Iterator[str]:
    yield "Impact"
    if impact["requests"] is not None:
        bad = impact["bad_requests"] or 0
        sessions = (
            f", {impact['bad_sessions']} of {impact['sessions']} sessions" if impact["sessions"] is not None else ""
        )
        if impact.get("stopped_since"):
            before = impact["rate_per_second"]["before"]
            yield f"  0 requests since {impact['stopped_since']}, {before:.3g}/s before"
            yield f"  until then {bad} of {impact['requests']} requests bad{sessions}"
        else:
            yield f"  {bad} of {impact['requests']} requests bad{sessions}"
    if impact["unfinished_requests"]:
        yield f"  {impact['unfinished_requests']} started and never ended"
    if impact["by_outcome"]:
        yield "  ended: " + ", ".join(f"{count} {name}" for name, count in impact["by_outcome"].items())
    for name, tail in (impact["p95_seconds"] or {}).items():
        if tail["now"] is not None or tail["before"] is not None:
            yield f"  P95 {name:8} {_seconds(tail['now'])} now, {_seconds(tail['before'])} before"
    going = {True: "still going on", False: f"over since {impact['until']}", None: "nothing to date"}[
        impact["still_going"]
    ]
    yield f"  since {impact['since'] or 'unknown'}; {going}"
    yield ""


def _differs(differs: Mapping[str, Any]) -> Iterator[str]:
    yield "What differs about the bad requests"
    yield from _wrapped(differs["summary"])
    for one in differs["findings"][1:]:
        yield f"  also {one['column']} = {one['value']}: {min(one['lift'], 100):.0f} times"
    shares = sorted(differs["stage"].items(), key=lambda pair: -pair[1])[:4]
    if shares:
        yield "  their extra time: " + ", ".join(f"{place} {share:.0%}" for place, share in shares)
    yield ""


def _evidence(result: Mapping[str, Any]) -> Iterator[str]:
    """Show the verdict's own steps; without a verdict all of them, for a person to judge."""
    slug = result["verdict"]["slug"]
    # Old kept reports may lack `asked_by`: they are shown whole.
    evidence = [one for one in result["evidence"] if slug is None or slug in one.get("asked_by", [slug])]
    seen = [one for one in evidence if one["holds"] is not None]
    if not seen:
        return
    yield "Evidence"
    yield f"  {'step':34} {'value':>12}  {'expected':10} {'holds':5}  source"
    for one in seen:
        mark = _MARKS[one["holds"]]
        yield f"  {one['step']:34} {_value(one['value']):>12}  {one['expected']:10} {mark:5}  {one['source']}"
        yield f"    {one['detail']}"
    unseen = [one["step"] for one in evidence if one["holds"] is None]
    if unseen and slug is None:
        topics = ", ".join(dict.fromkeys(step.partition(".")[0] for step in unseen))
        yield f"  could not be seen: {len(set(unseen))} steps ({topics})"
    elif unseen:
        yield from _wrapped("could not be seen: " + ", ".join(dict.fromkeys(unseen)))
    yield ""


def _candidates(candidates: Sequence[Mapping[str, Any]], abstained: bool) -> Iterator[str]:
    """Show the ranked causes; of an abstention those that anything speaks for, and what the best one lacked."""
    shown = [one for one in candidates if not abstained or round(one["score"], 2) > 0]
    if not shown:
        return
    yield "Candidates"
    for place, one in enumerate(shown, start=1):
        behind = f", explained by {one['explained_by']}" if one["explained_by"] else ""
        figures = f"score {one['score']:.2f}, confidence {one['confidence']:.2f}"
        yield f"  {place}. {one['slug']} ({one['layer']})  {figures}{behind}"
        if abstained and place == 1:
            for lack in _lacks(one):
                yield from _wrapped(f"   not named: {lack}")
    yield ""


def _lacks(candidate: Mapping[str, Any]) -> list[str]:
    """Return why a candidate was not named: its conditions that are not met, else not seen, else the bounds."""
    for kind in (NOT_MET, NOT_SEEN):
        if found := [reason for reason in candidate["reasons"] if reason.startswith(kind)]:
            return found
    bounds = (("score", LEAST_SCORE), ("confidence", LEAST_CONFIDENCE))
    return [f"its {name} is below {least:g}" for name, least in bounds if candidate[name] < least]


def _symptoms(symptoms: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not symptoms:
        return
    yield "What the metrics alone tell"
    for one in symptoms:
        yield f"  {one['layer']:10} {one['symptom']}: {one['text']}"
    yield ""


def _untold(untold: Sequence[str]) -> Iterator[str]:
    if not untold:
        return
    yield "Cannot be told"
    for text in untold:
        yield from _wrapped(text)
    yield ""


def _unusual(unusual: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not unusual:
        return
    yield "Most unusual signals"
    for one in unusual:
        yield f"  {one['layer']:10} {one['signal']}: {one['now']:.4g} now, {one['before']:.4g} before"
    yield ""


def _missing(missing: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in missing:
        yield from _wrapped(f"missing: {one['source']}: {one['reason']}. Cost: {one['cost']}.")
    if missing:
        yield ""


def _follow_ups(follow_ups: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Say who was told, and whom it never reached: a reader may be the first to hear of it."""
    for one in follow_ups:
        lost = "" if one["result"] == "sent" else f", NOT SENT: {one['detail']}"
        yield from _wrapped(f"told by {one['channel']}: {one['result']}{lost}")


def _investigation(told: Mapping[str, Any]) -> Iterator[str]:
    """Say what of the traffic changed, or why that is not known."""
    if told:
        yield "What of the traffic changed"
        yield from _wrapped(told.get("summary") or f"not investigated: {told.get('refused')}")
        if told.get("since"):
            yield f"  since {told['since']}"
        if told.get("page"):
            yield f"  {told['page']}"
        yield ""


def _next(result: Mapping[str, Any]) -> Iterator[str]:
    if result["traces"]:
        yield f"Worst requests: {', '.join(result['traces'][:3])}"
        yield f"  inferdeck trace --trace {result['traces'][0]}"
    if result["runbook"]:
        yield f"Runbook: {result['runbook']}"
    for one in result["mitigations"]:
        yield f"  {one['do']}   (undo: {one['undo']})"
    if done := result.get("mitigated"):
        yield from _wrapped(f"Done by itself: {said(done)}")
    if result["report"]:
        yield f"Kept as {result['report']}"


def _wrapped(text: str) -> Iterator[str]:
    line = " "
    for word in text.split():
        if len(line) + len(word) + 1 > WIDTH and line.strip():
            yield line
            line = " "
        line += f" {word}"
    yield line


def _value(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "?"}[value]
    if isinstance(value, int | float):
        return f"{value:.3g}"
    # A text has no place in a column of figures; the line below it says it in full.
    return "(text)"


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f} s"
