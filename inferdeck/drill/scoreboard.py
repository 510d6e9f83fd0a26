"""`make scoreboard`: a drill's result as docs/scoreboard.md. Reads `inferdeck --json drill` from stdin."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from inferdeck.version import ROOT

__all__ = ["scoreboard"]

_SCORES: Final[Mapping[str, str]] = {
    "top1": "named, told the alert",
    "top1_blind": "named, told only the time",
    "avg3": "Avg@3",
    "layer_top1": "layer named",
    "abstain_rate": "abstained",
    "wrong_and_confident": "wrong with confidence 0.5 or more",
}
_BASELINES: Final[Mapping[str, str]] = {
    "largest_z": "largest z-score",
    "first_alert": "first alert",
    "baro": "BARO's score",
}


def scoreboard(payload: Mapping[str, Any]) -> str:
    """Return the page.

    Args:
        payload: In the shape of `drill`.
    """
    real = [one for one in payload["faults"] if not one["simulated"]]
    played = [one for one in payload["faults"] if one["simulated"]]
    parts = (
        _head(payload, real),
        _totals(payload, len(real)),
        _table("Failures that were really caused", real),
        _table("With a part that is played, hence scored apart", played),
        _layers(payload["layers"]),
        _silent(payload),
    )
    return "\n".join("\n".join((*lines, "")) for part in parts if (lines := list(part)))


def _head(payload: Mapping[str, Any], real: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "# Scoreboard"
    yield ""
    runs = max((one["run"] for one in payload["faults"]), default=0)
    found = [one["detect_s"] for one in real if one["detect_s"] is not None]
    yield (
        f"Written by `make scoreboard` at commit {payload['commit']}, started {payload['started']}, in "
        f"{payload['took_s'] / 60:.0f} minutes: {runs} runs of each failure, with order, strength, onset and rate of "
        "traffic drawn by a seed. Shipped rules, unchanged."
    )
    if found:
        yield f"Effect to firing alert: median {statistics.median(found):.0f} s, slowest {max(found):.0f} s."


def _totals(payload: Mapping[str, Any], runs: int) -> Iterator[str]:
    if not runs:
        return
    yield f"| over {runs} runs | share | 95% certainty |"
    yield "|---|---|---|"
    for key, said in _SCORES.items():
        borders = payload["intervals"].get(key)
        between = f"{borders[0]:.2f} to {borders[1]:.2f}" if borders else ""
        yield f"| {said} | {_share(payload[key])} | {between} |"
    for key, said in _BASELINES.items():
        yield f"| beside it: {said} | {_share(payload['baselines'][key])} | |"
    if payload["simulated"]["runs"]:
        yield f"| played, {payload['simulated']['runs']} runs: named | {_share(payload['simulated']['top1'])} | |"


def _table(title: str, faults: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not faults:
        return
    yield f"## {title}"
    yield ""
    yield "| failure | layer | alert | effect to firing, seconds | named | named blind |"
    yield "|---|---|---|---|---|---|"
    for slug in sorted({one["slug"] for one in faults}):
        runs = [one for one in faults if one["slug"] == slug]
        alert = next((one["alert"] for one in runs if one["alert"]), "none")
        seconds = ", ".join("never" if one["detect_s"] is None else f"{one['detect_s']:.0f}" for one in runs)
        told = sum(one["verdict"] == slug for one in runs)
        blind = sum(one["blind"]["verdict"] == slug for one in runs)
        of = f"of {len(runs)}"
        yield f"| `{slug}` | {runs[0]['layer']} | {alert} | {seconds} | {told} {of} | {blind} {of} |"


def _layers(table: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    if not table:
        return
    named = sorted({name for row in table.values() for name in row})
    yield "## Layers: at fault, and named"
    yield ""
    yield f"| at fault | {' | '.join(named)} |"
    yield "|---" * (len(named) + 1) + "|"
    for layer, row in table.items():
        yield f"| {layer} | {' | '.join(str(row.get(name, 0)) for name in named)} |"


def _silent(payload: Mapping[str, Any]) -> Iterator[str]:
    quiet = payload["twins"]
    if quiet:
        yield "## Healthy twins"
        yield ""
        yield f"{sum(one['silent'] for one in quiet)} of {len(quiet)} raised no alert and were given no name."
        for one in quiet:
            if not one["silent"]:
                heard = ", ".join(one["alerts"] + one["verdicts"]) or "the watchdog was never seen firing"
                yield f"- twin of `{one['slug']}`, run {one['run']}: {heard}"
    for one in payload["skipped"]:
        yield f"- left out: `{one['slug']}`, {one['reason']}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def main(text: str, path: Path) -> int:
    """Write the page.

    Args:
        text: What the drill printed.
        path: The page.

    Returns:
        Exit code.
    """
    try:
        payload = json.loads(text)
        page = scoreboard(payload)
    except (ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"scoreboard: this is no result of a drill: {type(error).__name__}: {error}\n")
        return 2
    path.write_text(page, encoding="utf-8")
    sys.stderr.write(f"scoreboard: {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.read(), ROOT / "docs" / "scoreboard.md"))
