"""Judges a run of the overhead bench and gives it the shape of its schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inferdeck.bench.proofs import Proof
from inferdeck.bench.rig import Measured
from inferdeck.bench.variants import BARE, REQUESTS_SAMPLE, VARIANTS
from inferdeck.bench.windows import Pair, Summary, Window, pair_up, ratio, summarise

__all__ = ["PEER_RATIO_MAX", "Run", "exit_code", "shape"]

# issue 3, item 1: ours at 1% against the strongest peer; the prototype reached 1/8 to 1/10
PEER_RATIO_MAX = 1 / 6


@dataclass(frozen=True)
class Run:
    """What was measured.

    Attributes:
        names: Variants, bare first.
        rounds: Windows of each round in order of time.
        proofs: All claims, judged.
        resident_bytes: Memory of each variant's server at the end.
    """

    names: Sequence[str]
    rounds: Sequence[Sequence[Measured]]
    proofs: Sequence[Proof]
    resident_bytes: dict[str, int]


def shape(run: Run) -> dict[str, Any]:
    """Return the result: variants, headline ratios, proofs and gate; a figure that was not measured is null."""
    pairs = [pair for measured in run.rounds for pair in pair_up([m.window for m in measured], BARE)]
    summaries = {name: summarise(p for p in pairs if p.window.variant == name) for name in run.names if name != BARE}
    bare = _bare([m.window for measured in run.rounds for m in measured if m.window.variant == BARE])
    variants = {BARE: bare | {"resident_bytes": run.resident_bytes[BARE]}}
    for name, summary in summaries.items():
        variants[name] = _figures(summary) | {"resident_bytes": run.resident_bytes[name]} | _evidence(run, name)
    added = {name: summary.added_us for name, summary in summaries.items()}
    ours = summaries.get("inferdeck_1pct")
    peer_ratio = ratio(added.get("inferdeck_1pct"), added.get("strongest"))
    failed = [proof for proof in run.proofs if not proof.holds]
    return {
        "rounds": len(run.rounds),
        "variants": variants,
        "added_us": _round(ours.added_us if ours else None, 2),
        "rps_ratio": _round(ours.rps_ratio if ours else None, 4),
        "peer_ratio": _round(peer_ratio, 4),
        "parity_ratio": _round(ratio(added.get("inferdeck_1pct"), added.get("parity")), 4),
        "exporter_us": _round(ours.exporter_us if ours else None, 2),
        "aa_us": _round(added.get("bare_aa"), 2),
        "noisy": bool(bare["noisy"]) or any(summary.noisy for summary in summaries.values()),
        "proofs": {
            "checked": len(run.proofs),
            "failed": [{"variant": p.variant, "claim": p.claim, "found": p.found} for p in failed],
        },
        "gate": {
            "peer_ratio_max": _round(PEER_RATIO_MAX, 4),
            "passed": None if peer_ratio is None else peer_ratio <= PEER_RATIO_MAX,
        },
    }


def exit_code(result: dict[str, Any]) -> int:
    """Return 1 when a proof failed or the gate was missed, else 0; a gate that was not measured fails nothing."""
    return 1 if result["proofs"]["failed"] or result["gate"]["passed"] is False else 0


def _bare(windows: Sequence[Window]) -> dict[str, Any]:
    # its own neighbour: differences are 0 by definition, the rest is reduced as for all others
    return _figures(summarise(Pair(window, window, window) for window in windows))


def _figures(summary: Summary) -> dict[str, Any]:
    figures = {
        "cpu_us": _round(summary.cpu_us, 2),
        "rps": _round(summary.rps, 1),
        "p99_s": _round(summary.p99_s, 6),
        "added_us": _round(summary.added_us, 2),
        "added_us_quartiles": [_round(value, 2) for value in summary.added_us_quartiles],
        "rps_ratio": _round(summary.rps_ratio, 4),
        "rps_ratio_quartiles": [_round(value, 4) for value in summary.rps_ratio_quartiles],
        "windows": {"kept": summary.kept, "dropped": summary.dropped},
        "noisy": summary.noisy,
    }
    return figures | ({} if summary.exporter_us is None else {"exporter_us": _round(summary.exporter_us, 2)})


def _evidence(run: Run, name: str) -> dict[str, Any]:
    """Return what was counted over all windows of one variant, dropped windows included: proofs know no noise."""
    variant = VARIANTS[name]
    found = [m for measured in run.rounds for m in measured if m.window.variant == name]
    answered = sum(m.load.answered for m in found)
    result: dict[str, Any] = {"requests": answered, "requests_sent": sum(m.load.sent for m in found)}
    if variant.ours:
        result |= {
            "rows_read": sum(m.evidence.rows_read for m in found),
            "rows_lost": sum(m.evidence.rows_lost for m in found),
            "stages_per_row": min(m.evidence.stages for m in found),
            "attributes_per_row": min(m.evidence.attributes for m in found),
        }
    if variant.span_share is not None:
        roots = sum(m.evidence.roots for m in found)
        # requests in flight at a window's end are served and have spans: counted by whoever counts at the server
        handled = sum(
            m.evidence.rows_read if variant.ours else m.evidence.samples.get(REQUESTS_SAMPLE[0], 0.0) for m in found
        )
        result["spans_received_share"] = _round(ratio(roots, handled), 4)
        result["spans_per_trace"] = _round(ratio(sum(m.evidence.spans for m in found), roots), 2)
    return result


def _round(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
