"""Investigates a window of feature records: what changed, in which slice, since when, and what else changed then.

The answer is one of: `slice` (a part of the traffic changed), `everywhere` (all of it did, at once), `mix` (no slice
changed, their shares did), `standing` (nothing changed within the window, but it is not as the training was), or
`nothing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from exporters.drift.columns import label_of
from exporters.drift.reference import Reference
from exporters.feature_records import FeatureRecords
from runbooks.investigation.cells import CELLS, Grid, distance, grid_of
from runbooks.investigation.changes import changes_near
from runbooks.investigation.slices import (
    ALL,
    BINS,
    LEAST_ROWS,
    MOST_P,
    Found,
    Mix,
    TimeGrid,
    find_mix,
    find_slices,
    find_standing,
)

__all__ = ["investigate"]

LEAST_STANDING: Final = 0.3
"""As requirements row A8 has it: below, live inputs are as the training was."""
LEAST_MIX: Final = 0.05
_MOST_SHOWN: Final = 10


def investigate(records: FeatureRecords, reference: Reference | None) -> dict[str, Any]:
    """Return what was found, as plain values.

    Args:
        records: Records in order of time.
        reference: The training's distributions; None for none.
    """
    known = {label_of(name): values for name, values in (reference.numbers.items() if reference else ())}
    grids = _grids(records, known)
    cells = {name: grid.places(records.numbers[name]) for name, grid in grids.items()}
    baselines = {name: grids[name].counts(values) for name, values in known.items() if name in grids}
    times = TimeGrid.of(records.at)
    changed, whole = find_slices(records, times, cells) if len(records) >= 2 * LEAST_ROWS else ([], {})
    standing = find_standing(records, cells, baselines) if not changed else []
    mix = _mix(records, times, cells, whole)
    verdict = _verdict(changed, standing, mix)
    best = next(iter(changed or standing), None) if verdict["kind"] in ("slice", "everywhere", "standing") else None
    since = _since(records, grids, times, mix[1] if verdict["kind"] == "mix" and mix else best)
    return {
        "records": len(records),
        "from_unix": float(records.at[0]) if len(records) else None,
        "to_unix": float(records.at[-1]) if len(records) else None,
        "cut": records.cut,
        "losses": dict(records.losses),
        "verdict": verdict | {"since_unix": since, "summary": _summary(verdict, compared=bool(baselines))},
        "features": [_feature(name, cells[name], times, whole.get(name), baselines.get(name)) for name in cells],
        "slices": [_shown(one, times) for one in _one_each(changed or standing)],
        "mix": None if mix is None else _moved(mix[0]),
        "changes": [
            {"what": one.what, "value": one.value, "at_unix": one.at, "share": one.share}
            for one in (changes_near(records, since) if since is not None else ())
        ],
        "course": _course(records, verdict, times),
    }


def _grids(records: FeatureRecords, known: Mapping[str, npt.NDArray[np.float64]]) -> dict[str, Grid]:
    grids = {}
    for name, values in records.numbers.items():
        half = len(values) // 2
        grid = grid_of(name, values[:half], values[half:], known.get(name, np.zeros(0)))
        if grid is not None:
            grids[name] = grid
    return grids


def _mix(
    records: FeatureRecords,
    times: TimeGrid,
    cells: Mapping[str, npt.NDArray[np.uint8]],
    whole: Mapping[str, Found],
) -> tuple[Mix, Found] | None:
    """Return the mix that brings about the largest change of all traffic, and that change; None where none does."""
    moved = max((one for one in whole.values() if one.p < MOST_P), key=lambda one: one.effect, default=None)
    if moved is None or moved.effect < LEAST_MIX:
        return None
    mix = find_mix(records, times, cells[moved.feature], moved)
    return None if mix is None else (mix, moved)


def _verdict(changed: list[Found], standing: list[Found], mix: tuple[Mix, Found] | None) -> dict[str, Any]:
    own = next((one for one in changed if one.dimension != ALL), None)
    if mix is not None:
        shares, moved = mix
        # Whatever shares do not bring about, some slice must have done itself.
        if own is None or shares.explained * moved.effect > own.score:
            named = {"kind": "mix", "dimension": shares.dimension, "value": None, "feature": moved.feature}
            return named | {"effect": moved.effect, "explained": shares.explained, "p": moved.p, "share": None}
    if changed:
        return _named("everywhere" if changed[0].dimension == ALL else "slice", changed[0])
    if standing and standing[0].effect > LEAST_STANDING:
        return _named("standing", standing[0])
    nothing = dict.fromkeys(("dimension", "value", "feature", "effect", "explained", "p", "share"))
    return {"kind": "nothing", **nothing}


def _named(kind: str, one: Found) -> dict[str, Any]:
    return {
        "kind": kind,
        "dimension": one.dimension,
        "value": one.value or None,
        "feature": one.feature,
        "effect": one.effect,
        "explained": one.explained,
        "p": one.p,
        "share": one.share,
    }


def _summary(verdict: Mapping[str, Any], *, compared: bool) -> str:
    """Return the verdict as a sentence."""
    kind, feature = verdict["kind"], verdict["feature"]
    if kind == "nothing":
        rest = "it is as the training was" if compared else "there is no training to compare it with"
        return f"nothing changed within the window beyond chance, and {rest}"
    size = f"by {verdict['effect']:.2f} of 1"
    if kind == "mix":
        return f"no slice changed itself: the shares of {verdict['dimension']} did, which moves {feature} {size}"
    place = "all traffic" if verdict["dimension"] == ALL else f"{verdict['dimension']} {verdict['value']}"
    if kind == "standing":
        return f"{feature} of {place} is {verdict['effect']:.2f} of 1 from the training, all through the window"
    alone = f"; {verdict['explained']:.0%} of the change of all traffic goes without it" if kind == "slice" else ""
    return f"{feature} of {place} changed {size}{alone}"


def _since(
    records: FeatureRecords,
    grids: Mapping[str, Grid],
    times: TimeGrid,
    best: Found | None,
) -> float | None:
    """Return when the change began, finer than the bins: by the named slice's own records about that bin."""
    if best is None or best.against == "training":
        return None
    chosen = np.ones(len(records), dtype=bool)
    if best.dimension != ALL:
        codes = records.words[best.dimension]
        chosen = codes.places == codes.words.index(best.value)
    if best.against == "all":
        return float(records.at[int(np.argmax(chosen))])
    near = (times.places >= max(0, best.split - 3)) & (times.places < best.split + 3) & chosen
    at = records.at[near]
    if len(at) < 4:
        return float(times.starts[best.split])
    places = grids[best.feature].places(records.numbers[best.feature][near])
    fine = np.arange(len(at)) * BINS // len(at)
    table = np.bincount(fine * (CELLS + 1) + places, minlength=BINS * (CELLS + 1)).reshape(BINS, CELLS + 1)[:, :CELLS]
    upto = table.cumsum(axis=0)
    before, after = upto[:-1], upto[-1] - upto[:-1]
    n, m = before.sum(axis=1), after.sum(axis=1)
    split = int(np.argmax(distance(before, after) * np.sqrt(n * m / np.maximum(1, n + m)))) + 1
    return float(at[int(np.searchsorted(fine, split))])


def _feature(
    name: str,
    cells: npt.NDArray[np.uint8],
    times: TimeGrid,
    found: Found | None,
    baseline: npt.NDArray[Any] | None,
) -> dict[str, Any]:
    counts = np.bincount(cells, minlength=CELLS + 1)[:CELLS]
    return {
        "feature": name,
        "records": int(counts.sum()),
        "from_training": None if baseline is None else float(distance(baseline, counts)),
        "within_window": None if found is None else found.effect,
        "p": None if found is None else found.p,
        "split_unix": None if found is None else float(times.starts[found.split % BINS]),
    }


def _one_each(found: list[Found]) -> list[Found]:
    """Return the best feature of each slice."""
    kept: dict[tuple[str, str], Found] = {}
    for one in found:
        kept.setdefault((one.dimension, one.value), one)
    return list(kept.values())[:_MOST_SHOWN]


def _shown(one: Found, times: TimeGrid) -> dict[str, Any]:
    return _named("slice", one) | {
        "before": one.before,
        "after": one.after,
        "against": one.against,
        "split_unix": None if one.against == "training" else float(times.starts[one.split % BINS]),
    }


def _moved(mix: Mix) -> dict[str, Any]:
    moved = {word: [round(old, 4), round(new, 4)] for word, (old, new) in mix.moved.items()}
    return {"dimension": mix.dimension, "explained": mix.explained, "moved": moved}


def _course(records: FeatureRecords, verdict: Mapping[str, Any], times: TimeGrid) -> dict[str, Any] | None:
    """Return the named feature of the named slice over time, for a plot: P10, median and P90 by bin."""
    feature = verdict["feature"]
    if feature is None:
        return None
    chosen = np.ones(len(records), dtype=bool)
    if verdict.get("value"):
        codes = records.words[str(verdict["dimension"])]
        chosen = codes.places == codes.words.index(str(verdict["value"]))
    quantiles: list[list[float] | None] = []
    for part in range(BINS):
        values = records.numbers[feature][chosen & (times.places == part)]
        values = values[~np.isnan(values)]
        quantiles.append(None if not len(values) else [float(q) for q in np.quantile(values, (0.1, 0.5, 0.9))])
    return {"feature": feature, "starts_unix": [float(one) for one in times.starts], "quantiles": quantiles}
