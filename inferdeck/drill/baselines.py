"""What simpler methods would have named, on the same recorded data: so that triage's score has something beside it.

Three of them. All are told when the effect began, which triage is not.

largest_z     the series whose largest value since the onset lies most standard deviations above its mean before
              (`nsigma` of RCAEval), and the failure whose shipped rule reads that series.
baro          the same with median and interquartile range: the RobustScorer of BARO (Pham et al., FSE 2024,
              doi:10.1145/3660805). Its package (RCAEval 1.8) does not declare what it imports and is not needed for
              this arithmetic; a test holds it to scikit-learn's RobustScaler, which that package uses.
first_alert   the first alert that fires, by its own name; of a symptom, the first candidate of its page.

Neither of the first two names a failure by itself: they rank series. To be fair to them, series that no failure's rule
reads are passed over, and where several rules read one, the rule with the most exact selector counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt

from inferdeck.http_get import Unreachable, get_json

__all__ = ["Recorded", "baseline_verdicts", "first_alert", "owners", "ranked", "read_series"]

Floats = npt.NDArray[np.float64]
# Counters are looked at as rates; buckets repeat what their sums and counts say, ten times over.
COUNTERS: Final = ("_total", "_count", "_sum")
SELECTED: Final = (
    '{__name__=~"up|(model|runtime|gpu|data|stream|telemetry|notifications|nv|kube)_.+",__name__!~".+_bucket"}'
)
# as much healthy time as a drill has before its cause
BEFORE_SECONDS: Final = 60.0
LEAST_BEFORE: Final = 4


@dataclass(frozen=True)
class Recorded:
    """One recorded series.

    Attributes:
        labels: Its labels, `__name__` included.
        times: Unix seconds, shape (n,).
        values: Shape (n,); of a counter its growth a second.
    """

    labels: Mapping[str, str]
    times: Floats
    values: Floats


def baseline_verdicts(
    prometheus_url: str, begin: float, at: float, timeline: Sequence[Mapping[str, Any]]
) -> dict[str, str | None]:
    """Return what each method names; None where it names nothing, or its data cannot be had.

    Args:
        prometheus_url: Base URL of the run's Prometheus, or of one over its kept data.
        begin: When the effect began, unix seconds.
        at: When triage was asked, unix seconds.
        timeline: The alerts of the run.
    """
    try:
        series = read_series(prometheus_url, begin - BEFORE_SECONDS, at)
    except Unreachable:
        series = []
    rules = owners()
    return {
        "largest_z": _named(ranked(series, begin, _deviations), rules),
        "first_alert": first_alert(timeline, begin),
        "baro": _named(ranked(series, begin, _robust), rules),
    }


def read_series(prometheus_url: str, since: float, until: float) -> list[Recorded]:
    """Return all series of the stack but buckets, as scraped.

    Raises:
        Unreachable: If Prometheus does not answer.
    """
    query = urlencode({"query": f"{SELECTED}[{max(1, round(until - since))}s]", "time": f"{until:.3f}"})
    answer = get_json(f"{prometheus_url}/api/v1/query?{query}", 15.0)
    found = []
    for one in answer.get("data", {}).get("result", ()):
        samples = np.array([(float(time), float(value)) for time, value in one["values"]], dtype=np.float64)
        times, values = samples[:, 0], samples[:, 1]
        if str(one["metric"].get("__name__", "")).endswith(COUNTERS):
            steps = np.diff(values)
            # a fall is a restart: growth from 0
            values = np.where(steps < 0, values[1:], steps) / np.maximum(np.diff(times), 1e-3)
            times = times[1:]
        found.append(Recorded(one["metric"], times, values))
    return found


def ranked(series: Iterable[Recorded], begin: float, score: Callable[[Floats, Floats], float]) -> list[Recorded]:
    """Return series by how far they went since *begin*, farthest first; those of the same height by name.

    Args:
        series: As recorded.
        begin: When the effect began, unix seconds.
        score: Gets values before and since; returns how far they went.
    """
    far = []
    for one in series:
        before, since = one.values[one.times < begin], one.values[one.times >= begin]
        before, since = before[np.isfinite(before)], since[np.isfinite(since)]
        if len(before) >= LEAST_BEFORE and len(since):
            far.append((-float(score(before, since)), sorted(one.labels.items()), one))
    return [one for height, _, one in sorted(far, key=lambda item: item[:2]) if height < 0]


def _deviations(before: Floats, since: Floats) -> float:
    """Return the largest z-score; without a spread in the series' unit, as scikit-learn's scalers."""
    return float(np.max((since - before.mean()) / (before.std() or 1.0)))


def _robust(before: Floats, since: Floats) -> float:
    """Return the largest distance from the median in interquartile ranges; without a range in the series' unit."""
    low, middle, high = np.percentile(before, (25, 50, 75))
    return float(np.max((since - middle) / ((high - low) or 1.0)))


def owners() -> list[tuple[str, Any, int]]:
    """Return slug, selector and its place in the rule, for each failure's rule."""
    from alerts.load import load_catalogue
    from alerts.model import fill
    from alerts.promql import selectors

    return [
        (alert.slug, selector, place)
        for alert in load_catalogue()
        if alert.kind == "failure"
        for place, selector in enumerate(selectors(fill(alert.expr, alert.thresholds)))
    ]


def _named(series: Iterable[Recorded], rules: Sequence[tuple[str, Any, int]]) -> str | None:
    for one in series:
        fitting = [
            (-len(selector.matchers), place, slug)
            for slug, selector, place in rules
            if selector.metric == one.labels.get("__name__") and all(_fits(m, one.labels) for m in selector.matchers)
        ]
        if fitting:
            return min(fitting)[2]
    return None


def _fits(matcher: Any, labels: Mapping[str, str]) -> bool:
    """Return whether a series' label meets a selector's condition; PromQL's patterns hold from end to end."""
    value = labels.get(matcher.label, "")
    same = bool(re.fullmatch(matcher.value, value)) if "~" in matcher.operator else value == matcher.value
    return bool(same != matcher.operator.startswith("!"))


def first_alert(timeline: Sequence[Mapping[str, Any]], begin: float) -> str | None:
    """Return the failure that the first alert after *begin* stands for by default.

    Args:
        timeline: The alerts of the run.
        begin: When the effect began, unix seconds.
    """
    from runbooks.pages import load_pages

    pages = load_pages()
    for event in timeline:
        if event["state"] != "firing" or event["at_unix"] < begin or event["labels"].get("kind") == "meta":
            continue
        slug = str(event["labels"].get("slug", ""))
        if event["labels"].get("kind") == "failure":
            return slug
        if (page := pages.get(slug)) is not None and page.candidates:
            return str(page.candidates[0])
    return None
