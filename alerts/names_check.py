"""Whether an expression speaks only about metrics, labels and values that exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from alerts.model import Alert, fill
from alerts.prometheus_config import JOBS
from alerts.promql import Matcher, Selector, grouping_labels, selectors
from exporters.names import LABELS, METRICS, Metric

__all__ = ["unknown_names"]

# What Prometheus itself writes about each scrape.
_OF_PROMETHEUS = frozenset({"up"})
# On every series: from Prometheus, and from the scrape configuration.
_EVERYWHERE = frozenset({"job", "instance", "service"})


def unknown_names(alert: Alert, metrics: Mapping[str, Metric] = METRICS) -> list[str]:
    """Return what an alert's expression or test series name that does not exist, one sentence each.

    A misspelt metric never fires, and in a test it is silent like a healthy one: both are looked at.

    Args:
        alert: The alert.
        metrics: The metrics by full name.
    """
    found = []
    expr = fill(alert.expr, alert.thresholds)
    try:
        for selector in selectors(expr):
            found += [f"expr: {what}" for what in _wrong(selector, metrics)]
        for label in grouping_labels(expr):
            if label not in _EVERYWHERE | LABELS.keys() | {"le"}:
                found.append(f"expr: {label} is no label of exporters/names.py")
        for case in alert.tests:
            for series in case.input:
                for selector in selectors(series.series):
                    found += [f"test {case.name!r}: {what}" for what in _wrong(selector, metrics)]
    except ValueError as error:
        found.append(f"expr: {error}")
    return found


def _wrong(selector: Selector, metrics: Mapping[str, Metric]) -> Iterator[str]:
    if selector.metric in _OF_PROMETHEUS:
        if not any(matcher.label == "job" and matcher.value in JOBS for matcher in selector.matchers):
            yield f"{selector.metric} without a job of {', '.join(JOBS)} is about no target in particular"
        return
    base, suffix = _split(selector.metric, metrics)
    metric = metrics.get(base)
    if metric is None:
        yield f"{selector.metric or 'a selector without a name'} is no metric of exporters/names.py"
        return
    if metric.kind == "histogram" and not suffix:
        yield f"{selector.metric} is a histogram: name its _bucket, _sum or _count"
    for matcher in selector.matchers:
        if matcher.label in _EVERYWHERE:
            continue
        if matcher.label == "le" and suffix == "_bucket":
            if matcher.value not in {*map(str, metric.buckets), "+Inf"}:
                yield f"{selector.metric} has no bound {matcher.value}"
        elif matcher.label not in metric.labels:
            yield f"{selector.metric} has no label {matcher.label}"
        elif _is_never(metric, matcher):
            yield f"{selector.metric}: {matcher.label} is never {matcher.value!r}"


def _split(name: str, metrics: Mapping[str, Metric]) -> tuple[str, str]:
    for suffix in ("_bucket", "_sum", "_count"):
        base = name.removesuffix(suffix)
        if base != name and base in metrics and metrics[base].kind == "histogram":
            return base, suffix
    return name, ""


def _is_never(metric: Metric, matcher: Matcher) -> bool:
    allowed = metric.labels[matcher.label]
    return (
        matcher.operator == "="
        and bool(allowed)
        and matcher.label not in metric.limits
        and matcher.value not in allowed
    )
