"""How the Triton behind the service ended: by its own last words and exit code, and what it was computing then."""

from __future__ import annotations

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.triton_queries import EXITS, LAST_EXIT

__all__ = ["batch_at_end", "code", "illegal_accesses"]

# A server that ends is up again in seconds; what it died of is of interest for longer.
LOOK_BACK_SECONDS = 300.0
ILLEGAL = "illegal_memory_access"
ERROR, BATCH, WIDTH = "triton.client/error", "triton.client/batch_size", "triton.client/seq_len"
CLIENT = "triton.client"
BROKEN, REFUSED = "broken", "refused"
# Nobody listens: that is told at once. A call that is refused after this long was on the way before: when a kept
# connection breaks it is opened anew once.
REFUSED_SECONDS = 0.01


def illegal_accesses(evidence: Evidence) -> StepResult:
    """Return how often in five minutes a Triton ended with an illegal memory access in its last lines."""
    step, query = "triton_exit.illegal_accesses", f'increase({EXITS}{{how="{ILLEGAL}"}}[5m])'
    found = [one for one in evidence.get(EXITS) or () if one.labels.get("how") == ILLEGAL]
    if not found:
        return StepResult(step, None, "prometheus", query, "no supervisor of a Triton tells how it ended")
    end = evidence.window.incident[1]
    value = float(signals.increase(found, end - LOOK_BACK_SECONDS, end) or 0.0)
    return StepResult(step, value, "prometheus", query, f"{value:.0f} such ends in five minutes")


def code(evidence: Evidence) -> StepResult:
    """Return exit code and kind of the last end that was neither clean nor asked for; a signal's code is negative."""
    step, end = "triton_exit.code", evidence.window.incident[1]
    told: tuple[float, str] | None = None
    for series in evidence.get(LAST_EXIT) or ():
        seen = series.times[(series.times <= end) & (series.values > 0)]
        if len(seen) and (told is None or seen[-1] > told[0]):
            told = float(seen[-1]), f"{series.labels.get('code')} ({series.labels.get('how')})"
    if told is None:
        return StepResult(step, None, "prometheus", LAST_EXIT, "no Triton ended in a bad way")
    return StepResult(step, told[1], "prometheus", LAST_EXIT, f"exit code {told[1]}; its words: triton/last_exit.json")


def batch_at_end(evidence: Evidence) -> StepResult:
    """Return the shape of the largest batch that was on the way when the server ended."""
    step, rows = "triton_exit.batch_at_end", evidence.rows
    query = f"rows: {BATCH} and {WIDTH} where {ERROR} is {BROKEN}, or {REFUSED} and not at once"
    if (
        rows is None
        or ERROR not in rows.labels
        or not {BATCH, WIDTH} <= rows.numbers.keys()
        or CLIENT not in rows.stages
    ):
        return StepResult(step, None, "ring", query, "rows do not tell of calls to a Triton")
    end = evidence.window.incident[1]
    shapes = np.column_stack((rows.numbers[BATCH], rows.numbers[WIDTH]))
    late = np.nan_to_num(rows.stages[CLIENT][1]) > REFUSED_SECONDS
    lost = (rows.labels[ERROR] == BROKEN) | ((rows.labels[ERROR] == REFUSED) & late)
    told = rows.between(end - LOOK_BACK_SECONDS, end) & lost & ~np.isnan(shapes).any(axis=1)
    if not told.any():
        return StepResult(step, None, "ring", query, "no call was on the way when it ended")
    texts, width = max(map(tuple, shapes[told].astype(int).tolist()), key=lambda shape: shape[0] * shape[1])
    detail = f"the largest of {told.sum()} requests on the way: {texts} texts of {width} tokens"
    return StepResult(step, f"[{texts}, {width}]", "ring", query, detail)
