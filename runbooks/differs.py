"""What differs about the bad requests: bad against normal ones over every column that can tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from runbooks.evidence import Evidence
from runbooks.impact import bad_rows
from runbooks.rows import Objects, Rows
from runbooks.steps.stages import excess_by_place

__all__ = ["what_differs"]

# Fewer bad requests than this tell of chance.
LEAST_BAD: Final = 20
LEAST_BAD_OF_VALUE: Final = 8
# A value must make a request twice as likely to be bad, and by more than three standard errors (one in 700 by chance).
LEAST_LIFT: Final = 2.0
LEAST_Z: Final = 3.0
MOST_FINDINGS: Final = 5
COLUMNS: Final = (
    "client_release",
    "device_type",
    "agent_family",
    "worker",
    "model",
    "config",
    "route",
    "method",
    "model_version",
)


def what_differs(evidence: Evidence) -> dict[str, Any]:
    """Compare the incident's bad requests with its normal ones.

    Returns:
        `findings` (column, value, lift, shares with and without it), most telling first; `stage` (where bad ones spend
        their extra time); `compared` columns; `summary` in one sentence: that nothing differs is a finding too.
    """
    rows = evidence.rows
    if rows is None:
        return {"findings": [], "compared": [], "stage": {}, "summary": "cannot be told without rows"}
    inside = rows.between(*evidence.window.incident)
    bad = bad_rows(evidence, rows)
    columns = _columns(rows, inside)
    if bad.sum() < LEAST_BAD or (inside & ~bad).sum() < LEAST_BAD:
        text = f"{int(bad.sum())} bad of {int(inside.sum())} requests: too few on one side to compare"
        return {"findings": [], "compared": sorted(columns), "stage": excess_by_place(evidence), "summary": text}
    findings = [found for name, values in columns.items() for found in _compare(name, values[inside], bad[inside])]
    findings.sort(key=lambda one: one["z"], reverse=True)
    return {
        "findings": findings[:MOST_FINDINGS],
        "compared": sorted(columns),
        "stage": excess_by_place(evidence),
        "summary": _summary(findings, columns),
    }


def _columns(rows: Rows, inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> dict[str, Objects]:
    columns = {name: rows.labels[name] for name in COLUMNS if name in rows.labels}
    columns["input_bucket"] = rows.bucket
    # One value for all cannot differ, and is no comparison to speak of.
    return {name: values for name, values in columns.items() if len(set(values[inside].tolist())) > 1}


def _compare(name: str, values: Objects, bad: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = []
    for value in set(values.tolist()):
        has = values == value
        with_value, without = int(has.sum()), int((~has).sum())
        bad_with, bad_without = int((bad & has).sum()), int((bad & ~has).sum())
        if bad_with < LEAST_BAD_OF_VALUE or without < LEAST_BAD:
            continue
        share, other = bad_with / with_value, bad_without / without
        pooled = (bad_with + bad_without) / (with_value + without)
        error = np.sqrt(pooled * (1 - pooled) * (1 / with_value + 1 / without))
        # Half a request keeps the ratio finite when none of the others is bad.
        lift = share / ((bad_without + 0.5) / (without + 0.5))
        z = float((share - other) / error) if error > 0 else 0.0
        if lift >= LEAST_LIFT and z >= LEAST_Z:
            findings.append(
                {
                    "column": name,
                    "value": str(value) or "(absent)",
                    "lift": round(float(lift), 2),
                    "z": round(z, 1),
                    "bad_share_with": share,
                    "bad_share_without": other,
                    "share_of_bad": bad_with / (bad_with + bad_without),
                }
            )
    return findings


def _summary(findings: list[dict[str, Any]], columns: Mapping[str, Objects]) -> str:
    if not findings:
        names = ", ".join(sorted(columns)) or "no column has two values"
        return f"nothing differs: all requests are hit alike (compared: {names})"
    best = findings[0]
    shares = f"{best['bad_share_with']:.0%} against {best['bad_share_without']:.0%}"
    of_bad = f"{best['share_of_bad']:.0%} of the bad ones"
    times = f"{best['lift']:.0f} times" if best["lift"] < 100 else "over 100 times"
    return f"{best['column']} = {best['value']}: {times} as likely to be bad ({shares}); {of_bad}"
